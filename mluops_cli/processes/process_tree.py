"""The process tree: end with the parent, be the reaper of orphaned descendants, end all children. Linux only.

On other systems the functions do nothing.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_libc: Final = ctypes.CDLL(None)


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Ask the kernel for this signal when the parent ends, exactly: its thread that forked this process."""
    if sys.platform == "linux":
        _libc.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)


def become_subreaper() -> None:
    """Make this process the child subreaper: orphaned descendants become its children, not those of init."""
    if sys.platform == "linux":
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children() -> set[int]:
    """The ids of this process's children, zombies included."""
    if sys.platform != "linux":
        return set()
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # there are none: /proc needs no look
        return set()
    return {int(entry.name) for entry in Path("/proc").glob("[0-9]*") if parent_of(entry) == os.getpid()}


def end_children(spared: Collection[int] = ()) -> None:
    """Kill this process's children except the spared ones, then the orphans that it inherits, until none is left."""
    left = set(spared)
    while doomed := children() - left:
        for pid in doomed:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:  # it runs as another user: it is not waited for
                left.add(pid)
        for pid in doomed - left:
            with suppress(OSError):
                os.waitpid(pid, 0)


def parent_of(process: Path) -> int | None:
    """The parent of the process with this folder of /proc; None where it has ended."""
    try:
        return int(_status(process)[1])
    except (OSError, IndexError):
        return None


def state_of(pid: int) -> str:
    """The state of a process, a letter of proc(5); X where it has ended."""
    try:
        return _status(Path("/proc", str(pid)))[0].decode()
    except (OSError, IndexError):
        return "X"


def _status(process: Path) -> list[bytes]:
    """State, parent and more of the process with this folder of /proc."""
    # The name, in parentheses, may hold any bytes.
    return (process / "stat").read_bytes().rpartition(b")")[2].split()
