"""Criteria: their names, and which of them with which thresholds a case file asks for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Criterion:
    """One figure an output is judged by: passes when value <= threshold; source says where the threshold comes from."""

    name: str
    threshold: float
    source: str = "contract"
