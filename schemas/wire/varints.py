"""Arrays to protobuf varints and back, by NumPy in chunks of bounded size.

Malformed bytes raise InputError.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from schemas.errors import InputError

LONGEST: Final = 10  # bytes of a 64-bit varint
_CHUNK: Final = 1 << 15  # elements encoded at once
_CHUNK_BYTES: Final = 1 << 16  # bytes decoded at once

Bytes = NDArray[np.uint8]

# A varint's first eight bytes as one little-endian word: groups of 7 bits, moved apart (or together) in three steps.
_STEPS: Final = (
    (4, 0x000000000FFFFFFF, 0x0FFFFFFF00000000),
    (2, 0x00003FFF00003FFF, 0x3FFF00003FFF0000),
    (1, 0x007F007F007F007F, 0x7F007F007F007F00),
)
# By a varint's size: the continuation bits of that word, and the bits that belong to it.
_CONTINUED: Final = np.array(
    [0, *(0x8080808080808080 & (1 << 8 * min(size - 1, 8)) - 1 for size in range(1, 11))], "<u8"
)
_VALUE_BITS: Final = np.array([0x7F7F7F7F7F7F7F7F & (1 << 8 * min(size, 8)) - 1 for size in range(11)], "<u8")


def _spread(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The low 56 bits of each value, 7 to a byte."""
    for shift, low, high in _STEPS:
        values = values & np.uint64(low) | values << np.uint64(shift) & np.uint64(high)
    return values


def _gather(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The inverse of _spread."""
    for shift, low, high in reversed(_STEPS):
        words = words & np.uint64(low) | (words & np.uint64(high)) >> np.uint64(shift)
    return words


def _words(raw: Bytes) -> NDArray[np.uint64]:
    """The eight bytes from each offset on as a word, a view; raw has a multiple of 8 bytes."""
    return np.lib.stride_tricks.as_strided(raw.view("<u8"), (raw.size - 7,), (1,))


def _as_unsigned(chunk: NDArray[Any]) -> NDArray[Any]:
    """Integers or bools as the unsigned numbers of varints: negative ones are 64-bit two's complement."""
    if chunk.dtype.kind == "i":
        return chunk.astype(np.int64).view(np.uint64)
    return chunk.view(np.uint8) if chunk.dtype.kind == "b" else chunk


def _limits(dtype: np.dtype[Any]) -> list[Any]:
    """The smallest numbers that take 2, 3 ... bytes, up to the range of the unsigned dtype."""
    return [dtype.type(1 << shift) for shift in range(7, 8 * dtype.itemsize, 7)]


def _chunks(values: NDArray[Any]) -> Iterator[NDArray[Any]]:
    for at in range(0, values.size, _CHUNK):
        yield _as_unsigned(values[at : at + _CHUNK])


def varints_size(values: NDArray[Any]) -> int:
    """Bytes of a flat array of integers or bools as varints; a negative number takes 10."""
    total = int(values.size)
    for chunk in _chunks(values):
        for limit in _limits(chunk.dtype):
            beyond = int(np.count_nonzero(chunk >= limit))
            total += beyond
            if not beyond:
                break
    return total


def encode_varints(values: NDArray[Any]) -> Iterator[Bytes]:
    """The varints of a flat array of integers or bools, chunk by chunk."""
    for chunk in _chunks(values):
        sizes = np.ones(chunk.size, np.intp)
        for limit in _limits(chunk.dtype):
            beyond = chunk >= limit
            if not beyond.any():
                break
            sizes += beyond
        ends = np.cumsum(sizes)
        if ends[-1] == chunk.size:
            yield chunk.astype(np.uint8)
            continue
        begins = ends - sizes
        wide = chunk.astype(np.uint64, copy=False)
        out = np.zeros((int(ends[-1]) // 8 + 2) * 8, np.uint8)
        # Each word's unused bytes are overwritten by the next: NumPy assigns in order.
        _words(out)[begins] = _spread(wide) | _CONTINUED[sizes]
        longer = np.flatnonzero(sizes > 8)
        if longer.size:
            top = wide[longer] >> np.uint64(56)
            out[begins[longer] + 8] = top & np.uint64(127) | top & np.uint64(128)
            longest = longer[sizes[longer] == LONGEST]
            out[begins[longest] + 9] = 1
        yield out[: ends[-1]]


def count_varints(raw: Bytes) -> int:
    """Number of varints that end in these bytes."""
    return sum(int(np.count_nonzero(raw[at : at + _CHUNK_BYTES] < 128)) for at in range(0, raw.size, _CHUNK_BYTES))


def decode_varints(raw: Bytes) -> Iterator[NDArray[np.uint64]]:
    """The varints of these bytes, chunk by chunk; InputError where one is cut off or longer than 64 bits."""
    at = 0
    while at < raw.size:
        values, used = _decode_chunk(raw[at : at + _CHUNK_BYTES])
        if not used:
            cut_off = raw.size - at < LONGEST
            raise InputError("a varint is cut off" if cut_off else "a varint is longer than 64 bits")
        yield values
        at += used


def _decode_chunk(raw: Bytes) -> tuple[NDArray[np.uint64], int]:
    """The varints that end in these bytes and the number of bytes they take."""
    ends = np.flatnonzero(raw < 128)
    if ends.size == raw.size:
        return raw.astype(np.uint64), raw.size
    if not ends.size:
        return np.empty(0, np.uint64), 0
    begins = np.empty_like(ends)
    begins[0] = 0
    begins[1:] = ends[:-1] + 1
    sizes = ends - begins + 1
    longest = int(np.max(sizes))
    if longest > LONGEST or (longest == LONGEST and (raw[ends[sizes == LONGEST]] > 1).any()):
        raise InputError("a varint is longer than 64 bits")
    padded = np.zeros((raw.size // 8 + 2) * 8, np.uint8)
    padded[: raw.size] = raw
    values = _gather(_words(padded).take(begins) & _VALUE_BITS[sizes])
    for byte in range(8, longest):
        longer = np.flatnonzero(sizes > byte)
        values[longer] |= (raw[begins[longer] + byte] & 127).astype(np.uint64) << np.uint64(7 * byte)
    return values, int(ends[-1]) + 1
