"""Faults to inject into a right output, in place: errors that implementations make, one function each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from mluops_cli.judging.fault_injection.detectability import CHUNK, Array, Ranges

TILE: Final = 4096  # elements; of small outputs a quarter
_ROWS: Final = 64  # rows that are tried for one that differs from the first


class NotInjectable(Exception):  # noqa: N818 - an answer, not an error
    """The reason why this fault can't be injected into this output."""


@dataclass(frozen=True)
class InjectionTarget:
    """An output and its baseline, equal at first, of one shape and dtype.

    Attributes:
        sentinels: the values (of parts, where complex) that the output was filled with, None where there are too many.
        exact: whether every threshold is 0, so that the smallest difference counts.
        first, middle, last: flat elements that the contract defines.

    """

    baseline: Array
    output: Array
    sentinels: Array | None
    exact: bool
    first: int
    middle: int
    last: int

    @property
    def size(self) -> int:
        """Return the number of elements."""
        return int(self.baseline.size)

    @property
    def tile(self) -> tuple[int, int]:
        """Return the range of the last defined elements, up to TILE of them."""
        return self.last + 1 - min(TILE, math.ceil((self.last + 1) / 4)), self.last + 1

    def get(self, start: int, stop: int) -> Array:
        """Return flat elements of the baseline."""
        return np.asarray(_flat(self.baseline)[start:stop])

    def put(self, start: int, stop: int, values: Any) -> tuple[int, int]:
        """Write flat elements of the output and return their range."""
        _flat(self.output)[start:stop] = values
        return start, stop

    def undo(self, touched: Ranges) -> None:
        """Set the elements of these ranges to the baseline again."""
        for start, stop in touched:
            self.put(start, stop, _flat(self.baseline)[start:stop])

    @property
    def kind(self) -> str:
        """Return NumPy's letter of the dtype's kind; f for bfloat16 and float8 too."""
        kind = self.baseline.dtype.kind
        return "f" if kind == "V" else kind


def _flat(array: Array) -> Any:
    return array.reshape(-1) if array.flags.c_contiguous else array.flat


Injection = Callable[[InjectionTarget], Ranges]


def _element(at: Callable[[InjectionTarget], int]) -> Injection:
    """Return the fault that one element has the other sign and the magnitude of its neighbours."""

    def inject(it: InjectionTarget) -> Ranges:
        place = at(it)
        value = it.get(place, place + 1)[0]
        if it.kind == "b":
            return [it.put(place, place + 1, not value)]
        if it.kind in "iu":
            return [it.put(place, place + 1, value ^ value.dtype.type(0x55))]
        old, around = _wide(it.get(place, place + 1)), np.abs(_wide(it.get(*it.tile)))
        typical = np.max(around, initial=np.abs(old[0]), where=np.isfinite(around)) or 1.0
        typical = typical if np.isfinite(typical) else 1.0
        return [it.put(place, place + 1, _cast(-typical if old[0].real >= 0 else typical, value.dtype))]

    return inject


def _tile_zeroed(it: InjectionTarget) -> Ranges:
    return [it.put(*it.tile, 0)]


