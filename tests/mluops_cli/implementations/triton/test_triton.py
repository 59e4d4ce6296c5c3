"""`--impl triton` in the interpreter (`make test-triton`): hand values, pointers out of range, what it can't show."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mluops_cli.implementations.base import Call, CannotShow, OutOfBounds
from mluops_cli.implementations.registry import implementation_named, operators_of
from schemas.errors import InputError, UnavailableError
from schemas.tensor_descriptor import Descriptor
from tests.conftest import PROJECT
from tests.mluops_cli.execution.conftest import SUITE, write_psamask
from tests.mluops_cli.implementations.calls import check_hand_values, output_of, psamask

pytest.importorskip("torch", reason="needs PyTorch and Triton: make test-triton")
pytest.importorskip("triton", reason="needs PyTorch and Triton: make test-triton")
pytestmark = pytest.mark.triton

FAULTY = Path(__file__).parent / "faulty.py"
EXAMPLE = f"{PROJECT}/examples/device_kernels/psamask_triton.py:psamask"
OPERATORS = {
    "psamask_forward", "psamask_backward", "masked_col2im_forward", "masked_im2col_forward", "roi_crop_forward",
    "roi_crop_backward", "voxel_pooling_forward", "get_indice_pairs",
}  # fmt: skip


def made(dtype: str = "float", dims: tuple[int, ...] = (2, 3)) -> Call:
    x, y = np.arange(np.prod(dims), dtype=np.float32).reshape(dims), np.zeros(dims, np.float32)
    x.flags.writeable = False
    return Call("alien_op", {"x": x}, {"y": y}, {}, {name: Descriptor("ARRAY", dtype, dims) for name in "xy"})


def test_its_operators() -> None:
    assert set(operators_of("triton")) == OPERATORS
    assert operators_of(f"triton:{EXAMPLE},interpret") == ()


def test_hand_values() -> None:
    check_hand_values(implementation_named("triton:interpret").call)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"faults": ("null_handle",)}, "BAD_PARAM"),
        ({"descriptors": {"x": Descriptor("NHWC", "float", (1, 1, 2, 3), (12, 12, 6, 2))}}, "NOT_SUPPORTED"),
    ],
)
def test_refusals(changes: dict[str, Any], status: str) -> None:
    assert implementation_named("triton:interpret").call(psamask(**changes)).status == status


def test_scratch_memory_of_a_kernel_is_its_own() -> None:
    call = made()
    implementation_named(f"triton:{FAULTY}:right,interpret").call(call)
    assert (output_of(call, "y") == call.inputs["x"]).all()


@pytest.mark.parametrize(
    ("name", "comment", "message"),
    [
        ("reads_beyond", "copies", "reads directly behind the end of x"),
        ("reads_before", "copies", "reads 8 bytes before the start of x"),
        ("writes_beyond", "stores", "writes directly behind the end of y"),
        ("adds_beyond", "adds", "adds to directly behind the end of y"),
    ],
)
def test_a_pointer_out_of_range_is_named_with_its_line(name: str, comment: str, message: str) -> None:
    lines = FAULTY.read_text(encoding="utf-8").splitlines()
    (line,) = (number for number, text in enumerate(lines, 1) if text.endswith(f"# {comment}"))
    with pytest.raises(OutOfBounds, match=f"faulty.py:{line}: {message}"):
        implementation_named(f"triton:{FAULTY}:{name},interpret").call(made())


def test_faulty_kernels_fail(tmp_path: Path, run: Callable[..., Any]) -> None:
    from .faulty import FIRST, WAYS

    for number, way in enumerate(WAYS):
        write_psamask(tmp_path / "cases", way.__name__, h_mask=FIRST + number)
    ran = run(tmp_path / "cases", "--impl", f"triton:{FAULTY}:everything,interpret", "-j", "1")
    for way, (status, reason) in WAYS.items():
        record = ran.records[f"{SUITE}/{way.__name__}"]
        assert record["status"] == status, record
        assert reason in (record["reason"] or ""), record


def test_what_the_interpreter_can_t_show() -> None:
    implementation = implementation_named(f"triton:{FAULTY}:right,interpret")
    with pytest.raises(CannotShow, match="x is bfloat16, whose arithmetic is wrong in Triton's interpreter"):
        implementation.call(made("bfloat16"))
    with pytest.raises(CannotShow, match="65536 elements, Triton's interpreter is given fewer than 65536"):
        implementation.call(made(dims=(2, 1 << 14)))
    with pytest.raises(CannotShow, match="no kernel for operator abs"):
        implementation_named("triton:interpret").call(Call("abs", {}, {}, {}, {}))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ("device=cpu", InputError, "triton: device is 'cpu'; cpu is the interpreter's"),
        ("device=cuda,interpret", InputError, "triton: device is 'cuda' with interpret; cpu is the interpreter's"),
        ("interpret=1", InputError, "interpret is '1', expected no value"),
        ("interprets", InputError, "triton has no option 'interprets': did you mean 'interpret'"),
        ("device=cuda:99", UnavailableError, "device.*--impl triton:interpret needs none"),
    ],
)
def test_wrong_options(options: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        implementation_named(f"triton:{options}")


def test_every_kernel_compiles_for_a_gpu_that_is_not_there() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    script = Path(__file__).with_name("compiled.py")
    ran = subprocess.run([sys.executable, script], env=environment | {"PYTHONPATH": str(PROJECT)}, check=False)
    assert ran.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("op", sorted(OPERATORS))
def test_the_small_suites_pass(small: Callable[[str], Path], run: Callable[..., Any], op: str) -> None:
    check(run(small(op), "--impl", "triton:interpret", "-j", "1"))


@pytest.mark.slow
def test_the_example_passes_the_small_suites(small: Callable[[str], Path], run: Callable[..., Any]) -> None:
    check(run(small("psamask_forward"), "--impl", f"triton:{EXAMPLE},interpret", "-j", "1"), "takes no keyword")


def check(ran: Any, *reasons: str) -> None:
    """Everything passes, but for what can't be shown."""
    assert ran.code == 0
    assert set(ran.statuses.values()) <= {"pass", "empty", "skip"}
    skipped = {name: record["reason"] for name, record in ran.records.items() if record["status"] == "skip"}
    allowed = ("workspace", "parameters", "Triton's interpreter", *reasons)
    assert all(any(each in reason for each in allowed) for reason in skipped.values()), skipped
    assert list(ran.statuses.values()).count("pass") > len(ran.statuses) / 2
