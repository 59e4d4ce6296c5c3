"""Which criteria with which thresholds a case file asks for, and where its baseline comes from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from schemas.casefiles.reading import CaseFile
from schemas.casefiles.tensors import TensorRecord
from schemas.criteria import NAMES, Criterion
from schemas.errors import InputError, SourceLocation
from schemas.protos.messages import enum_names


def criteria_of(case: CaseFile) -> list[tuple[Criterion, ...]]:
    """The criteria a case file names, an entry per output; () where it names none or threshold_use = 0 leaves it out.

    Our own (CaseMeta.criteria) win over test_param, that over evaluation_criterion with evaluation_threshold, that over
    evaluation_criterion with each output's thresholds, where an infinite one leaves the criterion out. InputError where
    counts differ, a criterion can't be judged, or a threshold is no finite number of 0 or more.
    """
    return [_criteria_of_output(case, record) if record.judged else () for record in case.outputs]


def _criteria_of_output(case: CaseFile, output: TensorRecord) -> tuple[Criterion, ...]:
    node, place = case.node, SourceLocation(str(case.path))
    if case.meta is not None and case.meta.criteria:
        return _own(case.meta, output.id, place)
    test = node.test_param
    if test.error_func or test.error_threshold:
        return _pairs(test.error_func, test.error_threshold, test.error_threshold_imag, "test_param", place)
    functions = node.evaluation_criterion
    if node.evaluation_threshold:
        imaginary = node.evaluation_threshold_imag
        return _pairs(functions, node.evaluation_threshold, imaginary, "evaluation_threshold", place)
    own = output.header.thresholds
    source = f"thresholds of output {output.id}"
    found = _pairs(functions, own.evaluation_threshold, own.evaluation_threshold_imag, source, output.place, spare=True)
    # The criteria are those of all outputs: Inf is how a file says that this one isn't judged by one of them.
    kept = tuple(criterion for criterion in found if math.inf not in (criterion.threshold, criterion.imaginary))
    if found and not kept:
        raise InputError(f"every threshold is inf, expected a finite one ({source})", output.place)
    return kept


def _pairs(
    functions: Sequence[int],
    thresholds: Sequence[float],
    imaginary: Sequence[float],
    source: str,
    place: SourceLocation,
    *,
    spare: bool = False,
) -> tuple[Criterion, ...]:
    """Criteria and thresholds, paired and checked; spare: a threshold may be Inf."""
    if len(functions) != len(thresholds):
        raise InputError(f"{len(functions)} criteria, but {len(thresholds)} thresholds ({source})", place)
    if imaginary and len(imaginary) != len(thresholds):
        raise InputError(f"{len(thresholds)} thresholds, but {len(imaginary)} imaginary ones ({source})", place)
    names = [enum_names("EvaluationCriterion")[number] for number in functions]
    for name in names:
        if name not in NAMES:
            raise InputError(f"criterion {name} can't be judged, expected one of {', '.join(NAMES)} ({source})", place)
    for threshold in (*thresholds, *imaginary):
        if not (spare and threshold == math.inf):
            _check_threshold(threshold, source, place)
    others: Sequence[float | None] = imaginary or [None] * len(names)
    return tuple(
        Criterion(NAMES[name], float(threshold), source, other)
        for name, threshold, other in zip(names, thresholds, others, strict=True)
    )


def _own(meta: Any, output: str, place: SourceLocation) -> tuple[Criterion, ...]:
    entries = [entry for entry in meta.criteria if entry.output == output]
    for entry in entries:
        _check_threshold(entry.threshold, entry.source, place)
    return tuple(Criterion(entry.name, entry.threshold, entry.source) for entry in entries)


def _check_threshold(threshold: float, source: str, place: SourceLocation) -> None:
    """Nothing passes below 0 or NaN, and anything below Inf: the file is wrong, not the implementation."""
    if not 0 <= threshold < math.inf:
        raise InputError(f"a threshold is {threshold:g}, expected a finite number of 0 or more ({source})", place)


def baseline_device(node: Any) -> str:
    """Where the baseline comes from: CPU = to be computed, GPU = the file carries it; others as the file names them."""
    if not node.HasField("device") and node.test_param.HasField("baseline_device"):
        return enum_names("Device")[node.test_param.baseline_device]
    return enum_names("Device")[node.device]
