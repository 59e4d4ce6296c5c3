"""Implementations that change the processor's floating-point mode: they keep it, the judge notices nothing."""

from __future__ import annotations

import ctypes
import platform
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mluops_cli.core.case_options import CaseOptions, WorkerSettings
from mluops_cli.execution.case import calls
from mluops_cli.execution.case.case_run import run_case
from mluops_cli.execution.case.judgement import judge_outputs
from mluops_cli.execution.kernel_process.floating_point import FloatMode, require_subnormals
from mluops_cli.implementations.python import Python
from schemas.casefiles.reading import write_case
from schemas.errors import MluopsError
from tests.mluops_cli.conftest import Cli
from tests.mluops_cli.execution.conftest import add_tensor, case_node

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc",
    reason="sets the mode where glibc keeps it on x86-64",
)

# As a library that is built with -ffast-math does when it is loaded: flush to zero, denormals are zero.
FLUSH = """
import ctypes
import numpy as np

mode = ctypes.create_string_buffer(64)
ctypes.CDLL(None).fegetenv(mode)
register = np.frombuffer(mode, np.uint32, 1, 28)
register |= 0x8040
ctypes.CDLL(None).fesetenv(mode)
"""
KERNEL = '''

def flushes():
    return not (np.full(1, 1e-39, np.float32) * np.float32(1)).any()

def wrong(op, inputs, outputs, params):
    """One ULP beside the right value, in half; the mode set above has to hold in every call."""
    if not flushes():
        raise RuntimeError("the mode is gone")
    np.copyto(outputs["out"], inputs["in"])
    outputs["out"].view(np.uint16)[7] += 1

def right(op, inputs, outputs, params):
    np.copyto(outputs["out"], inputs["in"])

def turns_nearest_off(op, inputs, outputs, params):
    ctypes.CDLL(None).fesetround(0x800)  # upward
    np.seterr(all="raise")
    np.copyto(outputs["out"], inputs["in"])
'''


def flush_subnormals() -> None:
    exec(FLUSH, {})


def subnormals_count() -> bool:
    return bool((np.full(1, 1e-39, np.float32) * np.float32(1)).any())


@pytest.fixture
def case(tmp_path: Path) -> Path:
    """A copy of small halves, whose ULP is a subnormal number in the judge's quick way."""
    node = case_node("alien_op", suite="")
    for tensors, name in ((node.input, "in"), (node.output, "out")):
        add_tensor(tensors, name, (4096,), "HALF", "ARRAY")
    node.evaluation_criterion.append(
        node.DESCRIPTOR.fields_by_name["evaluation_criterion"].enum_type.values_by_name["DIFF1"].number
    )
    node.evaluation_threshold.append(0.0)
    values = np.random.default_rng(0).uniform(0.005, 0.01, 4096).astype(np.float16)
    path = tmp_path / "case.pb"
    write_case(path, node, [values], [values])
    return path


@pytest.mark.parametrize(("name", "code"), [("wrong", 1), ("right", 0), ("turns_nearest_off", 0)])
def test_the_verdict_is_the_same(name: str, code: int, case: Path, cli: Cli) -> None:
    kernel = case.with_name("kernel.py")
    kernel.write_text(FLUSH + KERNEL)
    ran = cli("run", case, "--impl", f"python:{kernel}:{name}", "--repeat", "3", "--out", case.with_name("out"))
    assert ran.code == code, ran.out
    assert ("1 of 4096 elements wrong" in ran.out) == (name == "wrong")


def test_a_mode_that_is_set_while_judging_is_no_pass(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a signal handler or a callback of the garbage collector can."""

    def interrupted(*arguments: Any) -> Any:
        judged = judge_outputs(*arguments)
        flush_subnormals()
        return judged

    monkeypatch.setattr(calls, "judge_outputs", interrupted)
    kernel = case.with_name("kernel.py")
    kernel.write_text("import numpy as np\n" + KERNEL)
    with FloatMode().of_implementation():  # and ours again for the tests after this one
        result = run_case(
            {"file": str(case), "manifest_meta": None}, Python(f"{kernel}:right"), WorkerSettings(CaseOptions("python"))
        )
    assert (result["status"], result["blame"], result["retire"]) == ("error", "implementation", True)
    assert result["reason"].startswith("set another floating-point mode while the outputs were judged")


def test_each_side_finds_its_mode_again() -> None:
    mode, library = FloatMode(), ctypes.CDLL(None)
    for round_to in (0x800, 0x400, 0):
        with mode.of_implementation():
            library.fesetround(round_to)
        assert library.fegetround() == 0
        with mode.of_implementation():
            assert library.fegetround() == round_to
    with mode.of_implementation(), np.errstate():
        flush_subnormals()
        assert not subnormals_count()
    assert subnormals_count()
    with mode.of_implementation():
        assert not subnormals_count()


def test_a_mode_survives_an_exception() -> None:
    mode = FloatMode()

    def call() -> None:
        flush_subnormals()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), mode.of_implementation():
        call()
    assert subnormals_count()


def test_where_the_mode_can_not_be_set_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    outer, mode = FloatMode(), FloatMode()
    monkeypatch.setattr(mode, "_library", None)
    with (
        outer.of_implementation(),
        pytest.raises(MluopsError, match="subnormal numbers count as 0"),
        mode.of_implementation(),
    ):
        flush_subnormals()
    require_subnormals()
