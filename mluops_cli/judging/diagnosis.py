"""Diagnosis of a failing output, in one more pass: which elements are wrong, where they lie, what caused them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from mluops_cli.judging.arithmetic import BLOCK, Array, agreeing, differences, scratch_of_thread
from mluops_cli.judging.blocks import flat, same_bits, take
from mluops_cli.judging.comparison import finite_or_none
from mluops_cli.judging.patterns import Explain, Pattern, Probe, recognise
from mluops_cli.judging.regions import Region, find_regions
from schemas.criteria import Criterion
from schemas.suggest import counted

RELATIVE: Final = ("diff1", "diff2", "diff3", "diff3_1")
SHOWN: Final = 4  # first and worst elements
SAMPLE: Final = 1 << 18  # positions of wrong elements that are kept, spread over all blocks
PROBED: Final = 1 << 12  # of these, those that the patterns are tried on
BINS: Final = 32  # of the density chart


@dataclass(frozen=True, slots=True)
class Element:
    """One wrong element.

    ulp: distance of the two in units in the last place, counted as representable values; None for NaN, for complex
    numbers, and for integers, whose difference shows without it.
    """

    at: tuple[int, ...]
    baseline: Any
    output: Any
    ulp: int | None

    def __str__(self) -> str:
        distance = f" ({self.ulp} ULP)" if self.ulp is not None else ""
        return f"{list(self.at)}: {self.output} instead of {self.baseline}{distance}"

    def as_record(self) -> dict[str, Any]:
        """Return the element as JSON data."""
        return {
            "at": list(self.at),
            "baseline": _json(self.baseline),
            "output": _json(self.output),
            "ulp": self.ulp,
        }


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is wrong with an output.

    Attributes:
        wrong, elements: how many elements are wrong, of how many.
        first, worst: the first wrong elements and those with the largest errors.
        regions, patterns: where all wrong elements lie, and what their values look like.
        density: wrong elements per 1/32 of the output's length.
        histogram: pairs (exponent of 10, count) of the relative errors of a sample.

    """

    wrong: int
    elements: int
    first: tuple[Element, ...]
    worst: tuple[Element, ...]
    regions: tuple[Region, ...]
    patterns: tuple[Pattern, ...]
    density: tuple[int, ...]
    histogram: tuple[tuple[int, int], ...]

    def words(self) -> str:
        """Return the diagnosis in one line."""
        parts = [f"{self.wrong} of {counted(self.elements, 'element')} wrong ({self.wrong / self.elements:.3g})"]
        parts += [pattern.text for pattern in self.patterns]
        if self.regions:
            parts.append("all " + ", ".join(map(str, self.regions)))
        if self.first:
            parts.append(f"first {self.first[0]}")
        if self.worst and self.worst[0] != self.first[0]:
            parts.append(f"worst {self.worst[0]}")
        return "; ".join(parts)

    def as_record(self) -> dict[str, Any]:
        """Return the diagnosis as JSON data."""
        return {
            "wrong": self.wrong,
            "share": self.wrong / self.elements,
            "first": [element.as_record() for element in self.first],
            "worst": [element.as_record() for element in self.worst],
            "regions": [region.as_record() for region in self.regions],
            "patterns": [{"word": pattern.word, "text": pattern.text} for pattern in self.patterns],
            "density": list(self.density),
            "histogram": [list(decade) for decade in self.histogram],
            "words": self.words(),
        }


def diagnose(
    baseline: Array,
    output: Array,
    criteria: Sequence[Criterion],
    *,
    loose_nan: bool = False,
    sentinels: Array | None = None,
    alternatives: Mapping[str, Callable[[], Array | None]] | None = None,
    explain: Explain | None = None,
) -> Diagnosis | None:
    """Diagnose a failing output; None where shapes or dtypes differ, nothing differs, or there are no elements.

    An element is wrong where its error exceeds the widest relative threshold times (its own magnitude + the mean
    magnitude of the output); with thresholds of 0 where it is unequal. Where that finds nothing, every unequal element
    is wrong. sentinels, alternatives and explain are those of Probe.
    """
    if baseline.shape != output.shape or baseline.dtype != output.dtype or not baseline.size:
        return None
    tolerance = max((item.threshold for item in criteria if item.name in RELATIVE), default=0.0)
    absolute = max((item.threshold for item in criteria if item.name == "diff3_2"), default=0.0)
    for tolerances in ((tolerance, absolute), (0.0, 0.0)):
        judge = _Wrong(baseline, *tolerances, loose_nan)
        found = _collect(baseline, output, judge)
        if found.wrong:
            return _describe(baseline, output, found, judge, sentinels, alternatives, explain)
    return None


