"""Patterns that name the likely cause of wrong elements: one recogniser per pattern, tried on a sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import ml_dtypes
import numpy as np

from mluops_cli.judging.arithmetic import Array
from mluops_cli.judging.blocks import flat

ENOUGH: Final = 4  # wrong elements; fewer may fit a pattern by chance
MANY: Final = 100  # wrong elements; fewer may be on one side by chance
UNLIKELY: Final = 16  # bits: one chance in 65536
NEARLY_ALL: Final = 0.98  # fraction of the sample that a pattern has to explain
NARROW: Final = {"bfloat16": np.dtype(ml_dtypes.bfloat16), "half": np.dtype(np.float16)}
SHIFTS: Final = (1, -1, 2, -2, 3, -3)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A recognised pattern: the word of its kind, which people read too, and what is so in this output."""

    word: str
    text: str


Explain = Callable[[], Sequence[Pattern]]


@dataclass(frozen=True, slots=True)
class Probe:
    """A sample of wrong elements.

    Attributes:
        baseline: the whole baseline.
        at, expected, found: the flat positions of the sample, ascending, and both values there.
        wrong: a function (expected, found) -> mask of the values that are out of tolerance.
        sentinels: the values (of parts, where complex) that the buffer was filled with, None where unknown.
        alternatives: whole baselines of other modes by name, computed on demand; None where a mode has none.
        explain: says what explains the whole output, on demand.

    """

    baseline: Array
    at: Array
    expected: Array
    found: Array
    wrong: Callable[[Array, Array], Array]
    sentinels: Array | None = None
    alternatives: Mapping[str, Callable[[], Array | None]] | None = None
    explain: Explain | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the output."""
        return tuple(self.baseline.shape)

    @property
    def coordinates(self) -> list[Array]:
        """Return the indices of the sample, one array per axis."""
        return [np.asarray(axis) for axis in np.unravel_index(self.at, self.shape)] if self.shape else []

    def explained_by(self, source: list[Array]) -> bool:
        """Return whether the output holds what the baseline holds at these coordinates; those outside don't count."""
        inside = np.ones(len(self.at), np.bool_)
        for axis, size in zip(source, self.shape, strict=True):
            inside &= (axis >= 0) & (axis < size)
        if inside.sum() < max(ENOUGH, len(self.at) / 2):
            return False
        positions = np.ravel_multi_index([axis[inside] for axis in source], self.shape)
        values = np.asarray(flat(self.baseline)[positions])
        return bool((~self.wrong(values, self.found[inside])).mean() >= NEARLY_ALL)

    def moved(self, axis: int, to: Array) -> list[Array]:
        """Return the coordinates with one axis replaced."""
        return [to if i == axis else own for i, own in enumerate(self.coordinates)]


def recognise(probe: Probe) -> list[Pattern]:
    """Return the patterns that the sample fits: a fill, else those of the first recogniser that finds any."""
    fills = list(_fills(probe))
    if fills or probe.found.dtype == object:
        return fills
    found: list[Pattern] = []
    for recogniser in (_alternatives, _explained, _rounded, _places, _factor, _offset, _one_sided):
        found += recogniser(probe)
        if found:
            break
    return found


def _fills(probe: Probe) -> Iterator[Pattern]:
    found, expected = probe.found, probe.expected
    if probe.sentinels is not None:
        bits = f"u{probe.sentinels.itemsize}"  # compared as bits: an ordinary NaN is no sentinel
        if np.isin(found.view(bits), probe.sentinels.view(bits)).all():
            yield Pattern("never written", "never written: the buffer still holds what it was filled with")
            return
    if np.all(found == 0):
        yield Pattern("zero", "zeros instead of values")
        return
    real = found.dtype.kind not in "iub"
    if real and np.all(~np.isfinite(found)):
        yield Pattern("not finite", "NaN or Inf where the baseline has another value")
    elif real and np.all(~np.isfinite(expected)):
        yield Pattern("finite", "a number where the baseline has NaN or Inf")
    elif np.all(expected == 0):
        yield Pattern("values instead of zeros", "values where the baseline is 0")
    elif len(found) >= ENOUGH and np.all(found == found[0]):
        yield Pattern("constant", f"all of them hold {found[0]}")


def _alternatives(probe: Probe) -> Iterator[Pattern]:
    for name, make in (probe.alternatives or {}).items():
        other = make()
        if other is not None and other.shape == probe.shape and len(probe.at) >= ENOUGH:
            values = np.asarray(flat(other)[probe.at])
            if (~probe.wrong(values, probe.found)).mean() >= NEARLY_ALL:
                yield Pattern("result of another mode", f"the result of {name}")


