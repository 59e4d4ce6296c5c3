"""Which injected faults the criteria have to detect, by the formulas of docs/judging.md, without code of the judge.

Only the changed elements are read, and only until a criterion must fail: sums and maxima never shrink.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from schemas.criteria import Criterion

Array = np.ndarray[Any, Any]
Ranges = Sequence[tuple[int, int]]  # of flat elements, C order

CHUNK: Final = 1 << 16  # elements
MARGIN: Final = 1 + 1e-9  # a metric this close to its threshold may fall on either side of it
_LOW: Final = ("half", "bfloat16", "complex_half", "float8_e4m3fn", "float8_e5m2")
_SINGLE: Final = ("float", "complex_float", "complex64")


class Expectation(NamedTuple):
    """What is expected of the judge: whether a defined value changed, whether a criterion must fail, why or why not."""

    changed: bool
    must_fail: bool
    reason: str


@dataclass(frozen=True)
class Detectability:
    """The criteria of an output that equals its baseline but for the elements that a fault changed.

    defined(start, stop) masks the flat elements that the contract defines; None: all of them.
    """

    baseline: Array
    criteria: Sequence[Criterion]
    dtype: str
    defined: Callable[[int, int], Array] | None = None

    def expect(self, output: Array, touched: Ranges) -> Expectation:
        """Return what the criteria can detect in the touched elements; the ranges must not overlap."""
        sums = [_Sums() for _ in range(self._parts)]
        changed = False
        for start, stop in _chunks(touched, self._unit):
            b, m = self._chunk(self.baseline, start, stop), self._chunk(output, start, stop)
            differs = ~((b == m) | (np.isnan(b) & np.isnan(m)))
            if self.defined is not None:
                differs &= self.defined(start, stop).reshape(-1, 1)
            if not differs.any():
                continue
            changed = True
            for part, found in enumerate(sums):
                found.add(b[:, part][differs[:, part]], m[:, part][differs[:, part]], self._floor)
            if reason := self._must_fail(sums, whole=False):
                return Expectation(True, True, reason)
        if not changed:
            return Expectation(False, False, "changes no value that counts")
        if reason := self._must_fail(sums, whole=True) or self._divergence(output):
            return Expectation(True, True, reason)
        return Expectation(True, False, ", ".join(self._below(sums)))

    @cached_property
    def _parts(self) -> int:
        """Return 2 for complex outputs, whose parts are judged apart, else 1."""
        return 2 if self.baseline.dtype.kind == "c" or self.dtype == "complex_half" else 1

    @property
    def _unit(self) -> int:
        """Return how many array elements make one number: 2 halves of a complex_half, else 1."""
        return 2 if self.dtype == "complex_half" else 1

    @cached_property
    def _wide(self) -> type[np.floating[Any]]:
        real = self.baseline.real.dtype if self.baseline.dtype.kind == "c" else self.baseline.dtype
        return np.longdouble if real.itemsize == 8 else np.float64

    @cached_property
    def _floor(self) -> float:
        return 1e-4 if self.dtype in _LOW else 1e-6 if self.dtype in _SINGLE else 0.0

    def _chunk(self, array: Array, start: int, stop: int) -> Array:
        """Return flat elements in the wide dtype, a column per part."""
        values = np.asarray(array.reshape(-1)[start:stop] if array.flags.c_contiguous else array.flat[start:stop])
        if values.dtype == np.bool_:
            values = values.view(np.uint8)
        if values.dtype.kind == "c":
            values = values.view(values.real.dtype)
        return values.astype(self._wide).reshape(-1, self._parts)

    @cached_property
    def _sizes(self) -> list[tuple[Any, Any]]:
        """Return per part the sums of abs(b) and of b^2 over all finite elements."""
        sums = np.zeros((self._parts, 2), self._wide)
        for start, stop in _chunks([(0, self.baseline.size)], self._unit):
            b = self._chunk(self.baseline, start, stop)
            b[~np.isfinite(b)] = 0
            sums[:, 0] += np.abs(b).sum(axis=0)
            sums[:, 1] += (b * b).sum(axis=0)
        return [(part[0], part[1]) for part in sums]

    def _metric(self, name: str, part: int, sums: _Sums) -> float:
        """Return a criterion's value, as far as the sums go."""
        if name == "diff1":
            return float(sums.absolute / (self._sizes[part][0] + 1e-9))
        if name == "diff2":
            return float(np.sqrt(sums.squares / (self._sizes[part][1] + 1e-9)))
        return {"diff3": sums.ratio, "diff3_1": sums.ratio_nonzero, "diff3_2": sums.largest}.get(name, 0.0)

    def _must_fail(self, sums: Sequence[_Sums], whole: bool) -> str:
        """Return which criterion must fail and why, or nothing; whole: the sums hold every touched element."""
        for part, found in enumerate(sums):
            if found.kinds:
                return "NaN or Inf disagree"
            for criterion in self.criteria:
                name, threshold = criterion.name, criterion.threshold
                if name == "diff4":
                    if whole and found.number >= 100 and found.greater in (0, found.number):
                        return "diff4: all on one side"
                elif name != "diff_kl" and found.number:
                    if threshold == 0:
                        return f"{name} > 0"
                    value = self._metric(name, part, found)
                    if value > threshold * MARGIN:
                        return f"{name} {'=' if whole else '>='} {value:.3g} > {threshold:g}"
        return ""

    def _below(self, sums: Sequence[_Sums]) -> Iterator[str]:
        for part, found in enumerate(sums):
            for criterion in self.criteria:
                if criterion.name == "diff4":
                    yield f"diff4: {found.number} unequal, on {1 + (0 < found.greater < found.number)} side(s)"
                elif criterion.name == "diff_kl":
                    yield f"diff_kl <= {criterion.threshold:g}"
                else:
                    value = self._metric(criterion.name, part, found)
                    yield f"{criterion.name} = {value:.3g} <= {criterion.threshold:g}"

    def _divergence(self, output: Array) -> str:
        """Return the same for diff_kl, which needs every element of both sides."""
        threshold = min((each.threshold for each in self.criteria if each.name == "diff_kl"), default=math.inf)
        if threshold == math.inf or self.baseline.size // self._parts < 1000:
            return ""
        sides = [np.maximum(np.abs(self._chunk(array, 0, array.size)), 1e-10) for array in (self.baseline, output)]
        finite = np.isfinite(sides[0]) & np.isfinite(sides[1])
        for part in range(self._parts):
            p, q = (side[finite[:, part], part] for side in sides)
            p, q = p / p.sum(), q / q.sum()
            value = float((p * np.log(p / q)).sum() + (q * np.log(q / p)).sum())
            if value > threshold * MARGIN + 1e-12:
                return f"diff_kl = {value:.3g} > {threshold:g}"
        return ""


