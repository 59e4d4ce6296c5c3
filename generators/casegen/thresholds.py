"""Dynamic thresholds: the reference kernel's own error when it computes at the outputs' precision."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from generators.contracts.model import Env
from generators.contracts.operator import Array, Arrays, Operator
from schemas.criteria import Criterion

RATE: Final = 10  # how many times that error is allowed
SOURCE: Final = "dynamic"
# dtype of an output -> what its kernels compute in, and the smallest threshold (an ULP or so)
PRECISIONS: Final[dict[str, tuple[type[np.floating[Any]], float]]] = {
    "float": (np.float32, 1.2e-7),
    "half": (np.float16, 9.8e-4),
}

Criteria = Mapping[str, tuple[Criterion, ...]]
Metrics = Callable[[Array, Array, Sequence[str], str], dict[str, float | None]]
"""The value of each criterion of an output of that dtype against its baseline, None where it can't be computed."""


def dynamic_criteria(
    criteria: Criteria,
    dtypes: Mapping[str, str],
    operator: Operator,
    inputs: Arrays,
    env: Env,
    baseline: Arrays,
    metrics: Metrics,
) -> dict[str, tuple[Criterion, ...]]:
    """The criteria with thresholds of RATE times the reference's own error, where they are tolerances.

    Unchanged: criteria at threshold 0, metrics that can't be computed, outputs of other dtypes, and all criteria of an
    operator without a computation at lower precision. Source: the acceptance rules of MLU-OPS, dynamic threshold.
    """
    low_precision: dict[str, Arrays | None] = {}
    found = dict(criteria)
    for output, own in criteria.items():
        dtype = dtypes[output]
        if dtype not in PRECISIONS or not any(criterion.threshold > 0 for criterion in own):
            continue
        computed_in, smallest = PRECISIONS[dtype]
        if dtype not in low_precision:
            with np.errstate(all="ignore"):
                low_precision[dtype] = operator.reference_in(computed_in, inputs, env)
        arrays = low_precision[dtype]
        if arrays is not None:
            names = [criterion.name for criterion in own]
            errors = metrics(baseline[output], arrays[output], names, dtype)
            found[output] = tuple(_dynamic(criterion, errors[criterion.name], smallest) for criterion in own)
    return found


def _dynamic(criterion: Criterion, error: float | None, smallest: float) -> Criterion:
    if criterion.threshold == 0 or error is None or not math.isfinite(error):
        return criterion
    return replace(criterion, threshold=max(RATE * error, smallest), source=SOURCE)
