"""The values that fill an output before a call: several kinds, none of which its operator can produce.

They show in one call that an operator reads what it should only write, however it reads: NaN survives `out *= 0`
(BLAS with beta = 0), a huge number survives max(out, 0) in C, where NaN loses, and its negative min(out, 0).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import ml_dtypes
import numpy as np

from schemas.dtypes import DTYPES

Array = np.ndarray[Any, Any]

_BLOCK: Final = 1 << 16  # elements of a baseline that are compared at once
_CANDIDATES: Final = 8
_TILE: Final = 16381  # elements; a prime, so that the tiles of no row, column or stride of an output coincide
# Index of the value that each element of a tile takes, modulo their number (1 to 4, so 12 works for all); random, so
# that any few elements have all of them.
_ORDER: Final = np.random.default_rng(0).integers(0, 12, _TILE)


def sentinels(storage: np.dtype[Any], baseline: Array | None) -> Array:
    """Unlikely values of a dtype that the baseline doesn't contain; none where it contains all of them."""
    held = np.empty(0, f"u{storage.itemsize}") if baseline is None else _bits(baseline, storage)
    high, low = (_first_missing(candidates, held) for candidates in _extremes(storage))
    if storage in _FLOATS and _finite(held, storage):
        # The judge doesn't tell NaNs apart, nor Inf from NaN with loose_nan.
        nan, other_nan = _odd_nans(storage)
        return np.concatenate((nan, high, other_nan, low))
    return np.concatenate((high, low))


def fill(memory: Array, values: Array, repeat: int) -> None:
    """Fill flat memory of the values' dtype; each element has another value in each repeat (from 0)."""
    memory = _bits(memory, values.dtype)
    tile = _bits(values, values.dtype)[(_ORDER[: memory.size] + repeat) % len(values)]
    whole = memory.size - memory.size % _TILE
    if whole:
        memory[:whole].reshape(-1, _TILE)[...] = tile
    memory[whole:] = tile[: memory.size - whole]


@cache
def _extremes(storage: np.dtype[Any]) -> tuple[Array, Array]:
    """Candidates near the largest and near the smallest value."""
    if storage in _FLOATS:
        # Large enough to exceed any tolerance, small enough that sums don't overflow.
        narrow = storage.itemsize <= 2 and storage != _BFLOAT16
        finfo: Any = ml_dtypes.finfo
        top = float(finfo(storage).max) if narrow else 1e30
        sizes = np.array([top * 0.8 ** (i + 1) for i in range(_CANDIDATES)])
        return sizes.astype(storage), (-sizes).astype(storage)
    if storage.kind == "b":
        # No bool is one of these bytes, so that baselines hold none of them. With 1, & gives 0 and 1.
        return np.array([0x5A], np.uint8).view(storage), np.array([0xA5], np.uint8).view(storage)
    info = np.iinfo(storage)
    step = max(1, (int(info.max) - int(info.min)) // 251)
    steps = [step * (3 + 5 * i) for i in range(_CANDIDATES)]
    high, low = [info.max - each for each in steps], [info.min + each for each in steps]
    return np.array(high, storage), np.array(low, storage)


@cache
def _odd_nans(storage: np.dtype[Any]) -> tuple[Array, Array]:
    """NaNs of both signs whose lowest bit is set: unlikely results of a computation."""
    nans = np.array([np.nan, -np.nan]).astype(storage)
    _bits(nans, storage)[...] |= 1
    return nans[:1], nans[1:]


def _first_missing(candidates: Array, held: Array) -> Array:
    """The first candidate whose bits don't occur, none where all do."""
    for index, bits in enumerate(_bits(candidates, candidates.dtype)):
        if not any(np.count_nonzero(block == bits) for block in _blocks(held)):
            return candidates[index : index + 1]
    return candidates[:0]


def _finite(held: Array, storage: np.dtype[Any]) -> bool:
    exponent = _exponent(storage)
    return not any((block & exponent).max() == exponent for block in _blocks(held))


@cache
def _exponent(storage: np.dtype[Any]) -> Any:
    """The bits of Inf: all of the exponent."""
    return _bits(np.array([np.inf]).astype(storage), storage)[0]


def _blocks(bits: Array) -> Iterator[Array]:
    return (bits[at : at + _BLOCK] for at in range(0, bits.size, _BLOCK))


def _bits(array: Array, storage: np.dtype[Any]) -> Array:
    """Its entries (parts, of complex numbers) as unsigned integers: half is slow to compare otherwise."""
    return np.ascontiguousarray(array).reshape(-1).view(f"u{storage.itemsize}")


_BFLOAT16: Final = np.dtype(ml_dtypes.bfloat16)
_FLOATS: Final = frozenset(dtype.storage for dtype in DTYPES.values() if dtype.is_float)
