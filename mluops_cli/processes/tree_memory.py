"""The memory that process trees hold, from one scan of /proc for all of them."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

from mluops_cli.processes.process_tree import parent_of

_PROC: Final = Path("/proc")
_OWN: Final = re.compile(rb"^(?:RssAnon|RssShmem|VmSwap):\s+(\d+) kB", re.M)
_MAPPING: Final = re.compile(rb"^[0-9a-f]+-[0-9a-f]+ (\S+) \S+ \S+ (\d+) *(.*)$")
_SHARED: Final = (b"/dev/zero", b"/memfd:", b"/dev/shm/", b"/SYSV")  # names of shared memory that is no file on a disk
_NAMELESS: Final = b" (deleted)"  # end of the name of a file that only its mappings hold, such as one of memfd_create
_KIB: Final = 1024


def process_trees(roots: Collection[int]) -> dict[int, list[int]]:
    """The ids of each root and its descendants, the root first, from one scan of all processes."""
    children: dict[int, list[int]] = defaultdict(list)
    for process in psutil.process_iter(["ppid"]) if sys.platform != "linux" else ():
        children[process.info["ppid"]].append(process.pid)
    for entry in _PROC.iterdir() if sys.platform == "linux" else ():
        if entry.name.isdigit() and (parent := parent_of(entry)) is not None:
            children[parent].append(int(entry.name))
    trees = {}
    for root in roots:
        tree = [root]
        for pid in tree:  # the list grows in the loop
            tree += children.get(pid, ())
        trees[root] = tree
    return trees


def memory_held(pids: Iterable[int], limit: int) -> int:
    """Bytes that processes hold: anonymous and shared memory, but no mapped files, whose pages the kernel can drop.

    A result above limit is exact. One below it counts a page that several of the processes share once for each.
    """
    pids = list(pids)
    if sys.platform != "linux":
        return sum(map(_portable, pids))
    bound = sum(map(_bound, pids))
    return bound if bound <= limit else sum(map(_exact, pids))


def _portable(pid: int) -> int:
    with suppress(psutil.Error):
        memory = psutil.Process(pid).memory_info()
        return int(memory.rss) - int(getattr(memory, "shared", 0))
    return 0


def _bound(pid: int) -> int:
    """An upper bound for one process; reading smaps takes far longer."""
    try:
        return sum(int(number) for number in _OWN.findall((_PROC / str(pid) / "status").read_bytes())) * _KIB
    except OSError:
        return 0


def _exact(pid: int) -> int:
    """The memory of one process, each shared page divided by the number of processes that share it.

    Files on a memory file system count only where they are mapped for writing, or have no name any more.
    """
    try:
        lines = (_PROC / str(pid) / "smaps").read_bytes().splitlines()
    except OSError:  # it runs as another user, or has ended
        return _bound(pid)
    held, counts = 0, False
    for line in lines:
        if match := _MAPPING.match(line):
            permissions, inode, name = match.groups()
            own = b"w" in permissions or name.endswith(_NAMELESS)
            counts = inode == b"0" or (own and name.startswith(_SHARED))
        elif counts and line.startswith((b"Pss:", b"SwapPss:")):
            held += int(line.split()[1]) * _KIB
    return held
