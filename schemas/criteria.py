"""Criteria: their names, and a criterion with its threshold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

NAMES: Final[dict[str, str]] = {
    "MAPE": "diff1",
    "MAXAPE": "diff3",
    "DIFF1": "diff1",
    "DIFF2": "diff2",
    "DIFF3": "diff3",
    "DIFF3_2": "diff3_2",
    "DIFF4": "diff4",
    "DIFF_KL": "diff_kl",
}
"""A case file's name of a criterion -> our name; the missing ones (SMAPE, SMAXAPE, NRMSE) can't be judged."""
CRITERIA: Final = tuple(dict.fromkeys((*NAMES.values(), "diff3_1")))
"""Our names of all criteria."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """One metric that an output is judged by: it passes when value <= threshold, diff4 when it is below 1.

    name is diff1, diff2, diff3 or another of docs/judging.md, which has the formulas; values and thresholds have no
    unit. source says where the threshold comes from. imaginary is the threshold of a complex output's imaginary part,
    None where it is the same.
    """

    name: str
    threshold: float
    source: str = "contract"
    imaginary: float | None = None


def stricter(first: Criterion, second: Criterion) -> Criterion:
    """Of two criteria of one name the one with the lower thresholds, for each part the lower one."""
    lower = min(first, second, key=lambda criterion: criterion.threshold)
    if first.imaginary is None and second.imaginary is None:
        return lower
    parts = (each.threshold if each.imaginary is None else each.imaginary for each in (first, second))
    return replace(lower, imaginary=min(parts))
