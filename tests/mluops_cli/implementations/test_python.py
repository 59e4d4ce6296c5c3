"""The adapter for callables: what they are given, what their answers mean, what can't be shown to them."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from generators.contracts.faults import Fault
from mluops_cli.implementations.base import BadAnswer, Call, CannotShow, Outcome, OutOfBounds
from mluops_cli.implementations.callables import CallableKernel
from mluops_cli.implementations.python import Python
from schemas.casefiles.reading import read_case
from schemas.tensor_descriptor import Descriptor
from tests.conftest import PROJECT

from .calls import get_indice_pairs, psamask

WORKSPACE = 40  # bytes of workspace the callables here ask for


def make_call(op: str = "alien_op", faults: tuple[str, ...] = (), **changes: Any) -> Call:
    x, y = np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32)
    x.flags.writeable = False
    described = {"x": Descriptor("ARRAY", "float", (2, 3)), "y": Descriptor("ARRAY", "float", (2, 3))}
    values: dict[str, Any] = {
        "op": op,
        "inputs": {"x": x},
        "outputs": {"y": y},
        "params": {"k": 3, "pad": [1, 2]},
        "descriptors": described,
        "faults": tuple(map(Fault.parse, faults)),
    }
    return Call(**(values | changes))


def psamask_call(faults: tuple[str, ...] = (), **descriptors: Any) -> Call:
    """A legal call of an operator with a contract, but for the given descriptors and faults."""
    x, y = np.ones((1, 2, 3, 9), np.float32), np.zeros((1, 2, 3, 6), np.float32)
    described: dict[str, Any] = {
        "x": Descriptor("NHWC", "float", (1, 2, 3, 9)),
        "y": Descriptor("NHWC", "float", (1, 2, 3, 6)),
    }
    params = {"psa_type": 0, "h_mask": 3, "w_mask": 3}
    return Call("psamask_forward", {"x": x}, {"y": y}, params, described | descriptors, tuple(map(Fault.parse, faults)))


def test_a_plain_function_gets_the_four() -> None:
    seen: list[Any] = []

    def kernel(op: str, inputs: Any, outputs: Any, params: Any) -> None:
        seen.extend((op, inputs["x"].flags.writeable, params))
        outputs["y"][...] = inputs["x"]

    call = make_call()
    outcome = CallableKernel(kernel)(call)
    assert seen == ["alien_op", False, {"k": 3, "pad": [1, 2]}]
    assert (call.outputs["y"] == 1).all()  # type: ignore[union-attr]
    assert outcome.status == "SUCCESS"
    assert outcome.latency_us is not None
    assert outcome.latency_us > 0


@pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")
def test_what_a_callable_makes_of_its_arguments_stays_with_it() -> None:
    seen: list[Any] = []

    def kernel(op: str, inputs: Any, outputs: Any, params: Any, descriptors: Any) -> int:
        x, y = inputs["x"], outputs["y"]
        seen.append((x.shape, x.dtype, x.flags.writeable, y.shape, y.dtype, y.strides, *params["pad"], *descriptors))
        x.dtype = np.int16
        x.shape = (-1,)
        y.strides = (4, 8)
        y.dtype = np.dtype(">f4")
        params["pad"].append(9)
        descriptors.clear()
        return 0

    kernel.workspace_size = kernel  # type: ignore[attr-defined]
    call = make_call()
    adapted = CallableKernel(kernel)
    adapted(call)
    adapted(call)
    assert seen == [((2, 3), np.float32, False, (2, 3), np.float32, (12, 4), 1, 2, "x", "y")] * 4
    x, y = call.inputs["x"], call.outputs["y"]
    assert x is not None
    assert y is not None
    assert (x.shape, x.dtype, y.shape, y.dtype, y.strides) == ((2, 3), np.float32, (2, 3), np.float32, (12, 4))
    assert call.params == {"k": 3, "pad": [1, 2]}


@pytest.mark.parametrize(
    ("answer", "status", "scalars"),
    [
        (None, "SUCCESS", {}),
        (0, "SUCCESS", {}),
        (3, "BAD_PARAM", {}),
        (np.int64(7), "NOT_SUPPORTED", {}),
        ("SUCCESS", "SUCCESS", {}),
        ("MLUOP_STATUS_BAD_PARAM", "BAD_PARAM", {}),
        ({}, "SUCCESS", {}),
        ({"num_act_out": np.int32(5)}, "SUCCESS", {"num_act_out": 5}),
        ({"status": 3, "num_act_out": 0}, "BAD_PARAM", {"num_act_out": 0}),
    ],
)
def test_answers(answer: Any, status: str, scalars: dict[str, int]) -> None:
    outcome = CallableKernel(lambda op, inputs, outputs, params: answer)(make_call())
    assert (outcome.status, outcome.scalars) == (status, scalars)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (True, "returned a value of type bool, expected None, a status"),
        (1.5, "returned a value of type float, expected None, a status"),
        ([0], "returned a value of type list, expected None, a status"),
        (np.zeros((2, 3), np.int32), "returned a value of type ndarray, expected None, a status"),
        (9, "returned an unknown operator status 9: expected one of SUCCESS, "),
        ("FINE", "returned an unknown operator status 'FINE': expected one of SUCCESS, "),
        ({"n": 1.5}, "returned n as a value of type float, expected a whole number"),
        ({"y": np.zeros((2, 3))}, "returned y as a value of type ndarray, expected a whole number"),
        ({"status": {"status": 0}}, "returned a value of type dict, expected None, a status"),
    ],
)
def test_answers_that_are_none(answer: Any, reason: str) -> None:
    with pytest.raises(BadAnswer, match=f"^{re.escape(reason)}"):
        CallableKernel(lambda op, inputs, outputs, params: answer)(make_call())


@pytest.mark.parametrize(
    ("call", "allowed"), [(psamask(), "status"), (get_indice_pairs(), "status and num_act_out")], ids=["none", "one"]
)
def test_a_dict_has_the_scalars_of_the_contract_only(call: Call, allowed: str) -> None:
    for key in ("Status", "statuss", "num_act"):
        with pytest.raises(BadAnswer, match=f"^returned a dict with the key '{key}', expected only {allowed}$"):
            CallableKernel(lambda op, inputs, outputs, params, key=key: {key: 3})(call)
    answer = dict.fromkeys(allowed.split(" and "), 3)
    assert CallableKernel(lambda op, inputs, outputs, params: answer)(call).status == "BAD_PARAM"


class Full:
    """Takes everything there is; SUCCESS unless something is omitted."""

    def __init__(self) -> None:
        self.params: Any = None
        self.asked = 0

    def __call__(self, op: str, inputs: Any, outputs: Any, params: Any, descriptors: Any, handle: Any) -> int:
        self.params = params
        whole = all((handle, *descriptors.values())) and inputs["x"] is not None
        workspace = params["workspace"]
        return 0 if whole and workspace is not None and workspace.nbytes >= WORKSPACE else 3

    def workspace_size(self, op: str, inputs: Any, outputs: Any, params: Any, size: Any) -> int:
        self.asked += 1
        if size is None:
            return 3
        size[0] = WORKSPACE
        return 0


def test_workspace_of_the_size_it_asks_for() -> None:
    kernel = Full()
    outcome = CallableKernel(kernel)(make_call())
    assert (outcome.status, outcome.workspace_bytes) == ("SUCCESS", WORKSPACE)
    workspace = kernel.params["workspace"]
    assert (workspace.dtype, workspace.nbytes, workspace.flags.writeable) == (np.uint8, WORKSPACE, True)


@pytest.mark.parametrize(
    "fault", ["null_handle", "null_workspace_size", "workspace:null", "workspace:short", "null_descriptor:x"]
)
def test_every_fault_can_be_shown_to_one_that_looks(fault: str) -> None:
    changes: dict[str, Any] = {"descriptors": {"x": None, "y": None}} if fault.startswith("null_descriptor") else {}
    assert CallableKernel(Full())(make_call(faults=(fault,), **changes)).status == "BAD_PARAM"


def test_workspace_size_is_asked_only_of_whole_calls() -> None:
    kernel = Full()
    adapted = CallableKernel(kernel)
    assert adapted(make_call(inputs={"x": None})).status == "BAD_PARAM"
    adapted(psamask_call(x=Descriptor("NHWC", "half", (1, 2, 3, 9))))
    assert kernel.asked == 0
    # What it is given instead is enough: its status must not come from a missing workspace.
    assert kernel.params["workspace"].nbytes >= WORKSPACE
    adapted(psamask_call())
    assert kernel.asked == 1


def plain(op: str, inputs: Any, outputs: Any, params: Any) -> None:
    """Takes no keyword of ours."""


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (psamask_call(("null_handle",)), "no keyword 'handle'"),
        (psamask_call(("null_descriptor:x",), x=None), "no keyword 'descriptors'"),
        (psamask_call(x=Descriptor("NCHW", "float", (1, 2, 3, 9))), "layout NCHW"),
        (psamask_call(x=Descriptor("NHWC", "float", (1, 2, 3, 9), (108, 54, 18, 2))), "strided"),
        (psamask_call(("workspace:null",)), "no workspace_size"),
        (psamask_call(("workspace:short",)), "no workspace_size"),
        (psamask_call(("null_workspace_size",)), "no workspace_size that takes the keyword 'size'"),
    ],
)
def test_what_cannot_be_shown_is_a_skip(call: Call, reason: str) -> None:
    with pytest.raises(CannotShow, match=reason):
        CallableKernel(plain)(call)


def test_a_large_tensor_is_no_null_pointer() -> None:
    sizes = (1, 40000, 40000, 9)
    call = psamask_call(
        x=Descriptor("NHWC", "float", sizes), y=Descriptor("NHWC", "float", (1, 40000, 40000, 40000**2))
    )
    with pytest.raises(CannotShow, match="elements"):
        CallableKernel(plain)(call)


def test_what_arrays_show_needs_no_descriptors() -> None:
    seen: list[Any] = []

    def kernel(op: str, inputs: Any, outputs: Any, params: Any) -> str:
        seen.append(inputs["x"])
        return "BAD_PARAM"

    adapted = CallableKernel(kernel)
    assert adapted(psamask_call(x=Descriptor("NHWC", "half", (1, 2, 3, 9)))).status == "BAD_PARAM"
    null = psamask_call(("null_pointer:x",))
    omitted = Call(null.op, {"x": None}, null.outputs, null.params, null.descriptors, null.faults)
    assert adapted(omitted).status == "BAD_PARAM"
    assert seen[-1] is None


def test_descriptors_as_attributes_and_items() -> None:
    def kernel(op: str, inputs: Any, outputs: Any, params: Any, *, descriptors: Any = None) -> int:
        x = descriptors["x"]
        assert (x.layout, x["dtype"], x.dims, x["strides"]) == ("ARRAY", "float", (2, 3), None)
        return 0

    assert CallableKernel(kernel)(make_call()).status == "SUCCESS"


def test_keywords_of_all_kinds() -> None:
    def kernel(op: str, inputs: Any, outputs: Any, params: Any, **more: Any) -> dict[str, int]:
        return dict.fromkeys(more, 1)

    assert CallableKernel(kernel)(make_call()).scalars == {"descriptors": 1, "handle": 1}


def test_a_plain_workspace_size_and_one_on_a_function() -> None:
    def kernel(op: str, inputs: Any, outputs: Any, params: Any) -> None:
        params["workspace"][...] = 1

    kernel.workspace_size = lambda op, inputs, outputs, params: inputs["x"].nbytes  # type: ignore[attr-defined]
    assert CallableKernel(kernel)(make_call()).workspace_bytes == 24
    kernel.workspace_size = lambda op, inputs, outputs, params: -1  # type: ignore[attr-defined]
    with pytest.raises(BadAnswer, match="expected 0 or more"):
        CallableKernel(kernel)(make_call())
    for size in (None, 1.5):
        kernel.workspace_size = lambda op, inputs, outputs, params, found=size: found  # type: ignore[attr-defined]
        with pytest.raises(BadAnswer, match=f"^workspace_size returned a value of type {type(size).__name__}, "):
            CallableKernel(kernel)(make_call())
    kernel.workspace_size = lambda op, inputs, outputs, params: 0  # type: ignore[attr-defined]
    with pytest.raises(CannotShow, match="0 bytes"):
        CallableKernel(kernel)(make_call(faults=("workspace:short",)))


def test_writing_behind_the_workspace_is_seen() -> None:
    def kernel(op: str, inputs: Any, outputs: Any, params: Any) -> None:
        workspace = params["workspace"]
        np.lib.stride_tricks.as_strided(workspace, (workspace.nbytes + 1,))[-1] = 0

    kernel.workspace_size = lambda op, inputs, outputs, params: 10  # type: ignore[attr-defined]
    with pytest.raises(OutOfBounds, match="workspace: written out of bounds, directly behind the end"):
        CallableKernel(kernel)(make_call())


def test_no_call_finds_zeros_in_its_workspace_or_what_another_left_there() -> None:
    found: list[Any] = []

    def kernel(op: str, inputs: Any, outputs: Any, params: Any) -> None:
        found.append((params["workspace"].view(np.float32).copy(), params["workspace"].view(np.int32).copy()))
        params["workspace"][...] = 0

    kernel.workspace_size = lambda op, inputs, outputs, params: 1 << 20  # type: ignore[attr-defined]
    for _ in range(3):
        CallableKernel(kernel)(make_call())
    assert len(found) == 3
    assert all(np.isnan(floats).all() and (integers == -1).all() for floats, integers in found)


def test_a_refused_workspace_is_the_status_of_the_call() -> None:
    def never(op: str, inputs: Any, outputs: Any, params: Any) -> None:
        raise AssertionError

    never.workspace_size = lambda op, inputs, outputs, params, size: "NOT_SUPPORTED"  # type: ignore[attr-defined]
    outcome: Outcome = CallableKernel(never)(make_call())
    assert outcome.status == "NOT_SUPPORTED"


def test_a_builtin_without_a_signature_is_called_plainly() -> None:
    target: Callable[..., Any] = dict.fromkeys  # has no readable signature for our keywords
    assert CallableKernel(target).keywords == ()


class Deferred:
    """Work that is only started by the call, as on a device with a queue."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def __call__(self, op: str, inputs: Any, outputs: Any, params: Any) -> None:
        def work() -> None:
            time.sleep(0.05)
            outputs["y"][...] = inputs["x"]

        self.waiting.append(work)

    def synchronize(self) -> None:
        while self.waiting:
            self.waiting.pop()()


