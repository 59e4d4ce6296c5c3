"""Values as lines of protobuf text, in bulk: digits that read back to the same bits, as few as that takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from schemas.values import Encoded

_CHUNK: Final = 1 << 14  # values formatted at once


def lines(encoded: Encoded, indent: str) -> Iterator[bytes]:
    """One `value_x: 1` line per entry, chunk by chunk; nan and inf by name, a NaN's payload is lost."""
    head = f"{indent}{encoded.name}: "
    for at in range(0, encoded.entries.size, _CHUNK):
        chunk = encoded.entries[at : at + _CHUNK]
        if chunk.dtype.kind == "b":
            chunk = chunk.view(np.uint8)
        # float32 prints its own shortest digits; integers go through Python's, which is quicker
        words = chunk.astype("U").tolist() if chunk.dtype.kind == "f" else map(str, chunk.tolist())
        yield (head + f"\n{head}".join(words) + "\n").encode()
