"""Criteria: their names, and what one of them with its threshold is."""

from __future__ import annotations

from dataclasses import dataclass
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
"""A case file's name of a criterion -> ours; those that are missing (SMAPE, SMAXAPE, NRMSE) can't be judged."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """One figure an output is judged by: passes when value <= threshold; source says where the threshold comes from.

    imaginary is the threshold of a complex output's imaginary part where that is another one.
    """

    name: str
    threshold: float
    source: str = "contract"
    imaginary: float | None = None
