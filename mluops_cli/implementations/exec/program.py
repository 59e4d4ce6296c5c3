"""One run of the program. What it prints goes to the worker's output; its exit code is a status or a crash."""

from __future__ import annotations

import errno
import signal
import subprocess
from collections.abc import Sequence
from typing import Final

from mluops_cli.implementations.base import AdapterError, Crashed
from mluops_cli.processes.process_tree import children, die_with_parent, end_children
from schemas.casefiles.reading import SHORT
from schemas.status import STATUS_NAMES, SUCCESS

STATUS_BASE: Final = 64  # exit code 64+n is the operator status n


def run_program(command: Sequence[str]) -> str:
    """Run the program to its end and return the operator status of its exit code; Crashed for any other exit code."""
    # It stays in the worker's process group: a timeout kills the worker, the program and all that it has started.
    others = children()
    # die_with_parent: the system ends the program where the worker is killed before it can do so.
    code = _exit_code(command)
    end_children(spared=others)  # processes that it left running would go on writing to its files
    if code == 0:
        return SUCCESS
    if code - STATUS_BASE in STATUS_NAMES:
        return STATUS_NAMES[code - STATUS_BASE]
    if code < 0:
        raise Crashed(f"the program died of signal {-code} ({_signal_name(-code) or 'unknown'})")
    # A shell, or a program that starts another one, reports the other's signal so.
    signalled = _signal_name(code - 128)
    through = f", signal {code - 128} ({signalled}) of what it ran" if signalled else ""
    raise Crashed(f"the program ended with exit code {code}{through}: expected 0 or {STATUS_BASE} + an operator status")


def _exit_code(command: Sequence[str]) -> int:
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent).returncode
    except OSError as error:
        if error.errno in (
            *SHORT,
            errno.EAGAIN,
        ):  # the machine is short of something
            raise AdapterError(f"exec: can't start the program: {error.strerror}") from error
        raise


def _signal_name(number: int) -> str | None:
    try:
        return signal.Signals(number).name
    except ValueError:
        return None
