"""One output judged by its criteria: the formulas as data, and what a comparison of two arrays found."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from mluops_cli.judging.arithmetic import EPSILON, SMALLEST, Array
from mluops_cli.judging.blocks import Known, Metrics, Request, Unequal, locate, measure
from mluops_cli.judging.divergence import JUDGED_FROM as KL_FROM
from mluops_cli.judging.divergence import kl_divergence
from schemas.criteria import Criterion
from schemas.dtypes import DTYPES

# diff3 is relative where abs(b) exceeds this; not listed: 0 (double and integers).
DIFF3_FLOOR: Final = {
    "float": 1e-6, "complex_float": 1e-6, "complex64": 1e-6, "half": 1e-4, "bfloat16": 1e-4, "complex_half": 1e-4,
    "float8_e4m3fn": 1e-4, "float8_e5m2": 1e-4,
}  # fmt: skip
_FLOATS: Final = frozenset(dtype.storage for dtype in DTYPES.values() if dtype.is_float)
DIFF4_FROM: Final = 100  # unequal elements; the side of fewer may be chance

PARTS: Final = {"real": "real", "imag": "imaginary"}

FORMULAS: Final[dict[str, Callable[[Metrics], Any]]] = {
    "diff1": lambda found: found.sum_diff / (found.sum_base + EPSILON),
    "diff2": lambda found: np.sqrt(found.sum_diff2 / (found.sum_base2 + EPSILON)),
    "diff3": lambda found: found.max_ratio,
    "diff3_1": lambda found: found.max_ratio_nonzero,
    "diff3_2": lambda found: found.max_diff,
}
NAMES: Final = (*FORMULAS, "diff4", "diff_kl")


@dataclass(frozen=True, slots=True)
class CriterionResult:
    """One criterion's figure.

    value is None where it can't be computed or wasn't judged (judged says which); smallest_passing is the smallest
    threshold that would pass, None where none would or none is needed; part is real or imag of a complex output.
    """

    name: str
    value: float | None
    threshold: float
    source: str
    passed: bool
    smallest_passing: float | None
    reason: str = ""
    judged: bool = True
    part: str = ""

    @property
    def margin(self) -> float | None:
        """value / threshold: below 1 there is room, above 1 it fails; None where either says nothing."""
        return self.value / self.threshold if self.value is not None and self.threshold > 0 else None

    def as_record(self) -> dict[str, Any]:
        """The result as JSON can carry it: NaN and Inf become null."""
        record = {name: getattr(self, name) for name in self.__slots__} | {"margin": self.margin}
        for name in ("value", "threshold", "smallest_passing", "margin"):
            record[name] = finite_or_none(record[name])
        return {name: value for name, value in record.items() if not (name in ("part", "reason") and value == "")}


@dataclass(frozen=True, slots=True)
class Comparison:
    """What comparing an output with its baseline found; counts of complex outputs count real and imaginary parts.

    unequal and first_unequal are of failing outputs only: a passing one is not searched for them.
    """

    shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    criteria: tuple[CriterionResult, ...] = ()
    problem: str = ""  # why nothing could be compared
    unequal: int = 0
    first_unequal: tuple[int, ...] | None = None
    mismatched: int = 0
    first_mismatched: tuple[int, ...] | None = None
    max_abs: float = 0.0

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def judged(self) -> bool:
        """Whether at least one criterion had something to say."""
        return any(result.judged for result in self.criteria)

    @property
    def passed(self) -> bool:
        """Whether the shapes agree and every criterion, at least one, passes."""
        return not self.problem and bool(self.criteria) and all(result.passed for result in self.criteria)

    @property
    def empty(self) -> bool:
        return not self.problem and self.elements == 0

    @property
    def reason(self) -> str:
        """Why it fails, without the output's name; empty where it passes."""
        if self.problem:
            return self.problem
        if not self.failing_criteria:
            return "" if self.criteria else "there is no criterion to judge it by"
        return self.failing_criteria if self.mismatched else f"{self.failing_criteria}; {self.differences}"

    @property
    def failing_criteria(self) -> str:
        """Which criteria fail, with values and thresholds; empty where none does."""
        failing = [result.reason for result in self.criteria if not result.passed]
        return " and ".join(failing[:1] if self.mismatched else failing)  # NaN and Inf fail all criteria for one reason

    @property
    def differences(self) -> str:
        """How many elements differ, where the first one is, and by how much at most."""
        if not self.unequal:
            return "no element differs"
        return (
            f"{self.unequal} of {self.elements} elements differ, the first at {list(self.first_unequal or ())}, "
            f"by at most {self.max_abs:.6g}"
        )

    def as_record(self) -> dict[str, Any]:
        """The comparison as JSON can carry it."""
        record: dict[str, Any] = {
            "shape": list(self.shape),
            "passed": self.passed,
            "criteria": [result.as_record() for result in self.criteria],
            "max_abs": finite_or_none(self.max_abs),
        }
        if self.first_unequal is not None:
            record |= {"unequal": self.unequal, "first_unequal": list(self.first_unequal)}
        if self.mismatched:
            record |= {"mismatched": self.mismatched, "first_mismatched": list(self.first_mismatched or ())}
        if self.output_shape != self.shape:
            record["output_shape"] = list(self.output_shape)
        return record


