"""Kernel processes that tests start themselves, without the reaper of a worker."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest

from mluops_cli.core.case_options import CaseOptions
from mluops_cli.execution.kernel_process.kernel_handle import KernelProcess
from mluops_cli.processes.tree_memory import process_trees

Started = Callable[[CaseOptions], KernelProcess]


@pytest.fixture
def started() -> Iterator[Started]:
    """Start kernel processes, which end after the test with all that they have started, whatever becomes of it."""
    with ExitStack() as stack:
        yield lambda options: stack.enter_context(_running(options))


@contextmanager
def _running(options: CaseOptions) -> Iterator[KernelProcess]:
    kernel = KernelProcess(options)
    try:
        yield kernel
    finally:
        root = kernel._process.pid
        for pid in reversed(process_trees([root])[root] if kernel._process.poll() is None else ()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        kernel.close()
