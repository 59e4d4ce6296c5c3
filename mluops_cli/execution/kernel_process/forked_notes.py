"""Notes that the forks of a process write, for the process itself to read."""

from __future__ import annotations

import mmap
import os
from typing import Final

_SLOTS: Final = 64
_SLOT: Final = 1 << 20  # bytes, which take memory when they are written to
_END: Final = b"\0"  # ends a note; a second one ends all notes of a slot


class ForkedNotes:
    """Memory that is shared with all forks; each fork that notes something takes a slot.

    A note is a text without NUL, of at least one letter. What does not fit is lost. Forks that take their slots at the
    same moment may take one, and notes of one of them are lost.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _SLOTS * _SLOT)
        self._writer = os.getpid()
        self._next = self._stop = 0

    def write(self, note: str) -> None:
        """Add a note of this process, which is a fork."""
        if os.getpid() != self._writer:
            self._writer = os.getpid()
            self._next = self._free()
            self._stop = self._next + _SLOT
        data = os.fsencode(note) + _END
        if self._next + len(data) < self._stop:
            self._memory[self._next : self._next + len(data) + 1] = data + _END
            self._next += len(data)

    def read(self) -> list[str]:
        """All notes of all forks until now."""
        found: list[bytes] = []
        for start in self._starts():
            if not self._memory[start]:
                break
            end = self._memory.find(_END + _END, start, start + _SLOT)
            found += self._memory[start:end].split(_END)
        return [os.fsdecode(each) for each in found]

    def _free(self) -> int:
        """Where the first free slot starts; of the last one where none is free, whose notes are lost."""
        return next((start for start in self._starts() if not self._memory[start]), self._starts()[-1])

    def _starts(self) -> range:
        return range(0, len(self._memory), _SLOT)