@dataclass(slots=True)
class _Sums:
    """The sums and maxima of the unequal elements of one part."""

    number: int = 0
    greater: int = 0
    kinds: int = 0  # NaN or Inf on one side, or of different kinds
    absolute: Any = 0.0
    squares: Any = 0.0
    largest: float = 0.0
    ratio: float = 0.0
    ratio_nonzero: float = 0.0

    def add(self, b: Array, m: Array, floor: float) -> None:
        """Add elements that are unequal."""
        finite = np.isfinite(b) & np.isfinite(m)
        self.kinds += int(np.count_nonzero(~finite))
        b, m = b[finite], m[finite]
        if not b.size:
            return
        d = np.abs(m - b)
        self.number += d.size
        self.greater += int(np.count_nonzero(m > b))
        self.absolute += d.sum()
        self.squares += (d * d).sum()
        self.largest = max(self.largest, float(d.max()))
        size = np.abs(b)
        relative = size > floor
        ratios = np.where(relative, d / np.where(relative, size + 1e-9, 1), d)
        self.ratio = max(self.ratio, float(ratios.max()))
        if (size > 0).any():
            self.ratio_nonzero = max(self.ratio_nonzero, float((d[size > 0] / size[size > 0]).max()))


def _chunks(ranges: Iterable[tuple[int, int]], unit: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges in pieces of whole units."""
    for start, stop in ranges:
        for at in range(start - start % unit, stop, CHUNK):
            yield at, min(at + CHUNK, stop + -stop % unit)
