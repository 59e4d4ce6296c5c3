"""Values as lines of protobuf text, in bulk: the fewest digits that read back to the same bits."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

import numpy as np

from schemas.protos import messages as proto
from schemas.wire.payloads import Encoded, HexFloats, Payload, Strings

_CHUNK: Final = 1 << 14  # values formatted at once


def lines(encoded: Payload | HexFloats, indent: str) -> Iterator[bytes]:
    """One `value_x: 1` line per entry, chunk by chunk; every NaN of value_f is nan (see payloads.exact_in_text)."""
    if not isinstance(encoded, Encoded):
        yield from _string_lines(encoded, indent)
        return
    head = f"{indent}{encoded.name}: "
    for at in range(0, encoded.entries.size, _CHUNK):
        chunk = encoded.entries[at : at + _CHUNK]
        if chunk.dtype.kind == "b":
            chunk = chunk.view(np.uint8)
        # NumPy prints the shortest digits of a float32; Python formats integers faster
        words = chunk.astype("U").tolist() if chunk.dtype.kind == "f" else map(str, chunk.tolist())
        yield (head + f"\n{head}".join(words) + "\n").encode()


def _string_lines(encoded: Strings | HexFloats, indent: str) -> Iterator[bytes]:
    """Hex digits need no escapes; protobuf prints anything else."""
    strings = encoded.strings()
    while chunk := list(islice(strings, _CHUNK)):
        if all(map(str.isalnum, chunk)) and "".join(chunk).isascii():
            head = f'{indent}{encoded.name}: "'
            yield (head + f'"\n{head}'.join(chunk) + '"\n').encode()
        else:
            yield proto.print_text(proto.Tensor(value_h=chunk), indent=len(indent)).encode()