def _explained(probe: Probe) -> Iterator[Pattern]:
    yield from probe.explain() if probe.explain is not None else ()


def held_in(found: Array, expected: Array) -> str:
    """Return the narrow dtype that holds every found value, by no chance; empty where none does.

    By chance it holds one with the probability with which it holds an expected one.
    """
    for name, dtype in NARROW.items():
        with np.errstate(over="ignore", invalid="ignore"):  # beyond half's range values become Inf, and differ
            held, needed = (
                (values.astype(dtype).astype(values.dtype) == values).mean() for values in (found, expected)
            )
        if held == 1 and needed ** len(found) < 2.0**-UNLIKELY:
            return name
    return ""


def _rounded(probe: Probe) -> Iterator[Pattern]:
    if probe.found.dtype in (np.float32, np.float64) and len(probe.at) >= ENOUGH:
        name = held_in(probe.found, probe.expected)
        if name:
            yield rounded_through(name)


def rounded_through(dtype: str) -> Pattern:
    """Return the pattern of an output that was rounded through a narrower dtype."""
    return Pattern(f"rounded through {dtype}", f"rounded through {dtype}")


def _places(probe: Probe) -> Iterator[Pattern]:
    """The baseline's values in the wrong places."""
    if len(probe.at) < ENOUGH:
        return
    coordinates, shape = probe.coordinates, probe.shape
    axes = [axis for axis, size in enumerate(shape) if size > 1]
    for axis in axes:
        two = np.unique(coordinates[axis])
        if len(two) == 2 and probe.explained_by(probe.moved(axis, two.sum() - coordinates[axis])):
            yield Pattern("swapped", f"indices {two[0]} and {two[1]} of axis {axis} are swapped")
            return
    for axis in axes:
        if coordinates[axis].min() > 0 and probe.explained_by(probe.moved(axis, np.zeros_like(probe.at))):
            what = "batch 0" if axis == 0 else f"index 0 of axis {axis}"
            yield Pattern("repeated", f"{what} repeated in place of the others")
            return
    for axis in axes:
        for shift in SHIFTS:
            if probe.explained_by(probe.moved(axis, coordinates[axis] - shift)):
                yield Pattern("shifted", f"the baseline shifted by {shift} along axis {axis}")
                return
    for first in axes:
        for second in (axis for axis in axes if axis > first):
            swapped = list(shape)
            swapped[first], swapped[second] = shape[second], shape[first]
            source = [np.asarray(axis) for axis in np.unravel_index(probe.at, swapped)]
            source[first], source[second] = source[second], source[first]
            if probe.explained_by(source):
                yield Pattern("transposed", f"axes {first} and {second} are swapped")
                return


def _numbers(probe: Probe) -> tuple[Array, Array]:
    """Return expected and found values, where both are finite, in float64."""
    expected, found = (values.astype(np.float64) for values in (probe.expected, probe.found))
    finite = np.isfinite(expected) & np.isfinite(found)
    return expected[finite], found[finite]


def _precision(dtype: np.dtype[Any]) -> float:
    if dtype.kind in "iub":
        return 1e-9
    return 8 * float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call]


def _factor(probe: Probe) -> Iterator[Pattern]:
    if probe.found.dtype.kind == "c":
        return
    expected, found = _numbers(probe)
    expected, found = expected[expected != 0], found[expected != 0]
    if len(found) < ENOUGH:
        return
    ratios = found / expected
    factor = float(np.median(ratios))
    if factor and np.all(np.abs(ratios / factor - 1) <= _precision(probe.found.dtype)) and np.ptp(expected):
        yield Pattern("factor", f"the baseline times {factor:.6g}")


def _offset(probe: Probe) -> Iterator[Pattern]:
    if probe.found.dtype.kind == "c":
        return
    expected, found = _numbers(probe)
    if len(found) < ENOUGH:
        return
    differences = found - expected
    offset = float(np.median(differences))
    tolerance = _precision(probe.found.dtype) * max(np.abs(expected).max(), abs(offset))
    if np.all(np.abs(differences - offset) <= tolerance) and abs(offset) > 2 * tolerance:
        yield Pattern("offset", f"the baseline plus {offset:.6g}")


def _one_sided(probe: Probe) -> Iterator[Pattern]:
    if probe.found.dtype.kind == "c":
        return
    expected, found = _numbers(probe)
    if len(found) >= MANY and (np.all(found > expected) or np.all(found < expected)):
        yield Pattern("one-sided", f"always {'above' if found[0] > expected[0] else 'below'} the baseline")