def finite_or_none(value: float | None) -> float | None:
    """The value, or None where JSON has no number for it."""
    return value if value is not None and math.isfinite(value) else None


def compare(
    baseline: Array,
    output: Array,
    criteria: Sequence[Criterion],
    dtype: str,
    *,
    loose_nan: bool = False,
    threads: int = 1,
    known: dict[str, Known] | None = None,
) -> Comparison:
    """Judges one output by its criteria (EVALUATION.md).

    dtype is the contract's name of the data type: it decides diff3's floor, and complex_half arrays are pairs of half
    along the last axis. Shapes and dtypes must agree (two real float dtypes may differ); nothing is broadcast.
    known, empty at first, remembers by part what depends on baseline and criteria alone, for more outputs to compare.
    """
    shape, output_shape = baseline.shape, output.shape
    if shape != output_shape:
        return Comparison(shape, output_shape, problem=f"its shape is {list(output_shape)}, expected {list(shape)}")
    if dtype == "complex_half" and shape[-1:] != (2,):
        return Comparison(shape, shape, problem=f"its shape is {list(shape)}, expected a last axis of 2 parts")
    if not _comparable(baseline.dtype, output.dtype):
        return Comparison(shape, shape, problem=f"its dtype is {output.dtype}, expected {baseline.dtype}")
    request = Request(frozenset(criterion.name for criterion in criteria), DIFF3_FLOOR.get(dtype, 0.0), loose_nan)
    results: list[CriterionResult] = []
    part_shape = shape[:-1] if dtype == "complex_half" else shape
    parts = []
    for part, b, m in _parts(baseline, output, dtype):
        remembered = None if known is None else known.setdefault(part, {})
        found, differing = measure(b, m, request, threads=threads, known=remembered)
        locate_here = partial(locate, b, m, differing, loose=loose_nan, threads=threads)
        sides = locate_here() if "diff4" in request.names else Unequal()
        kl = kl_divergence(b, m, threads=threads) if "diff_kl" in request.names and b.size >= KL_FROM else None
        measured = Measured(part, part_shape, found, sides, kl)
        results += [_judge(criterion, measured) for criterion in criteria]
        parts.append((found, locate_here))
    passed = all(result.passed for result in results)
    unequal = [] if passed else [locate_here() for _, locate_here in parts]
    return Comparison(
        part_shape,
        part_shape,
        tuple(results),
        unequal=sum(places.number for places in unequal),
        first_unequal=_first((places.first for places in unequal), part_shape),
        mismatched=sum(found.mismatched for found, _ in parts),
        first_mismatched=_first((found.first_mismatched for found, _ in parts), part_shape),
        max_abs=_float(max(found.max_diff for found, _ in parts)),
    )


def metrics(baseline: Array, output: Array, names: Sequence[str], dtype: str) -> dict[str, float | None]:
    """The value of each criterion, of complex outputs the larger of both parts; None where it can't be computed."""
    found = compare(baseline, output, [Criterion(name, math.inf) for name in names], dtype)
    values: dict[str, float | None] = dict.fromkeys(names)
    for result in found.criteria:
        if result.value is not None:
            values[result.name] = max(values[result.name] or 0.0, result.value)
    return values


