"""How much memory trees of processes hold, as one look at /proc tells it for all of them."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

_PROC: Final = Path("/proc")
_OWN: Final = re.compile(rb"^(?:RssAnon|RssShmem|VmSwap):\s+(\d+) kB", re.M)
_MAPPING: Final = re.compile(rb"^[0-9a-f]+-[0-9a-f]+ (\S+) \S+ \S+ (\d+) *(.*)$")
_SHARED: Final = (b"/dev/zero", b"/memfd:", b"/dev/shm/", b"/SYSV")  # memory that has a name, no file of a disk
_KIB: Final = 1024


def process_trees(roots: Collection[int]) -> dict[int, list[int]]:
    """The processes below each root, the root first, from one look at all processes of the system."""
    children: dict[int, list[int]] = defaultdict(list)
    for process in psutil.process_iter(["ppid"]) if sys.platform != "linux" else ():
        children[process.info["ppid"]].append(process.pid)
    for entry in _PROC.iterdir() if sys.platform == "linux" else ():
        if entry.name.isdigit():
            with suppress(OSError, IndexError):  # it has ended meanwhile
                # The name, in parentheses, may hold anything; behind it come the state and the parent.
                parent = int((entry / "stat").read_bytes().rpartition(b")")[2].split()[1])
                children[parent].append(int(entry.name))
    trees = {}
    for root in roots:
        tree = [root]
        for pid in tree:  # grows while it is walked
            tree += children.get(pid, ())
        trees[root] = tree
    return trees


def memory_held(pids: Iterable[int], limit: int) -> int:
    """Bytes that processes hold: their own and shared memory, not the files they have mapped (those can be dropped).

    Above limit the number is exact. Below it pages that several of the processes share count once for each of them.
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
    """What a process can reach of such memory; quick, unlike smaps."""
    try:
        return sum(int(number) for number in _OWN.findall((_PROC / str(pid) / "status").read_bytes())) * _KIB
    except OSError:
        return 0


def _exact(pid: int) -> int:
    """The same with shared pages divided by how many share them, without files in memory that are only read."""
    try:
        lines = (_PROC / str(pid) / "smaps").read_bytes().splitlines()
    except OSError:  # of another user, or ended
        return _bound(pid)
    held, counts = 0, False
    for line in lines:
        if match := _MAPPING.match(line):
            permissions, inode, name = match.groups()
            counts = inode == b"0" or (b"w" in permissions and name.startswith(_SHARED))
        elif counts and line.startswith((b"Pss:", b"SwapPss:")):
            held += int(line.split()[1]) * _KIB
    return held
