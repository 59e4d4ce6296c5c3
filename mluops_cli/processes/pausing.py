"""Stop all processes that a process has started, and let them go on. Linux only: elsewhere none is stopped."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from mluops_cli.processes.process_tree import state_of
from mluops_cli.processes.tree_memory import process_trees

_PATIENCE: Final = 0.1  # seconds in which a process stops; one that waits for a device may take longer
_STEP: Final = 0.0001
_STOPPED: Final = "TtZX"  # states of proc(5): stopped, stopped by a debugger, ended


def pause_below(root: int) -> list[int]:
    """Stop the descendants of a process, for resume(); those that it starts meanwhile too."""
    paused: list[int] = []
    seen: set[int] = set()
    while found := _below(root) - seen:
        seen |= found
        for pid in found:
            if state_of(pid) not in _STOPPED:  # a process that something else has stopped stays stopped
                with suppress(OSError):  # it has ended, or it runs as another user
                    os.kill(pid, signal.SIGSTOP)
                    paused.append(pid)
        end = time.monotonic() + _PATIENCE
        while any(state_of(pid) not in _STOPPED for pid in paused) and time.monotonic() < end:
            time.sleep(_STEP)
    return paused


def resume(paused: list[int]) -> None:
    """Let processes go on, and empty the list."""
    while paused:
        with suppress(OSError):
            os.kill(paused.pop(), signal.SIGCONT)


def _below(root: int) -> set[int]:
    return set(process_trees([root])[root][1:]) if _may_have_children(root) else set()


def _may_have_children(pid: int) -> bool:
    """Whether a process has started another one, which takes far less time to ask than which; True where unknown."""
    if sys.platform != "linux":
        return False
    tasks = f"/proc/{pid}/task"
    try:
        return any(Path(tasks, task, "children").read_bytes() for task in os.listdir(tasks))
    except OSError:  # a thread has just ended, or the system doesn't tell
        return True
