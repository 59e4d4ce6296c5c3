"""The result of comparing one output with its baseline: the value of each criterion, and where elements differ."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from schemas.suggest import counted


@dataclass(frozen=True, slots=True)
class CriterionResult:
    """The value of one criterion.

    Attributes:
        value: the value, None where it can't be computed or the criterion does not apply (judged is False then).
        threshold, source: the threshold it was compared with, and where that comes from.
        smallest_passing: the smallest threshold that would pass, None where none would or none is needed.
        reason: why the criterion fails, empty where it passes.
        part: "real" or "imag" of a complex output, else empty.

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
        """Return value / threshold, above 1 where it fails; None without a value or with a threshold of 0."""
        return self.value / self.threshold if self.value is not None and self.threshold > 0 else None

    def as_record(self) -> dict[str, Any]:
        """Return the result as JSON data: NaN and Inf become null."""
        record = {name: getattr(self, name) for name in self.__slots__} | {"margin": self.margin}
        for name in ("value", "threshold", "smallest_passing", "margin"):
            record[name] = finite_or_none(record[name])
        return {name: value for name, value in record.items() if not (name in ("part", "reason") and value == "")}


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing one output with its baseline.

    Counts of complex outputs count real and imaginary parts. unequal and first_unequal belong to failing outputs only:
    a passing output is not searched for them. mismatched counts elements whose NaN or Inf disagree. identical: all bits
    are equal.
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
    identical: bool = False

    @property
    def elements(self) -> int:
        """Return the number of elements of the baseline."""
        return math.prod(self.shape)

    @property
    def judged(self) -> bool:
        """Return whether at least one criterion applied."""
        return any(result.judged for result in self.criteria)

    @property
    def passed(self) -> bool:
        """Return whether the shapes agree and every criterion, at least one, passes."""
        return not self.problem and bool(self.criteria) and all(result.passed for result in self.criteria)

    @property
    def empty(self) -> bool:
        """Return whether there were no elements to compare."""
        return not self.problem and self.elements == 0

    @property
    def reason(self) -> str:
        """Return why it fails, without the output's name; empty where it passes."""
        if self.problem:
            return self.problem
        if not self.failing_criteria:
            return "" if self.criteria else "there is no criterion to judge it by"
        covered = self.mismatched or not self.unequal  # the criteria's reasons say all
        return self.failing_criteria if covered else f"{self.failing_criteria}; {self.differences}"

    @property
    def failing_criteria(self) -> str:
        """Which criteria fail, with values and thresholds; empty where none does."""
        failing = [result.reason for result in self.criteria if not result.passed]
        return " and ".join(failing[:1] if self.mismatched else failing)  # NaN and Inf fail all criteria for one reason

    @property
    def differences(self) -> str:
        """Return how many elements differ, where the first one is, and by how much at most."""
        if not self.unequal:
            return "no element differs"
        return (
            f"{self.unequal} of {counted(self.elements, 'element')} differ, "
            f"the first at {list(self.first_unequal or ())}, by at most {self.max_abs:.6g}"
        )

    def as_record(self) -> dict[str, Any]:
        """Return the comparison as JSON data."""
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
    """Return the value, None where JSON has no number for it."""
    return value if value is not None and math.isfinite(value) else None
