"""A run whose kernel processes are those of `hostile`, and a count of the frames that its workers read of them.

Workers are forked and not spawned, so that a new one takes milliseconds. Nothing else of a run is replaced.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import sys
from pathlib import Path
from typing import Any, Final

import mluops_cli.execution.case.case_run  # noqa: F401 - before the fork
from generators.operator_registry import operators
from mluops_cli.execution.kernel_process import kernel_handle
from mluops_cli.execution.kernel_process.kernel_handle import BrokenKernel, KernelEnded, KernelProcess
from mluops_cli.execution.kernel_process.timed_call import Timed
from mluops_cli.implementations.base import Call
from mluops_cli.main import main

_BOOT: Final = (
    "import sys; sys.path[:] = eval(sys.argv[1]); "
    "from tests.mluops_cli.execution.kernel_process.hostile import main; main(*eval(sys.argv[2]), **{})"
)


def hostile_run(read: Path, plan: Any, arguments: list[str]) -> None:
    """`mluops run` with these arguments; a line per frame that is read is added to a file."""
    operators()
    gc.freeze()  # so that a forked process shares the memory of what there is
    written = os.open(read, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    fork, timed_call = multiprocessing.get_context("fork"), KernelProcess.timed_call

    def counted(kernel: KernelProcess, call: Call) -> Timed:
        """timed_call, which also writes down the number of the case and what became of the frame."""
        kernel.check()  # what arrived between the calls is not read
        x = call.inputs["x"]
        assert x is not None
        became = ["taken"]
        try:
            return timed_call(kernel, call)
        except BrokenKernel:
            became = ["refused"]
            raise
        except KernelEnded:
            became = ["cut"] if kernel._reader else []
            raise
        finally:
            if became == ["taken"] and kernel._reader:
                became.append("behind")
            os.write(written, "".join(f"{int(x[0])} {each}\n" for each in became).encode())

    KernelProcess.timed_call = counted  # type: ignore[assignment, method-assign]
    kernel_handle._BOOT = _BOOT.format(plan)  # type: ignore[misc]
    multiprocessing.get_context = lambda method=None: fork  # type: ignore[assignment]
    main(["run", *arguments])


if __name__ == "__main__":
    hostile_run(Path(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3:])
