"""A call and its reply are the same on both sides of the channel."""

from __future__ import annotations

import errno
import json
import os
from typing import Any

import numpy as np
import pytest

from generators.contracts.faults import Fault
from mluops_cli.execution.kernel_process.frames import BrokenChannelError
from mluops_cli.execution.kernel_process.reply import done, raised, read_reply
from mluops_cli.execution.kernel_process.request import RequestWriter, read_request
from mluops_cli.execution.kernel_process.shared_memory import AttachedMemory, SharedMemory
from mluops_cli.execution.kernel_process.timed_call import Raised, Timed
from mluops_cli.implementations.base import (
    AdapterError,
    BadAnswer,
    Call,
    CannotShow,
    Crashed,
    Outcome,
    OutOfBounds,
)
from schemas.protos import messages as proto
from schemas.tensor_descriptor import Descriptor
from tests.mluops_cli.execution.conftest import case_node


def test_a_call_arrives_as_it_was() -> None:
    memory = SharedMemory()
    x, y = memory.placed(np.arange(6, dtype=np.float32)), memory.allocate(24).view(np.float32)
    node = case_node(name="one", expect=["BAD_PARAM"], tags=["hard"])
    node.test_param.error_threshold.append(0.125)
    node.evaluation_threshold.append(0.25)
    descriptors = {"x": Descriptor("NHWC", "float", (2, 3)), "z": None, "y": Descriptor("ARRAY", "float", (6,), (1,))}
    params: dict[str, Any] = {
        "a": 2**63,
        "b": 0.1,
        "c": [1, 2],
        "d": float("inf"),
        "e": True,
        "f": "\udc80",
        "g": {"h": 1},
    }
    faults = (Fault("null_handle"), Fault("null_pointer", "z"))
    call = Call("op", {"x": x, "z": None}, {"y": y}, params, descriptors, faults, None, node)
    told = json.dumps(RequestWriter(memory)(call))
    assert "0.125" not in told
    found: Any = read_request(json.loads(told), AttachedMemory([os.dup(each) for each in memory.descriptors]))
    assert (found.op, found.params, found.descriptors, found.faults) == ("op", params, descriptors, faults)
    assert list(found.inputs) == ["x", "z"]
    assert found.inputs["z"] is None
    assert np.array_equal(found.inputs["x"], x)
    assert not found.inputs["x"].flags.writeable
    found.outputs["y"][...] = 7
    assert (y == 7).all()
    meta: Any = proto.get_meta(found.node)
    assert (meta.name, list(meta.expect), list(meta.tags)) == ("one", [], [])
    assert not found.node.HasField("test_param")
    assert not found.node.evaluation_threshold
    assert "BAD_PARAM" in str(node)


def arrived(message: dict[str, Any]) -> Timed:
    return read_reply(json.loads(json.dumps(message | {"token": "t"})), "t").take()


def test_an_outcome_arrives_as_it_was() -> None:
    outcome = Outcome("NOT_SUPPORTED", 1.25, 64, {"num_act_out": 2**70})
    assert arrived(done(Timed(outcome, 3.5))) == Timed(outcome, 3.5)
    assert arrived(done(Timed(Outcome(), 0.0))) == Timed(Outcome(), 0.0)


def test_numbers_of_numpy_in_an_outcome_are_numbers() -> None:
    outcome: Any = Outcome("SUCCESS", np.float32(1.25), np.int64(64), {"num_act_out": np.int32(7)})
    assert arrived(done(Timed(outcome, 3.5))) == Timed(Outcome("SUCCESS", 1.25, 64, {"num_act_out": 7}), 3.5)


@pytest.mark.parametrize(
    ("field", "value"),
    [("latency_us", "fast"), ("scalars", {"num_act_out": 1.5}), ("status", None), ("status", object())],
)
def test_a_field_of_another_type_is_a_bad_answer(field: str, value: Any) -> None:
    """It says which field; a reply that can't be sent would end the process."""
    outcome = Outcome(**{field: value})
    with pytest.raises(BadAnswer, match=rf"^the implementation returned an Outcome with .* - at `\$\.{field}"):
        done(Timed(outcome, 3.5))


@pytest.mark.parametrize("kind", [CannotShow, OutOfBounds, Crashed, BadAnswer, AdapterError])
def test_a_verdict_arrives_as_what_it_was(kind: type[Exception]) -> None:
    with pytest.raises(kind, match=r"^so it is \ud83d$"):
        arrived(raised(kind("so it is \ud83d")))


def test_an_adapter_s_shortage_is_known() -> None:
    try:
        raise AdapterError("no file can be opened") from OSError(errno.EMFILE, "too many")
    except AdapterError as error:
        message = raised(error)
    with pytest.raises(AdapterError) as found:
        arrived(message)
    assert isinstance(found.value.__cause__, OSError)
    assert found.value.__cause__.errno == errno.EMFILE


def test_an_exception_arrives_in_words() -> None:
    try:
        raise KeyError("missing")
    except KeyError as error:
        message = raised(error)
    with pytest.raises(Raised) as found:
        arrived(message)
    assert found.value.text.startswith("KeyError: 'missing' (")
    assert "KeyError" in found.value.traceback


@pytest.mark.parametrize("wrong", [{"kind": "done\ud800"}, {"host_us\ud800": 1.0}])
def test_half_of_a_surrogate_pair_in_a_name_breaks_the_channel(wrong: dict[str, Any]) -> None:
    """JSON may hold one; msgspec raises an error of its own for it."""
    with pytest.raises(BrokenChannelError, match="a message that is no result"):
        read_reply({"token": "t", "kind": "done", **wrong}, "t")
