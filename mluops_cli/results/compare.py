"""Two runs compared case by case: failures, new and missing cases, error bounds, repeats, grown errors, latencies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from mluops_cli.core.record import Record
from mluops_cli.core.statuses import FAILING, PASSING
from mluops_cli.core.units import format_microseconds
from mluops_cli.results.finished import FinishedRun, judged

Speed = Literal["SAME", "FAST", "SLOW", "AMBG"]  # AMBG: ambiguous, the measurements don't decide
GROWTH: Final = 2.0  # an error that is more than so many times the earlier one is reported
NOTABLE: Final = 0.03  # a smaller relative difference of latencies counts as none
WIDE: Final = 0.3  # an interval wider than this fraction of its latency decides nothing


@dataclass(frozen=True, slots=True)
class Change:
    """A case whose status, or what else before and after say, changed; one is empty where the run lacks the case.

    case_changed: whether the case file changed too, so that the change need not be the implementation's; None where a
    run doesn't say.
    """

    case: str
    before: str
    after: str
    reason: str = ""
    case_changed: bool | None = None


@dataclass(frozen=True, slots=True)
class Growth:
    """A criterion that still passes with a larger error; factor is None where the error was 0."""

    case: str
    output: str
    criterion: str
    before: float
    after: float
    threshold: float
    factor: float | None


@dataclass(frozen=True, slots=True)
class Timing:
    """Latency before and after in microseconds, the verdict and its reason; after is None where it wasn't measured."""

    case: str
    before: float
    after: float | None
    verdict: Speed
    reason: str


@dataclass(slots=True)
class Comparison:
    """The changes from one run to another, each list sorted by case.

    case_changed: cases whose file changed, whatever their status. Their errors and latencies aren't compared.
    newly_beyond, within_again: cases that went beyond their error bound and don't fail, or back. repeats: how outputs
    of repeated calls vary, where that changed. Where a run doesn't know (no bound, one call) there is no change.
    """

    newly_failing: list[Change] = field(default_factory=list)
    fixed: list[Change] = field(default_factory=list)
    appeared: list[Change] = field(default_factory=list)
    gone: list[Change] = field(default_factory=list)
    changed: list[Change] = field(default_factory=list)
    case_changed: list[Change] = field(default_factory=list)
    newly_beyond: list[Change] = field(default_factory=list)
    within_again: list[Change] = field(default_factory=list)
    repeats: list[Change] = field(default_factory=list)
    grown: list[Growth] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)
    cases: int = 0

    def as_json(self) -> dict[str, Any]:
        """The comparison as plain data."""
        return asdict(self)

    def timed(self, verdict: Speed) -> list[Timing]:
        """The timings with that verdict."""
        return [each for each in self.timings if each.verdict == verdict]

    @property
    def unmeasured(self) -> list[Timing]:
        """The timings with a valid measurement before and none now."""
        return [each for each in self.timings if each.before and not each.after]


def compare_runs(old: FinishedRun, new: FinishedRun, growth: float = GROWTH) -> Comparison:
    """Compare two runs by case id. A case that fails now and didn't fail before is newly failing, a new case too."""
    found = Comparison(cases=len(new.records))
    for case in sorted(old.by_case.keys() | new.by_case.keys()):
        before, after = old.by_case.get(case), new.by_case.get(case)
        change = _change(case, before, after)
        _place(found, change)
        if before is not None and after is not None:
            _place_bound(found, before, after, change.case_changed)
            found.repeats += _repeats(before, after, change.case_changed)
            if not change.case_changed:
                found.grown += _grown(before, after, growth)
            found.timings += _timings(before, after, _incomparable(change, (old, before), (new, after)))
    return found


def _timings(before: Record, after: Record, incomparable: str) -> Iterator[Timing]:
    """The timing of a case that has a latency in both runs, or passes without the measurement that it had."""
    if before.latency_us is None:
        return
    if after.latency_us is None:
        if before.latency_interval_us is not None and after.status == "pass":
            yield Timing(after.case, before.latency_us, None, "AMBG", "measured before, not measured now")
        return
    verdict, reason = _speed(before, after)
    if incomparable:
        verdict, reason = "AMBG", incomparable
    yield Timing(after.case, before.latency_us, after.latency_us, verdict, reason)


