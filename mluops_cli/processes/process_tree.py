"""Processes as kin: to die with one's parent, to take in orphans, to end all one's children; on Linux alone."""

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
    """Be sent this signal as soon as the parent ends (the thread of it that made us, to be exact)."""
    if sys.platform == "linux":
        _libc.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)


def become_subreaper() -> None:
    """From now on what our descendants leave running when they end becomes our child, not that of init."""
    if sys.platform == "linux":
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children() -> set[int]:
    """The processes whose parent we are, those included that have ended and that nobody has waited for."""
    if sys.platform != "linux":
        return set()
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # there is none: no need to look at every process
        return set()
    return {int(entry.name) for entry in Path("/proc").glob("[0-9]*") if _parent(entry) == os.getpid()}


def end_children(spared: Collection[int] = ()) -> None:
    """Kill our children but for the spared ones, and those of theirs that come to us by it, until none is left."""
    left = set(spared)
    while doomed := children() - left:
        for pid in doomed:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:  # it runs as another user: no waiting for it
                left.add(pid)
        for pid in doomed - left:
            with suppress(OSError):
                os.waitpid(pid, 0)


def _parent(process: Path) -> int | None:
    try:
        # The name, in parentheses, may hold anything; behind it come the state and the parent.
        return int((process / "stat").read_bytes().rpartition(b")")[2].split()[1])
    except (OSError, IndexError):  # it has gone meanwhile
        return None