def _stale(it: InjectionTarget) -> Ranges:
    start, stop = it.tile
    values = it.get(start, stop)
    if it.sentinels is not None:
        left = np.resize(it.sentinels, values.nbytes // it.sentinels.itemsize).view(values.dtype)
        return [it.put(start, stop, left)]
    flipped = ~values if it.kind == "b" else (values.view(np.uint8) ^ 0x5A).view(values.dtype)
    return [it.put(start, stop, flipped)]


def _rows_swapped(it: InjectionTarget) -> Ranges:
    length = it.baseline.shape[-1] if it.baseline.ndim > 1 else 1
    rows = it.size // length
    first = it.get(0, length)
    for row in sorted({int(each) for each in np.linspace(1, rows - 1, min(_ROWS, rows - 1))}, reverse=True):
        other = it.get(row * length, (row + 1) * length)
        if not np.array_equal(first, other):
            return [it.put(0, length, other), it.put(row * length, (row + 1) * length, first)]
    raise NotInjectable("the rows are alike" if rows > 1 else "has one row")


def _shifted(it: InjectionTarget) -> Ranges:
    flat = _flat(it.baseline)
    it.put(1, it.size, flat[: it.size - 1])
    it.put(0, 1, flat[it.size - 1 : it.size])
    return [(0, it.size)]


def _scaled(it: InjectionTarget) -> Ranges:
    if it.kind == "b":
        raise NotInjectable("bool has no scale")
    with np.errstate(all="ignore"):
        for start in range(0, it.size, CHUNK):
            values = it.get(start, start + CHUNK)
            if it.kind in "iu":
                it.put(start, start + len(values), values + values // 100)
            else:
                it.put(start, start + len(values), _cast(_wide(values) * 1.01, values.dtype))
    return [(0, it.size)]


def _transposed(it: InjectionTarget) -> Ranges:
    axes = [size for size in it.baseline.shape if size > 1]
    if len(axes) < 2:
        raise NotInjectable("has one axis")
    first, second, *rest = axes
    inner = math.prod(rest)
    swapped = it.baseline.reshape(first, second, inner).swapaxes(0, 1)
    if it.output.flags.c_contiguous:
        np.copyto(it.output.reshape(second, first, inner), swapped)
    else:
        it.put(0, it.size, swapped.reshape(-1))
    return [(0, it.size)]


def _one_ulp(it: InjectionTarget) -> Ranges:
    if it.kind not in "fc":
        raise NotInjectable("holds no floats")
    if not it.exact:
        raise NotInjectable("is judged with a tolerance")
    place = _search(it, lambda values: np.isfinite(values) & (values != 0))
    if place is None:
        raise NotInjectable("has no number but 0")
    value = it.get(place, place + 1).copy()
    parts = value.view(value.real.dtype) if it.kind == "c" else value
    parts.view(f"i{parts.dtype.itemsize}")[0] += 1
    return [it.put(place, place + 1, value)]


def _nan_for_number(it: InjectionTarget) -> Ranges:
    if it.kind not in "fc":
        raise NotInjectable("holds no floats")
    place = _search(it, np.isfinite)
    if place is None:
        raise NotInjectable("has no finite number")
    return [it.put(place, place + 1, _cast(np.nan, it.baseline.dtype))]


def _number_for_nan(it: InjectionTarget) -> Ranges:
    if it.kind not in "fc":
        raise NotInjectable("holds no floats")
    place = _search(it, lambda values: ~np.isfinite(values))
    if place is None:
        raise NotInjectable("has neither NaN nor Inf")
    return [it.put(place, place + 1, 0)]


def _off_by_one(it: InjectionTarget) -> Ranges:
    if it.kind not in "iu":
        raise NotInjectable("holds no integers")
    value = it.get(it.last, it.last + 1)
    one = value.dtype.type(1)
    return [it.put(it.last, it.last + 1, value - one if value[0] == np.iinfo(value.dtype).max else value + one)]


INJECTED_FAULTS: Final[dict[str, Injection]] = {
    "first element": _element(lambda it: it.first),
    "middle element": _element(lambda it: it.middle),
    "last element": _element(lambda it: it.last),
    "last tile zeroed": _tile_zeroed,
    "stale sentinel": _stale,
    "two rows swapped": _rows_swapped,
    "shifted by one": _shifted,
    "scaled by 1 %": _scaled,
    "transposed": _transposed,
    "one ULP": _one_ulp,
    "NaN for a number": _nan_for_number,
    "a number for NaN": _number_for_nan,
    "index off by one": _off_by_one,
}


def _search(it: InjectionTarget, wanted: Callable[[Array], Array]) -> int | None:
    """Return a flat element that is wanted, the first one from the middle on if there is one."""
    for start, stop in _from_the_middle(it.middle, it.size):
        found = wanted(_wide(it.get(start, stop)))
        if found.any():
            return start + int(np.argmax(found))
    return None


def _from_the_middle(middle: int, size: int) -> Sequence[tuple[int, int]]:
    starts = [*range(middle, size, CHUNK), *range(0, middle, CHUNK)]
    return [(start, min(start + CHUNK, size if start >= middle else middle)) for start in starts]


def _wide(values: Array) -> Array:
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)


def _cast(values: Any, dtype: np.dtype[Any]) -> Any:
    with np.errstate(all="ignore"):
        return np.asarray(values).astype(dtype)