def _change(case: str, before: Record | None, after: Record | None) -> Change:
    if before is None or after is None:
        return Change(
            case, before.status if before else "", after.status if after else "", after.reason if after else ""
        )
    known = before.case_hash and after.case_hash
    return Change(
        case, before.status, after.status, after.reason, before.case_hash != after.case_hash if known else None
    )


def _place(found: Comparison, change: Change) -> None:
    """Add the change to the lists that it belongs to."""
    failed, fails = change.before in FAILING, change.after in FAILING
    if fails and not failed:
        found.newly_failing.append(change)
    if change.case_changed:
        found.case_changed.append(change)
    if not change.before:
        found.appeared.append(change)
    elif not change.after:
        found.gone.append(change)
    elif failed and change.after in PASSING:
        found.fixed.append(change)
    elif change.before != change.after and not (fails and not failed):
        found.changed.append(change)


def _place_bound(found: Comparison, before: Record, after: Record, case_changed: bool | None) -> None:
    """Add a case that crossed its error bound to the list that it belongs to; its failure says more than that."""
    crossed = before.beyond_bound, after.beyond_bound
    if crossed == (False, True) and after.status not in FAILING:
        reason = "; ".join(after.beyond_sentences)
        found.newly_beyond.append(Change(after.case, "within", "beyond", reason, case_changed))
    elif crossed == (True, False) and before.status not in FAILING:
        found.within_again.append(Change(after.case, "beyond", "within", "", case_changed))


def _repeats(before: Record, after: Record, case_changed: bool | None) -> Iterator[Change]:
    """The outputs whose repeated calls vary otherwise than before."""
    earlier = before.repeat_verdicts
    for output, verdict in after.repeat_verdicts.items():
        if earlier.get(output, verdict) != verdict:
            yield Change(after.case, earlier[output], verdict, f"output {output}", case_changed)


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


def incomparable(old: tuple[FinishedRun, Record], new: tuple[FinishedRun, Record]) -> str:
    """Why the latencies of two records of one case can't be compared; empty where they can."""
    return _incomparable(_change(old[1].case, old[1], new[1]), old, new)


def _incomparable(change: Change, old: tuple[FinishedRun, Record], new: tuple[FinishedRun, Record]) -> str:
    """Why the latencies of a case can't be compared; empty where they can."""
    if change.case_changed:
        return "the case file changed"
    for what in ("device", "platform", "cpu"):  # not the host: CI names a new one for each run
        before, after = (_ran_on(what, run, record) for run, record in (old, new))
        if before and after and before != after:
            return f"measured on another {what}: {before}, then {after}"
    return ""


def _ran_on(what: str, run: FinishedRun, record: Record) -> str:
    """The device, platform or processor that ran the case, as the record says, otherwise as the summary says."""
    environment = run.summary.get("environment") or {}
    return str(getattr(record, what, "") or environment.get(what) or "")


def _speed(before: Record, after: Record) -> tuple[Speed, str]:
    """The verdict on two latencies, by their intervals."""
    zero = [when for when, record in (("before", before), ("now", after)) if not record.latency_us]
    if zero or not before.latency_us or not after.latency_us:
        return "AMBG", f"0 µs {' and '.join(zero)} is an error of measurement"
    change = after.latency_us / before.latency_us - 1
    if before.latency_interval_us is None or after.latency_interval_us is None:
        return "AMBG", "measured without an interval (run --perf)"
    for when, record in (("before", before), ("now", after)):
        low, high = record.latency_interval_us or (0.0, 0.0)
        if high - low > WIDE * (record.latency_us or 1.0):
            return "AMBG", f"too noisy {when}: between {format_microseconds(low)} and {format_microseconds(high)}"
    (low0, high0), (low1, high1) = before.latency_interval_us, after.latency_interval_us
    if low1 <= high0 and low0 <= high1:
        if abs(change) <= NOTABLE:
            return "SAME", f"{change:+.1%}, the intervals overlap"
        return "AMBG", f"{change:+.1%}, but the intervals overlap"
    if abs(change) <= NOTABLE:
        return "SAME", f"{change:+.1%} is less than {NOTABLE:.0%}"
    return ("SLOW" if change > 0 else "FAST"), f"{change:+.1%}, the intervals are apart"