class _Wrong:
    """Whether values are out of tolerance, and by how much (Inf where only one is finite)."""

    def __init__(self, baseline: Array, tolerance: float, absolute: float, loose: bool) -> None:
        self.tolerance, self.absolute, self.loose = tolerance, absolute, loose
        self.typical = 0.0
        if tolerance:
            elements, step = flat(baseline), max(1, baseline.size // BLOCK)
            values = np.abs(_wide(np.asarray(elements[::step])))
            finite = values[np.isfinite(values)]
            self.typical = float(finite.mean()) if finite.size else 0.0

    def __call__(self, b: Array, m: Array) -> Array:
        return self.measured(b, m)[0]

    def measured(self, b: Array, m: Array) -> tuple[Array, Array]:
        """Return where values (up to a block) are wrong, and their errors; both arrays are reused by the next call."""
        with np.errstate(all="ignore"):
            if b.dtype.kind == "c":
                size, error = np.abs(b), np.abs(m - b)
            else:
                scratch = scratch_of_thread(np.float64)
                size, error = scratch.base[: len(b)], scratch.diff[: len(b)]
                differences(b, m, size, error, scratch.ratio)
                np.abs(size, out=size)
                np.abs(error, out=error)
            if not np.isfinite(np.maximum.reduce(error)):
                agree = agreeing(_wide(b), _wide(m), self.loose)
                error[~np.isfinite(error)] = np.inf
                size[~np.isfinite(size)] = error[agree] = 0
            if not (self.tolerance or self.absolute):
                return error > 0, error
            np.multiply(size, self.tolerance, out=size)
            np.add(size, self.tolerance * self.typical + self.absolute, out=size)
            return error > size, error


@dataclass(slots=True)
class _Found:
    wrong: int
    first: list[int]
    worst: list[int]
    at: Array  # a sample of the wrong positions, ascending
    weight: Array  # how many wrong elements each stands for


def _collect(baseline: Array, output: Array, judge: _Wrong) -> _Found:
    """Count the wrong elements in one pass; keep the first and the worst ones and a sample spread evenly over all."""
    b_all, m_all = flat(baseline), flat(output)
    starts = range(0, baseline.size, BLOCK)
    quota = max(16, SAMPLE // len(starts))
    wrong = 0
    first: list[int] = []
    worst: list[tuple[float, int]] = []
    at: list[Array] = []
    weight: list[Array] = []
    for start in starts:
        b, m = take(b_all, start), take(m_all, start)
        if same_bits(b, m, scratch_of_thread(np.float64).mask):
            continue
        mask, error = judge.measured(b, m)
        places = np.flatnonzero(mask)
        if not len(places):
            continue
        wrong += len(places)
        first += [start + int(place) for place in places[: SHOWN - len(first)]]
        least = worst[0][0] if len(worst) == SHOWN else -1.0
        if np.maximum.reduce(error) > least:
            better = places[error[places] > least]
            if len(better) > SHOWN:
                better = better[np.argpartition(error[better], -SHOWN)[-SHOWN:]]
            worst = sorted(worst + [(float(error[i]), -start - int(i)) for i in better])[-SHOWN:]
        kept = places if len(places) <= quota else places[np.linspace(0, len(places) - 1, quota).astype(np.int64)]
        at.append(kept + start)
        weight.append(np.full(len(kept), len(places) / len(kept)))
    if not wrong:
        return _Found(0, [], [], np.empty(0, np.int64), np.empty(0))
    return _Found(wrong, first, [-i for _, i in reversed(worst)], np.concatenate(at), np.concatenate(weight))


def _describe(
    baseline: Array,
    output: Array,
    found: _Found,
    judge: _Wrong,
    sentinels: Array | None,
    alternatives: Mapping[str, Callable[[], Array | None]] | None,
    explain: Explain | None,
) -> Diagnosis:
    picked = found.at[np.linspace(0, len(found.at) - 1, min(PROBED, len(found.at))).astype(np.int64)]
    expected, got = (np.asarray(flat(array)[picked]) for array in (baseline, output))
    patterns = recognise(Probe(baseline, picked, expected, got, judge, sentinels, alternatives, explain))
    bins = (found.at * BINS) // baseline.size
    density = np.rint(np.bincount(bins, found.weight, BINS)).astype(np.int64)

    def elements(positions: Sequence[int]) -> tuple[Element, ...]:
        return tuple(_element(baseline, output, position) for position in positions)

    return Diagnosis(
        found.wrong,
        baseline.size,
        elements(found.first),
        elements(found.worst),
        tuple(find_regions(baseline.shape, found.at, found.wrong)),
        tuple(patterns),
        tuple(density.tolist()),
        tuple(_histogram(expected, judge.measured(expected, got)[1])),
    )


def _histogram(expected: Array, error: Array) -> list[tuple[int, int]]:
    """Count relative errors per decade; where the baseline is 0 absolute ones; infinite ones are left out."""
    with np.errstate(all="ignore"):
        size = np.abs(_wide(expected))
        relative = np.where(size > 0, error / size, error)
        decades = np.floor(np.log10(relative[np.isfinite(relative) & (relative > 0)])).astype(np.int64)
    exponents, counts = np.unique(decades, return_counts=True)
    return list(zip(exponents.tolist(), counts.tolist(), strict=True))


def _element(baseline: Array, output: Array, position: int) -> Element:
    coordinates = np.unravel_index(position, baseline.shape)
    b, m = baseline[coordinates], output[coordinates]
    return Element(tuple(int(i) for i in coordinates), _plain(b), _plain(m), _ulp(b, m))


def _ulp(b: Any, m: Any) -> int | None:
    """Return how many representable values lie between two numbers of one dtype, counting one end."""
    dtype = np.asarray(b).dtype
    if dtype.kind in "iubc" or not (np.isfinite(b) and np.isfinite(m)):
        return None
    bits = [int(np.asarray(value).view(f"i{dtype.itemsize}")) for value in (b, m)]
    lowest = -(1 << (8 * dtype.itemsize - 1))
    ordered = [value if value >= 0 else lowest - value for value in bits]
    return abs(ordered[1] - ordered[0])


def _wide(values: Array) -> Array:
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)


def _plain(value: Any) -> Any:
    """Return an array's scalar as a Python number."""
    return value.item() if hasattr(value, "item") else float(value)


def _json(value: Any) -> Any:
    if isinstance(value, complex):
        return [finite_or_none(value.real), finite_or_none(value.imag)]
    return finite_or_none(value) if isinstance(value, float) else value
