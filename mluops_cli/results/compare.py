"""Two runs compared by case: what fails newly, what is mended, came or went, whose errors grew, what got slower."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from mluops_cli.core.record import FAILING, Record
from mluops_cli.results.finished import FinishedRun, judged

Speed = Literal["SAME", "FAST", "SLOW", "AMBG"]
GROWTH: Final = 2.0  # times the error before, from which on it is told
NOTABLE: Final = 0.03  # relative difference of latencies below which nobody cares
WIDE: Final = 0.3  # an interval wider than this share of its latency says too little


@dataclass(frozen=True, slots=True)
class Change:
    """A case whose status is another one than before; before or after is empty where it didn't exist."""

    case: str
    before: str
    after: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Growth:
    """A criterion that passes still, with an error that grew; factor is None where it was 0."""

    case: str
    output: str
    criterion: str
    before: float
    after: float
    threshold: float
    factor: float | None


@dataclass(frozen=True, slots=True)
class Timing:
    """Latency before and after in microseconds, the verdict and why it is that."""

    case: str
    before: float
    after: float
    verdict: Speed
    reason: str


@dataclass(slots=True)
class Comparison:
    """What changed from one run to another, each list sorted by case."""

    newly_failing: list[Change] = field(default_factory=list)
    fixed: list[Change] = field(default_factory=list)
    appeared: list[Change] = field(default_factory=list)
    gone: list[Change] = field(default_factory=list)
    changed: list[Change] = field(default_factory=list)
    grown: list[Growth] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)
    cases: int = 0

    def as_json(self) -> dict[str, Any]:
        """The comparison as plain data."""
        return asdict(self)

    def timed(self, verdict: Speed) -> list[Timing]:
        """The timings with that verdict."""
        return [each for each in self.timings if each.verdict == verdict]


def compare_runs(old: FinishedRun, new: FinishedRun, growth: float = GROWTH) -> Comparison:
    """Compare two runs by case id; a case fails newly if it fails now and didn't before, be it new itself."""
    found = Comparison(cases=len(new.records))
    comparable = _comparable(old, new)
    for case in sorted(old.by_case.keys() | new.by_case.keys()):
        before, after = old.by_case.get(case), new.by_case.get(case)
        _place(found, case, before, after)
        if before is not None and after is not None:
            found.grown += _grown(before, after, growth)
            if before.latency_us and after.latency_us:
                verdict, reason = _speed(before, after) if not comparable else ("AMBG", comparable)
                found.timings.append(Timing(case, before.latency_us, after.latency_us, verdict, reason))
    return found


def _place(found: Comparison, case: str, before: Record | None, after: Record | None) -> None:
    change = Change(case, before.status if before else "", after.status if after else "", after.reason if after else "")
    failed, fails = change.before in FAILING, change.after in FAILING
    if fails and not failed:
        found.newly_failing.append(change)
    if before is None:
        found.appeared.append(change)
    elif after is None:
        found.gone.append(change)
    elif failed and change.after in ("pass", "empty"):
        found.fixed.append(change)
    elif change.before != change.after and not (fails and not failed):
        found.changed.append(change)


def _grown(before: Record, after: Record, growth: float) -> Iterator[Growth]:
    earlier = {_key(each): each.criterion.get("value") for each in judged(before)}
    for each in judged(after):
        value, threshold, was = each.criterion.get("value"), each.criterion.get("threshold"), earlier.get(_key(each))
        if value is None or was is None or threshold is None or not each.criterion.get("passed"):
            continue
        if value > was * growth and value > 0:
            name = " ".join(_key(each)[1:]).strip()
            yield Growth(after.case, each.output, name, was, value, threshold, value / was if was else None)


def _key(each: Any) -> tuple[str, str, str]:
    return each.output, each.criterion.get("name", ""), each.criterion.get("part", "")


def _comparable(old: FinishedRun, new: FinishedRun) -> str:
    """Why latencies of the two runs can't be compared; empty where they can."""
    for what in ("platform", "cpu", "device"):  # not the host: CI names a new one for each run
        before, after = (run.summary.get("environment", {}).get(what) for run in (old, new))
        if before != after and before is not None and after is not None:
            return f"measured on another {what}: {before}, then {after}"
    return ""


def _speed(before: Record, after: Record) -> tuple[Speed, str]:
    """The verdict on two latencies by the intervals they lie in."""
    assert before.latency_us
    assert after.latency_us
    change = after.latency_us / before.latency_us - 1
    if before.latency_interval_us is None or after.latency_interval_us is None:
        return "AMBG", "measured without an interval (run --perf)"
    for when, record in (("before", before), ("now", after)):
        low, high = record.latency_interval_us or (0.0, 0.0)
        if high - low > WIDE * (record.latency_us or 1.0):
            return "AMBG", f"too noisy {when}: between {low:.4g} and {high:.4g} µs"
    (low0, high0), (low1, high1) = before.latency_interval_us, after.latency_interval_us
    if low1 <= high0 and low0 <= high1:
        if abs(change) <= NOTABLE:
            return "SAME", f"{change:+.1%}, the intervals overlap"
        return "AMBG", f"{change:+.1%}, but the intervals overlap"
    if abs(change) <= NOTABLE:
        return "SAME", f"{change:+.1%} is less than {NOTABLE:.0%}"
    return ("SLOW" if change > 0 else "FAST"), f"{change:+.1%}, the intervals are apart"
