"""Simpler values for an input: 0, 1, small whole numbers, no NaN; the simplest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from generators.data.distributions import OPTIONS

Array = NDArray[Any]
Dist = Mapping[str, Any]

_SIMPLEST: Final[tuple[Dist, ...]] = (
    {"constant": 0},
    {"constant": 1},
    {"sequence": [0, 1]},
    {"sequence": [1, 1]},
    {"integers": [0, 1]},
    {"integers": [0, 3]},
)
_SIGNED: Final[tuple[Dist, ...]] = ({"integers": [-1, 1]}, {"integers": [-8, 8]})
_UNDER: Final = _SIMPLEST[:2]  # what special values are laid over
_SHOWN: Final = 256  # elements: of longer arrays no single element is changed


def simpler(values: Dist | Array, *, signed: bool) -> Iterator[Dist | Array]:
    """What may stand in place of an input's values, from the simplest up to what is no simpler than they are.

    values: a `dist`, or the values themselves. signed: the dtype holds negative numbers.
    """
    dists = (*_SIMPLEST, *(_SIGNED if signed else ()), {})
    if isinstance(values, np.ndarray):
        yield from dists[:4]
        yield from (each for each in _rounded(values) if not _same(each, values))
        return
    for dist in dists:
        if dict(dist) == dict(values):
            return
        yield dist
    laid = [key for key in values if key in OPTIONS and key != "special_share"]
    for key in laid:
        share = {"special_share": values["special_share"]} if key == "special" and "special_share" in values else {}
        for dist in _UNDER:
            simpler_one = {**dist, key: values[key], **share}
            if simpler_one == dict(values):
                return
            yield simpler_one


def _rounded(values: Array) -> Iterator[Array]:
    """The values as a whole made simpler: finite, then signs, then whole numbers."""
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        yield np.where(np.isfinite(values), values, 0).astype(values.dtype)
    if values.dtype.kind in "fi":
        with np.errstate(invalid="ignore"):
            yield np.sign(values)
            yield np.rint(values)


def zeroed(values: Array) -> Iterator[tuple[int, int]]:
    """Blocks [first, end) of the flat values to be set to 0: halves, their halves, and so on."""
    size = values.size if values.size <= _SHOWN else 0
    length = size
    while length:
        yield from ((first, min(size, first + length)) for first in range(0, size, length))
        length = length // 2 if length > 1 else 0


def simpler_elements(value: Any) -> Iterator[float]:
    """What may stand in place of one value, the simplest first."""
    finite = bool(np.isfinite(value))
    numbers = (0.0, 1.0, -1.0, 2 * float(np.sign(value)), float(np.rint(value))) if finite else (0.0, 1.0)
    for number in numbers:
        if value == number:
            return
        yield number


def _same(one: Array, other: Array) -> bool:
    return bool(one.tobytes() == other.tobytes())
