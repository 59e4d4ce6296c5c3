"""Notes that the forks of a process write, for the process itself to read."""

from __future__ import annotations

import mmap
import os
from typing import Final

_SLOTS: Final = 16
_SLOT: Final = 1 << 20  # bytes, which take memory when they are written to
_END: Final = b"\0"  # of a note, and once more of all


class ForkedNotes:
    """Memory that is shared with all forks; each writes into a slot.

    Where two have to share one, the later overwrites. A note is a text without NUL. What has no room is lost.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _SLOTS * _SLOT)
        self._writer = os.getpid()
        self._end = 0

    def write(self, note: str) -> None:
        """Add a note of this process, which is a fork."""
        if os.getpid() != self._writer:
            self._writer, self._end = os.getpid(), 0
        start, data = self._writer % _SLOTS * _SLOT + self._end, os.fsencode(note) + _END
        if self._end + len(data) < _SLOT:
            self._memory[start : start + len(data)] = data
            self._end += len(data)

    def read(self) -> list[str]:
        """All notes of all forks until now, some perhaps twice."""
        found = []
        for start in range(0, len(self._memory), _SLOT):
            if self._memory[start]:
                end = self._memory.find(_END + _END, start, start + _SLOT)
                found += self._memory[start:end].split(_END)
        return [os.fsdecode(each) for each in found]
