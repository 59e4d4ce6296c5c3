"""The kinds of values that are made element by element: each gives a function that fills a chunk of the tensor."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from generators.data.dtype_limits import limits
from generators.data.rng import RAW, Bits, below
from schemas.dtypes import DTYPES, DType
from schemas.errors import InputError

CHUNK: Final = 1 << 16  # elements made at once: scratch that stays in the cache

Array = NDArray[Any]
Fill = Callable[[Array, int, Bits], None]  # (chunk, index of its first element, bits)


def _fill_uniform(args: tuple[Any, ...], dtype: DType) -> Fill:
    """low + u*(high - low), u from 24 random bits (53 for double), kept inside [low, high) of the dtype."""
    if not dtype.is_float:
        return _floored(_fill_uniform(args, DTYPES["double"]), args, dtype)
    low, high = (float(each) for each in args)
    least, most = _inside(low, high, dtype)
    if not math.isfinite(high - low):  # doubles over more than half of their range
        return _doubled(_fill_uniform((low / 2, high / 2), dtype))
    single = dtype.name != "double" and high - low <= limits(DTYPES["float"]).largest
    work = np.dtype(np.float32 if single else np.float64)
    scale, offset = work.type((high - low) * (2.0**-24 if single else 2.0**-53)), work.type(low)
    scratch: Array = np.empty(CHUNK, work)

    def fill(chunk: Array, start: int, bits: Bits) -> None:
        raw = bits.random_raw((chunk.size + 1) // 2 if single else chunk.size)
        if single:
            raw = raw.astype("<u8", copy=False).view("<u4")[: chunk.size]
        raw >>= raw.dtype.type(8 if single else 11)
        drawn = scratch[: chunk.size]
        drawn[:] = raw.view("<i4" if single else np.int64)  # the top bit is clear, and signed casts are faster
        drawn *= scale
        drawn += offset
        np.clip(drawn, work.type(least), work.type(most), out=drawn)
        chunk[:] = drawn

    return fill


def _doubled(fill_half: Fill) -> Fill:
    """Twice the values of another function."""

    def fill(chunk: Array, start: int, bits: Bits) -> None:
        fill_half(chunk, start, bits)
        chunk *= 2

    return fill


def _inside(low: float, high: float, dtype: DType) -> tuple[float, float]:
    """The least value of the dtype that is >= low and the largest that is < high."""
    storage: Any = dtype.storage
    bottom, top, least, most = np.array([limits(dtype).least, limits(dtype).largest, low, high]).astype(storage)
    if float(least) < low:
        least = np.nextafter(least, top)
    if float(most) >= high:
        most = np.nextafter(most, bottom)
    if float(least) > float(most):
        raise InputError(f"uniform [{low}, {high}) holds no number of dtype {dtype.name}")
    return float(least), float(most)


def _floored(fill_double: Fill, args: tuple[Any, ...], dtype: DType) -> Fill:
    """Integers: the floor of doubles, cut to the dtype's range."""
    scratch: Array = np.empty(CHUNK, np.float64)
    least, largest = limits(dtype).least, limits(dtype).largest

    def fill(chunk: Array, start: int, bits: Bits) -> None:
        drawn = scratch[: chunk.size]
        fill_double(drawn, start, bits)
        np.floor(drawn, out=drawn)
        # float(2**63 - 1) is 2**63: the largest double below it is what a cast may still see.
        np.clip(drawn, float(least), math.nextafter(float(largest), 0) if largest > 2**53 else largest, out=drawn)
        chunk[:] = drawn.astype(dtype.storage)

    return fill


def _fill_normal(args: tuple[Any, ...], dtype: DType) -> Fill:
    if not dtype.is_float:
        return _floored(_fill_normal(args, DTYPES["double"]), args, dtype)
    mean, deviation = (float(each) for each in args)
    least, largest = limits(dtype).least, limits(dtype).largest
    scratch: Array = np.empty(CHUNK, np.float64)

    def fill(chunk: Array, start: int, bits: Bits) -> None:
        drawn = scratch[: chunk.size]
        np.random.Generator(bits).standard_normal(out=drawn)
        with np.errstate(over="ignore"):
            drawn *= deviation
            drawn += mean
        np.clip(drawn, least, largest, out=drawn)
        chunk[:] = drawn

    return fill


def _fill_integers(args: tuple[Any, ...], dtype: DType) -> Fill:
    low, high = args

    def fill(chunk: Array, start: int, bits: Bits) -> None:
        put_whole(chunk, below(bits, chunk.size, high - low + 1), low)

    return fill


def put_whole(chunk: Array, drawn: NDArray[np.uint64], low: int) -> None:
    """chunk = drawn + low. Two's complement does it for every integer dtype, whatever the signs."""
    drawn += np.uint64(low % RAW)
    chunk[:] = drawn.view(np.int64) if chunk.dtype.kind != "u" else drawn


def _fill_constant(args: tuple[Any, ...], dtype: DType) -> Fill:
    def fill(chunk: Array, start: int, bits: Bits) -> None:
        chunk.fill(args[0])

    return fill


def _fill_choice(args: tuple[Any, ...], dtype: DType) -> Fill:
    table = np.array(args, np.float64 if dtype.is_float else dtype.storage).astype(dtype.storage)

    def fill(chunk: Array, start: int, bits: Bits) -> None:
        chunk[:] = table[below(bits, chunk.size, len(args))]

    return fill


def _fill_sequence(args: tuple[Any, ...], dtype: DType) -> Fill:
    first, step = args

    def fill(chunk: Array, start: int, bits: Bits) -> None:
        if dtype.is_float:
            chunk[:] = first + step * np.arange(start, start + chunk.size, dtype=np.float64)
        else:
            index = np.arange(start, start + chunk.size, dtype=np.uint64)
            index *= np.uint64(step % RAW)
            put_whole(chunk, index, first)

    return fill


FILLS: Final[dict[str, Callable[[tuple[Any, ...], DType], Fill]]] = {
    "uniform": _fill_uniform, "normal": _fill_normal, "integers": _fill_integers, "constant": _fill_constant,
    "choice": _fill_choice, "sequence": _fill_sequence,
}  # fmt: skip
