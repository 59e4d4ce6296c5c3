"""Bits and whole numbers of a counter-based bit generator that is keyed by what is drawn."""

from __future__ import annotations

from typing import Final

import numpy as np
import xxhash
from numpy.typing import NDArray

RAW: Final = 1 << 64  # number of values a raw draw can take

Key = tuple[str | int, ...]
Bits = np.random.Philox


def bit_generator(key: Key) -> np.random.Philox:
    """The bit generator of a key: equal keys give equal bits, on every machine and with every NumPy."""
    digest = xxhash.xxh3_128_intdigest("\0".join(map(str, key)).encode("utf-8", "surrogateescape"))
    return np.random.Philox(key=np.array([digest % RAW, digest // RAW], np.uint64))


def keyed_generator(key: Key) -> np.random.Generator:
    """A Generator over the key's bits, for an operator's own recipes."""
    return np.random.Generator(bit_generator(key))


def below(bits: Bits, count: int, bound: int) -> NDArray[np.uint64]:
    """count whole numbers from 0 to bound - 1, all equally likely: raw values beyond a multiple of it are redrawn."""
    if not 0 < bound <= RAW:
        raise ValueError(f"a bound of {bound}, expected 1 to 2^64")
    raw: NDArray[np.uint64] = np.asarray(bits.random_raw(count), np.uint64)
    if bound & (bound - 1) == 0:
        raw &= np.uint64(bound - 1)
        return raw
    limit = np.uint64(RAW - RAW % bound)
    while True:
        beyond = np.flatnonzero(raw >= limit)
        if not beyond.size:
            raw %= np.uint64(bound)
            return raw
        raw[beyond] = bits.random_raw(beyond.size)


def distinct(bits: Bits, count: int, space: int) -> NDArray[np.uint64]:
    """count distinct whole numbers from 0 to space - 1 in random order; memory grows with count, not with space."""
    if count * 3 >= space:
        return np.argsort(bits.random_raw(space), kind="stable")[:count].astype(np.uint64)
    found: NDArray[np.uint64] = np.empty(0, np.uint64)
    while found.size < count:
        found = np.concatenate([found, below(bits, count - found.size + 16, space)])
        found = found[np.sort(np.unique(found, return_index=True)[1])]
    return found[:count]
