"""A glimpse of outputs: pieces of their memory, by which a thread that still writes them is seen without a full read.

The kernel process takes one directly after the call. The judging process takes another one of the same pieces when the
answer arrives, and one more when it has judged. The pieces are others in each call.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from hashlib import shake_128
from typing import Any, Final

import numpy as np
import xxhash

from mluops_cli.implementations.canary_buffer import memory_of

Array = np.ndarray[Any, Any]

_PIECES: Final = 16  # besides the first and the last: what writes from the start to the end, ends there
_SIZE: Final = 64  # bytes of a piece


class Glimpse:
    """Pieces of each output of a call; the key chooses them. hashes are those of the last look at all of them."""

    def __init__(self, outputs: Mapping[str, Array | None], key: str = "") -> None:
        self._memory = {name: memory_of(each).data for name, each in outputs.items() if each is not None}
        self._places = struct.unpack(f"{_PIECES}Q", shake_128(key.encode()).digest(8 * _PIECES))
        self.hashes: dict[str, int] = {}

    def look(self) -> None:
        """Hash the pieces."""
        self.hashes = {name: self._hash(memory) for name, memory in self._memory.items()}

    def changed(self, before: Mapping[str, int]) -> str | None:
        """Look again: an output whose hash was another one before; None where there is none."""
        self.look()
        return next((name for name, now in self.hashes.items() if before.get(name, now) != now), None)

    def _hash(self, memory: memoryview) -> int:
        last = len(memory) - _SIZE
        if last > _PIECES * _SIZE:
            places = (0, last, *[place % last for place in self._places])
            return xxhash.xxh3_64_intdigest(b"".join([memory[place : place + _SIZE] for place in places]))
        return xxhash.xxh3_64_intdigest(memory)
