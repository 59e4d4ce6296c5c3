"""Kernels that fork: right ones pass, and what they leave running changes no output that is judged."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mluops_cli.core.case_options import CaseOptions
from mluops_cli.implementations.base import Call, OutOfBounds
from tests.mluops_cli.execution.conftest import wait_until, write_psamask
from tests.mluops_cli.execution.kernel_process import forking
from tests.mluops_cli.execution.kernel_process.conftest import Started

FORKING = f"python:{Path(forking.__file__)}"


@pytest.mark.parametrize("kernel", ["new_pool", "old_pool", "child_writes", "child_of_c_writes"])
def test_a_right_kernel_may_fork(kernel: str, tmp_path: Path, run: Any) -> None:
    for number in range(2):
        write_psamask(tmp_path / "cases", f"case{number}", h_mask=3 + 2 * number)
    ran = run(tmp_path / "cases", "--impl", f"{FORKING}:{kernel}", "-j", "1", "--repeat", "2", "--timeout", "30")
    assert set(ran.statuses.values()) == {"pass"}
    assert ran.code == 0


@pytest.mark.skipif(sys.platform != "linux", reason="processes are stopped on Linux")
def test_a_forked_process_stands_still_between_calls(started: Started) -> None:
    kernel = started(CaseOptions(impl=f"{FORKING}:child_goes_on"))
    assert kernel.await_ready().problem is None
    y = kernel.memory.allocate(400).view(np.float32).reshape(1, 2, 5, 10)
    call = Call("an_operator_of_others", {}, {"y": y}, {}, {})
    for _ in range(2):
        with suppress(OutOfBounds):  # it is seen that outputs are written before the process is stopped
            kernel.timed_call(call)
        before = y.tobytes()
        assert y.any()
        time.sleep(0.2)
        assert y.tobytes() == before
    kernel.flush_cache()  # any request lets it go on
    wait_until(lambda: y.tobytes() != before)
