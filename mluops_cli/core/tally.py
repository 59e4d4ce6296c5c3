"""A tally counts records and makes the exit code of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from mluops_cli.core.statuses import EXIT_CODE_OF_BLAME, FAILED, FAILING, INTERRUPTED, PASSED, PASSING
from schemas.suggest import counted


class Counted(NamedTuple):
    """What a tally counts of a record.

    unexpected: a case beyond the design passed with another status than the expected ones. beyond: an output of a
    passing case is beyond its error bound. valid: the operator op must accept the case. repeat: the worst verdict on
    the outputs of repeated calls, empty with one call.
    """

    status: str
    blame: str | None = None
    unexpected: bool = False
    beyond: bool = False
    op: str = ""
    valid: bool = False
    repeat: str = ""


@dataclass(slots=True)
class Tally:
    """Counts of records, and the exit code that follows from them.

    partial: the records are those of a part of the selected cases (--shard). What the part doesn't show, another may.
    """

    counts: Counter[str] = field(default_factory=Counter)
    codes: set[int] = field(default_factory=set)
    unexpected: int = 0  # answers beyond the design that were others than expected
    beyond: int = 0  # passing cases with an output beyond its error bound
    valid: Counter[str] = field(default_factory=Counter)  # operator -> its valid cases
    skipped: Counter[str] = field(default_factory=Counter)  # operator -> of these, those that were skipped
    judged: set[str] = field(default_factory=set)  # operators with a valid case that is neither skipped nor empty
    repeats: Counter[str] = field(default_factory=Counter)  # worst verdict on repeated calls -> cases
    partial: bool = False

    def add(self, one: Counted, number: int = 1) -> None:
        """Count one record, or a number of equal ones."""
        status, blame, unexpected, beyond, op, valid, repeat = one
        self.counts[status] += number
        self.unexpected += number * unexpected
        self.beyond += number * beyond
        if repeat:
            self.repeats[repeat] += number
        if valid:
            self.valid[op] += number
            if status == "skip":
                self.skipped[op] += number
            elif status != "empty":
                self.judged.add(op)
        if status in FAILING:
            self.codes.add(EXIT_CODE_OF_BLAME.get(blame, FAILED))

    @property
    def total(self) -> int:
        """The number of records."""
        return self.counts.total()

    @property
    def failures(self) -> int:
        """The number of failing records."""
        return sum(self.counts[status] for status in FAILING)

    @property
    def validated(self) -> bool:
        """Whether any case passed or was empty: a run that only skips cases proves nothing."""
        return any(self.counts[status] for status in PASSING)

    @property
    def unproven(self) -> list[str]:
        """The operators that the implementation has not shown to compute: no valid case was judged, some were skipped.

        Where only invalid cases are selected, or only ones without elements, nothing is skipped and this holds no
        operator.
        """
        return sorted(op for op in self.skipped if op not in self.judged)

    @property
    def unproven_sentences(self) -> list[str]:
        """One sentence for each of these operators."""
        return [
            f"{op}: of {counted(self.valid[op], 'valid case')} none was judged, {self.skipped[op]} skipped"
            for op in self.unproven
        ]

    def exit_code(self, *, strict: bool = False, interrupted: bool = False) -> int:
        """Return the highest exit code that applies.

        strict: mistrusted cases, unexpected answers beyond the design, and passes beyond their error bound fail.
        """
        codes = {PASSED, *self.codes}
        if strict and (self.counts["mistrusted"] or self.unexpected or self.beyond):
            codes.add(FAILED)
        if not self.partial and (not self.validated or self.unproven):
            codes.add(FAILED)
        if interrupted:
            codes.add(INTERRUPTED)
        return max(codes)
