"""One run of the program: what it prints goes where the worker's output goes, its end is a status or a crash."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from mluops_cli.implementations.base import Crashed
from schemas.status import STATUS_NAMES, SUCCESS

STATUS_BASE: Final = 64  # exit code 64+n is the operator status n
_PR_SET_PDEATHSIG: Final = 1
_libc: Final = ctypes.CDLL(None)


def run_program(command: Sequence[str]) -> str:
    """Run it to its end and return the operator status it answers with; Crashed for any other end."""
    # It stays in the worker's group: a timeout kills it together with the worker, and with all it has started.
    code = subprocess.run(command, stdin=subprocess.DEVNULL, preexec_fn=_die_with_the_worker).returncode
    if code == 0:
        return SUCCESS
    if code - STATUS_BASE in STATUS_NAMES:
        return STATUS_NAMES[code - STATUS_BASE]
    if code < 0:
        raise Crashed(f"the program died of signal {-code} ({_signal_name(-code)})")
    # What a shell, or a program that starts another, makes of the other's signal.
    through = f", signal {code - 128} ({_signal_name(code - 128)}) of what it ran" if code > 128 else ""
    raise Crashed(f"the program ended with exit code {code}{through}: expected 0 or {STATUS_BASE} + an operator status")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def _die_with_the_worker() -> None:
    """In the child: the system ends it where the worker is killed before it can end anything itself."""
    if sys.platform == "linux":
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