def _comparable(expected: np.dtype[Any], got: np.dtype[Any]) -> bool:
    expected, got = expected.newbyteorder("="), got.newbyteorder("=")
    return expected == got or {expected, got} <= _FLOATS


def _parts(baseline: Array, output: Array, dtype: str) -> list[tuple[str, Array, Array]]:
    """The real arrays to judge: real and imaginary parts of complex ones, without a copy."""
    if dtype == "complex_half":
        return [(part, baseline[..., i], output[..., i]) for i, part in enumerate(("real", "imag"))]
    if baseline.dtype.kind == "c":
        # Of a contiguous array in one dimension, so that a part is a plain strided view.
        b, m = (array.reshape(-1) if array.flags.c_contiguous else array for array in (baseline, output))
        return [("real", b.real, m.real), ("imag", b.imag, m.imag)]
    return [("", baseline, output)]


def _first(positions: Iterable[int | None], shape: tuple[int, ...]) -> tuple[int, ...] | None:
    first = min((position for position in positions if position is not None), default=None)
    return None if first is None else tuple(int(i) for i in np.unravel_index(first, shape))


def _float(value: Any) -> float:
    with np.errstate(all="ignore"):
        return float(value)


class Measured(NamedTuple):
    """Everything a criterion may ask for about one real array; kl is None where it is too short."""

    part: str
    shape: tuple[int, ...]
    metrics: Metrics
    sides: Unequal
    kl: float | None


def _judge(criterion: Criterion, measured: Measured) -> CriterionResult:
    name, source = criterion.name, criterion.source
    part, metrics = measured.part, measured.metrics
    threshold = criterion.threshold if part != "imag" or criterion.imaginary is None else criterion.imaginary
    label = f"{name} of the {PARTS[part]} part" if part else name

    def result(
        value: float | None, reason: str = "", smallest: float | None = None, judged: bool = True
    ) -> CriterionResult:
        return CriterionResult(name, value, threshold, source, not reason, smallest, reason, judged, part)

    if name not in NAMES:
        return result(None, f"{label} is no known criterion ({', '.join(NAMES)})")
    if metrics.mismatched:
        where = list(_first([metrics.first_mismatched], measured.shape) or ())
        return result(
            None,
            f"{label} (threshold {threshold:g} from {source}) can't hold: NaN or Inf disagree with the baseline at "
            f"{metrics.mismatched} of {math.prod(measured.shape)} elements, the first at {where}",
        )
    if name == "diff4":
        return _judge_sides(label, measured.sides, result)
    if name == "diff_kl":
        if measured.kl is None:
            return result(None, judged=False)
        value = measured.kl
    elif name == "diff3_1" and metrics.max_diff and not metrics.nonzero:
        return result(None, f"{label} can't be computed: the baseline is 0 everywhere, the output isn't")
    else:
        with np.errstate(all="ignore"):
            value = _float(FORMULAS[name](metrics))
    if not math.isfinite(value):
        return result(None, f"{label} can't be computed: the differences are beyond the range of numbers")
    # A difference may underflow, or lie where diff3_1 can't see it; still threshold 0 means equality.
    smallest = max(value, SMALLEST) if name != "diff_kl" and metrics.max_diff else value
    if smallest <= threshold:
        return result(value, smallest=smallest)
    return result(value, f"{label} = {value:.6g} > {threshold:g} (threshold from {source})", smallest)


def _judge_sides(label: str, sides: Unequal, result: Callable[..., CriterionResult]) -> CriterionResult:
    """diff4: the larger of the shares m > b and m < b among unequal elements; all on one side fail at any threshold."""
    if sides.number < DIFF4_FROM:
        return result(None, judged=False)
    share = max(sides.greater, sides.number - sides.greater) / sides.number
    if share < 1:
        return result(share)
    side = "above" if sides.greater else "below"
    return result(share, f"{label} = 1: all {sides.number} unequal elements lie {side} the baseline")
