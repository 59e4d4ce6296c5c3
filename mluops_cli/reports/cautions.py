"""What no status says: a case is beyond its error bound, its repeats differ, or its kernel has started programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from mluops_cli.core.record import REPEAT_VERDICTS, VARIES_BEYOND, VARIES_UNBOUNDED, VARIES_WITHIN, Record
from mluops_cli.core.statuses import FAILING
from mluops_cli.results.finished import FinishedRun

BEYOND: Final = "beyond"
VARIES: Final = "varies"
STARTS: Final = "starts"
TITLES: Final[Mapping[str, str]] = {
    BEYOND: "beyond the error bound",
    VARIES: "varying between repeats",
    STARTS: "starting programs",
}
_REPEATS: Final = {
    VARIES_WITHIN: "within the error bound",
    VARIES_UNBOUNDED: "without an error bound",
    VARIES_BEYOND: "beyond the error bound",
}


class Caution(NamedTuple):
    """One doubt about a case: its kind, a key of TITLES, and where the outputs show it."""

    word: str
    text: str

    @property
    def title(self) -> str:
        """The kind in words."""
        return TITLES[self.word]


def cautions(record: Record) -> list[Caution]:
    """The doubts about a case, besides its status."""
    found = []
    if record.beyond:
        found.append(Caution(BEYOND, beyond_text(record)))
    if unstable := record.unstable:
        found.append(Caution(VARIES, f"{', '.join(unstable)}: repeats differ by more than rounding explains"))
    if record.programs:
        found.append(Caution(STARTS, programs_text(record)))
    return found


def cautions_of(run: FinishedRun) -> Iterator[tuple[Record, list[Caution]]]:
    """The cases with doubts, in the order of the records."""
    repeats = run.repeats
    for record in run.records:
        # Few cases are either. The outputs of the others needn't be searched.
        suspect = record.beyond_bound or record.programs or (repeats and repeats.get(record.case) == VARIES_BEYOND)
        if suspect and (found := cautions(record)):
            yield record, found


def doubtful(run: FinishedRun) -> Iterator[tuple[Record, list[Caution]]]:
    """The cases with doubts that don't fail; those that do have a reason to be looked at already."""
    return ((record, found) for record, found in cautions_of(run) if record.status not in FAILING)


def beyond_text(record: Record) -> str:
    """Where each output is furthest beyond its error bound; empty for a case within it."""
    if not record.beyond_bound:
        return ""
    return "; ".join(record.beyond_sentences) or "an output is further from the baseline than rounding explains"


def programs_text(record: Record) -> str:
    """Which programs the kernel's process had started; empty where none."""
    names = ", ".join(record.programs)
    return f"the kernel's process has started {names}: a program can use what holds the answer" if names else ""


def repeats_text(record: Record) -> str:
    """How each output of repeated calls varies; empty with one call."""
    verdicts = record.repeat_verdicts
    return ", ".join(f"{name}: {verdict}" for name, verdict in verdicts.items()) if verdicts else ""


def repeats_summary(found: Mapping[str, int]) -> str:
    """How many cases have identical outputs in all calls, and how many vary; empty where none was repeated."""
    parts = [
        f"{found[verdict]} varying {_REPEATS[verdict]}" if verdict in _REPEATS else f"{found[verdict]} {verdict}"
        for verdict in REPEAT_VERDICTS
        if found.get(verdict)
    ]
    return ", ".join(parts)