def test_work_that_is_only_started_is_waited_for_and_timed() -> None:
    call = make_call()
    outcome = CallableKernel(Deferred())(call)
    assert (call.outputs["y"] == 1).all()  # type: ignore[union-attr]
    assert outcome.latency_us is not None
    assert outcome.latency_us >= 50_000


def test_work_of_before_does_not_count() -> None:
    kernel = Deferred()
    kernel.waiting.append(lambda: time.sleep(0.5))
    outcome = CallableKernel(kernel)(make_call())
    assert outcome.latency_us is not None
    assert outcome.latency_us < 500_000


def test_a_class_with_workspace_and_synchronize(tmp_path: Path) -> None:
    source = tmp_path / "kernels.py"
    source.write_text(
        "class Kernel:\n"
        "    def __init__(self): self.calls, self.waited = 0, 0\n"
        "    def __call__(self, op, inputs, outputs, params):\n"
        "        self.calls += 1\n"
        "        return {'calls': self.calls, 'waited': self.waited, 'bytes': params['workspace'].nbytes}\n"
        "    def workspace_size(self, op, inputs, outputs, params): return 24\n"
        "    def synchronize(self): self.waited += 1\n"
    )
    implementation = Python(f"{source}:Kernel")
    assert implementation.call(make_call()).scalars == {"calls": 1, "waited": 1, "bytes": 24}
    assert implementation.call(make_call()).scalars == {"calls": 2, "waited": 3, "bytes": 24}


def test_d13_the_example_kernel_has_one_fault(suites: Path, run: Callable[..., Any]) -> None:
    kernel = PROJECT / "examples" / "python_kernel" / "faulty_psamask.py"
    ran = run(suites / "psamask_forward", "--suite", "demo,boundary", "--impl", f"python:{kernel}:psamask", "-j", "1")
    statuses: dict[str, set[str]] = {"even": set(), "odd": set()}
    for file in sorted((suites / "psamask_forward").rglob("*.pb")):
        case = f"psamask_forward/{file.parent.name}/{file.stem}"
        if case in ran.statuses:
            with read_case(file) as read:
                width = read.node.psamask_forward_param.w_mask
            statuses["odd" if width % 2 else "even"].add(ran.statuses[case])
    assert "fail" in statuses["even"]
    assert statuses["odd"] <= {"pass", "empty"}
