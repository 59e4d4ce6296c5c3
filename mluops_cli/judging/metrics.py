"""The criteria of one output: their formulas as data, and their values for a baseline and an output."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from mluops_cli.judging.arithmetic import EPSILON, SMALLEST, Array
from mluops_cli.judging.comparison import Comparison, CriterionResult
from mluops_cli.judging.divergence import JUDGED_FROM as KL_FROM
from mluops_cli.judging.divergence import kl_divergence
from mluops_cli.judging.measurement import DenominatorCache, Metrics, Request, measure
from mluops_cli.judging.unequal import Unequal, locate
from schemas.criteria import Criterion
from schemas.dtypes import DTYPES
from schemas.suggest import counted

# diff3 is relative where abs(b) exceeds this; not listed: 0 (double and integers).
DIFF3_FLOOR: Final = {
    "float": 1e-6, "complex_float": 1e-6, "complex64": 1e-6, "half": 1e-4, "bfloat16": 1e-4, "complex_half": 1e-4,
    "float8_e4m3fn": 1e-4, "float8_e5m2": 1e-4,
}  # fmt: skip
_FLOATS: Final = frozenset(dtype.storage for dtype in DTYPES.values() if dtype.is_float)
DIFF4_FROM: Final = 100  # unequal elements; fewer may be on one side by chance

PARTS: Final = {"real": "real", "imag": "imaginary"}

FORMULAS: Final[dict[str, Callable[[Metrics], Any]]] = {
    "diff1": lambda found: found.sum_diff / (found.sum_base + EPSILON),
    "diff2": lambda found: np.sqrt(found.sum_diff2 / (found.sum_base2 + EPSILON)),
    "diff3": lambda found: found.max_ratio,
    "diff3_1": lambda found: found.max_ratio_nonzero,
    "diff3_2": lambda found: found.max_diff,
}
NAMES: Final = (*FORMULAS, "diff4", "diff_kl")


def compare(
    baseline: Array,
    output: Array,
    criteria: Sequence[Criterion],
    dtype: str,
    *,
    loose_nan: bool = False,
    signed_zero: bool = False,
    threads: int = 1,
    caches: dict[str, DenominatorCache] | None = None,
) -> Comparison:
    """Compare one output with its baseline by the criteria (docs/judging.md).

    Args:
        baseline: the array of right values.
        output: an array of the same shape and dtype (two real float dtypes may differ); nothing is broadcast.
        criteria: the criteria with their thresholds.
        dtype: the name of the tensor's dtype. It decides diff3's floor; complex_half arrays are pairs of half along the
            last axis.
        loose_nan: whether all NaN and Inf count as equal to each other.
        signed_zero: whether -0 instead of 0 (or the reverse) fails a criterion of threshold 0.
        threads: threads that compute.
        caches: empty at first; keeps by part what depends on baseline and criteria alone, for the next output.

    """
    shape, output_shape = baseline.shape, output.shape
    if shape != output_shape:
        return Comparison(shape, output_shape, problem=f"its shape is {list(output_shape)}, expected {list(shape)}")
    if dtype == "complex_half" and shape[-1:] != (2,):
        return Comparison(shape, shape, problem=f"its shape is {list(shape)}, expected a last axis of 2 parts")
    if not _comparable(baseline.dtype, output.dtype):
        return Comparison(shape, shape, problem=f"its dtype is {output.dtype}, expected {baseline.dtype}")
    names = frozenset(criterion.name for criterion in criteria)
    request = Request(names, DIFF3_FLOOR.get(dtype, 0.0), loose_nan, signed_zero and baseline.dtype.kind not in "iub")
    results: list[CriterionResult] = []
    part_shape = shape[:-1] if dtype == "complex_half" else shape
    parts = []
    identical = True
    for (part, b), (_, m) in zip(parts_of(baseline, dtype), parts_of(output, dtype), strict=True):
        cache = None if caches is None else caches.setdefault(part, {})
        found, differing = measure(b, m, request, threads=threads, cache=cache)
        identical = identical and not differing
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
        identical=identical,
    )


def metrics(baseline: Array, output: Array, names: Sequence[str], dtype: str) -> dict[str, float | None]:
    """Return the value of each criterion, the larger of both parts where complex; None where it can't be computed."""
    found = compare(baseline, output, [Criterion(name, math.inf) for name in names], dtype)
    values: dict[str, float | None] = dict.fromkeys(names)
    for result in found.criteria:
        if result.value is not None:
            values[result.name] = max(values[result.name] or 0.0, result.value)
    return values


def _comparable(expected: np.dtype[Any], got: np.dtype[Any]) -> bool:
    expected, got = expected.newbyteorder("="), got.newbyteorder("=")
    return expected == got or {expected, got} <= _FLOATS


def parts_of(array: Array, dtype: str) -> list[tuple[str, Array]]:
    """Return the real arrays to judge, without a copy: real and imaginary part of complex ones."""
    if dtype == "complex_half":
        return [(part, array[..., i]) for i, part in enumerate(("real", "imag"))]
    if array.dtype.kind == "c":
        # A contiguous array is taken in one dimension: each part is then a plain strided view.
        values = array.reshape(-1) if array.flags.c_contiguous else array
        return [("real", values.real), ("imag", values.imag)]
    return [("", array)]


def _first(positions: Iterable[int | None], shape: tuple[int, ...]) -> tuple[int, ...] | None:
    first = min((position for position in positions if position is not None), default=None)
    return None if first is None else tuple(int(i) for i in np.unravel_index(first, shape))


def _float(value: Any) -> float:
    with np.errstate(all="ignore"):  # a long double may be beyond the range of float
        return float(value)


class Measured(NamedTuple):
    """What a criterion is computed from, for one real array; kl is None where the array is too short."""

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
            f"{metrics.mismatched} of {counted(math.prod(measured.shape), 'element')}, the first at {where}",
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
            value = float(FORMULAS[name](metrics))
    if not math.isfinite(value):
        return result(None, f"{label} can't be computed: the differences are beyond the range of numbers")
    # A difference may underflow, or diff3_1 may not see it; a threshold of 0 still means equality.
    smallest = max(value, SMALLEST) if name != "diff_kl" and metrics.max_diff else value
    if metrics.wrong_zeros and smallest <= threshold == 0:
        where = list(_first([metrics.first_wrong_zero], measured.shape) or ())
        zeros = counted(metrics.wrong_zeros, "zero has", "zeros have")
        text = f"{zeros} the wrong sign, the first at {where}: a copy keeps the sign of 0"
        return result(value, f"{label} (threshold 0 from {source}): {text}")
    if smallest <= threshold:
        return result(value, smallest=smallest)
    return result(value, f"{label} = {value:.6g} > {threshold:g} (threshold from {source})", smallest)


def _judge_sides(label: str, sides: Unequal, result: Callable[..., CriterionResult]) -> CriterionResult:
    """Judge diff4, the larger fraction of m > b and m < b among unequal elements; 1 fails at any threshold."""
    if sides.number < DIFF4_FROM:
        return result(None, judged=False)
    fraction = max(sides.greater, sides.number - sides.greater) / sides.number
    if fraction < 1:
        return result(fraction)
    side = "above" if sides.greater else "below"
    return result(fraction, f"{label} = 1: all {sides.number} unequal elements lie {side} the baseline")
