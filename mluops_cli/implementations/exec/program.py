"""One run of the program: what it prints goes where the worker's output goes, its end is a status or a crash."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from typing import Final

from mluops_cli.implementations.base import Crashed
from mluops_cli.processes.process_tree import children, die_with_parent, end_children
from schemas.status import STATUS_NAMES, SUCCESS

STATUS_BASE: Final = 64  # exit code 64+n is the operator status n


def run_program(command: Sequence[str]) -> str:
    """Run it to its end and return the operator status it answers with; Crashed for any other end."""
    # It stays in the worker's group: a timeout kills it together with the worker, and with all it has started.
    others = children()
    # The system ends it where the worker is killed before it can end anything itself.
    code = subprocess.run(command, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent).returncode
    end_children(spared=others)  # what it has left running would go on in its room
    if code == 0:
        return SUCCESS
    if code - STATUS_BASE in STATUS_NAMES:
        return STATUS_NAMES[code - STATUS_BASE]
    if code < 0:
        raise Crashed(f"the program died of signal {-code} ({_signal_name(-code) or 'unknown'})")
    # What a shell, or a program that starts another, makes of the other's signal.
    signalled = _signal_name(code - 128)
    through = f", signal {code - 128} ({signalled}) of what it ran" if signalled else ""
    raise Crashed(f"the program ended with exit code {code}{through}: expected 0 or {STATUS_BASE} + an operator status")


def _signal_name(number: int) -> str | None:
    try:
        return signal.Signals(number).name
    except ValueError:
        return None
