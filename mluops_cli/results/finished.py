"""A finished run, read from its folder: the input of every report, gate and comparison."""

from __future__ import annotations

import gc
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from mluops_cli.core.filters import is_partial
from mluops_cli.core.record import RESULTS, Record
from mluops_cli.core.statuses import FAILING, STATUSES
from mluops_cli.core.tally import Tally
from mluops_cli.results.failure_groups import FailureGroup, FailureGroups
from mluops_cli.results.jsonl import SUMMARY, read_results, refuse_special
from schemas.errors import InputError, SourceLocation


class Judged(NamedTuple):
    """One criterion of one output as a record holds it."""

    output: str
    criterion: Mapping[str, Any]

    @property
    def badness(self) -> float:
        """value / threshold, infinite where the criterion fails: the largest one is the worst."""
        if not self.criterion.get("passed", True):
            return float("inf")
        value, threshold = self.criterion.get("value"), self.criterion.get("threshold")
        return value / threshold if value and threshold else 0.0

    def __str__(self) -> str:
        value, threshold = self.criterion.get("value"), self.criterion.get("threshold")
        part = f" ({self.criterion['part']})" if self.criterion.get("part") else ""
        name = f"{self.output} {self.criterion.get('name')}{part}"
        limit = "none" if threshold is None else f"{threshold:g}"
        if value is None:
            return f"{name} not computable (threshold {limit})"
        return f"{name} {value:.6g} {'<=' if self.criterion.get('passed', True) else '>'} {limit}"


def judged(record: Record) -> Iterator[Judged]:
    """Return the judged criteria of all outputs."""
    for name, output in record.outputs.items():
        for criterion in output.get("criteria", ()):
            if criterion.get("judged", True):
                yield Judged(name, criterion)


def worst(record: Record) -> Judged | None:
    """Return the criterion that fails or is nearest to its threshold; None where none was judged."""
    found = [*judged(record)]
    return found[0] if len(found) == 1 else max(found, key=lambda each: each.badness, default=None)


@dataclass(frozen=True)
class FinishedRun:
    """The records of a run in the order in which they were made, and its summary (empty if the run was cut off)."""

    out: Path
    records: list[Record]
    summary: Mapping[str, Any]

    @cached_property
    def tally(self) -> Tally:
        """The records counted."""
        tally = Tally(partial=_is_partial(self.summary.get("shard")))
        for counted, number in Counter(record.counted for record in self.records).items():
            tally.add(counted, number)
        return tally

    @cached_property
    def repeats(self) -> dict[str, str]:
        """The worst verdict on repeated calls by case id, without the cases that were called once."""
        if not self.tally.repeats:
            return {}
        return {record.case: verdict for record in self.records if (verdict := record.worst_repeat)}

    @cached_property
    def by_case(self) -> dict[str, Record]:
        """The records by case id."""
        return {record.case: record for record in self.records}

    @cached_property
    def by_operator(self) -> dict[str, list[Record]]:
        """The records by operator, sorted."""
        found: dict[str, list[Record]] = {}
        for record in self.records:
            found.setdefault(record.op, []).append(record)
        return dict(sorted(found.items()))

    @cached_property
    def matrix(self) -> dict[tuple[str, str], Counter[str]]:
        """(operator, suite) -> number of cases by status."""
        found: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for (op, suite, status), number in Counter((r.op, r.suite, r.status) for r in self.records).items():
            found[op, suite][status] = number
        return dict(sorted(found.items()))

    @cached_property
    def worst(self) -> list[Judged | None]:
        """The worst criterion of each record, in the order of the records."""
        return [worst(record) for record in self.records]

    @cached_property
    def failing(self) -> list[Record]:
        """The failing records, the worst status first."""
        found = (record for record in self.records if record.status in FAILING)
        return sorted(found, key=lambda record: (STATUSES.index(record.status), record.case))

    @cached_property
    def failure_groups(self) -> list[FailureGroup]:
        """The failing cases by what they show, the group with the smallest case first."""
        groups = FailureGroups(self.failing)
        groups.add_passing(self.records)
        return groups.groups()

    @property
    def impl(self) -> str:
        """The implementation that was run."""
        named = self.summary.get("impl") or next((record.impl for record in self.records), "")
        return str(named)

    @property
    def not_run(self) -> int:
        """The number of selected cases without a record, by the summary."""
        return int(self.summary.get("not_run") or 0)

    @property
    def complete(self) -> bool:
        """Whether the run finished: there is a summary, and every selected case has a record."""
        return bool(self.summary) and not self.not_run and not self.summary.get("interrupted")

    @property
    def exit_code(self) -> int:
        """The exit code of the run."""
        strict, interrupted = bool(self.summary.get("strict")), bool(self.summary.get("interrupted"))
        return self.tally.exit_code(strict=strict, interrupted=interrupted)

    @property
    def verdict(self) -> str:
        """`pass`, `fail`, or `incomplete`: nothing failed, but the run did not finish."""
        if self.tally.exit_code(strict=bool(self.summary.get("strict"))):
            return "fail"
        return "pass" if self.complete else "incomplete"


@contextmanager
def no_collection() -> Iterator[None]:
    """Switch the search for reference cycles off: records and reports are millions of objects without cycles.

    Afterwards these objects count as old, so that the next search doesn't visit all of them.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.freeze()
            gc.unfreeze()  # into the oldest generation
            gc.enable()


def read_run(out: Path, change: Callable[[Record], Record] | None = None) -> FinishedRun:
    """Read a run's folder.

    change: what becomes of each record as it is read (waivers). InputError where the folder holds no results or two of
    one case, and where the results aren't those that the summary counts: one that is lost may be a failure.
    """
    if not (out / RESULTS).is_file():
        raise InputError(_no_results(out))
    summary = read_summary(out)
    records = []
    seen: set[str] = set()
    counts: Counter[str] = Counter()
    with no_collection():
        for record in read_results(out):
            if record.case in seen:
                raise InputError(f"two results of {record.case}, expected one", SourceLocation(str(out / RESULTS)))
            seen.add(record.case)
            counts[record.status] += 1
            kept = change(record) if change else record
            _share_strings(kept)
            records.append(kept)
    _check_counts(out, counts, summary)
    return FinishedRun(out, records, summary)


def _no_results(out: Path) -> str:
    """Why a folder is not that of a run: several --impl have folders of their own in it, or it is something else."""
    runs = sorted(str(path.parent) for path in out.glob(f"*/{RESULTS}"))
    if runs:
        return f"{out} holds the runs of several implementations: name one of {', '.join(runs)}"
    return f"{out} holds no {RESULTS}: expected the --out folder of a `mluops run`"


def run_files(out: Path) -> tuple[Path, Path]:
    """The files in a run's folder that it is read from."""
    return out / RESULTS, out / SUMMARY


def require_whole(run: FinishedRun) -> None:
    """InputError for what is no run of its own: a shard, or a run that was cut off before its first case."""
    if run.tally.partial:
        raise InputError(f"{run.out} holds a shard: `mluops merge` makes one run of all shards")
    if not run.records and not run.summary:
        raise InputError(f"{run.out} holds no result and no summary: the run was cut off before its first case")


def _is_partial(shard: Any) -> bool:
    """Whether the run was that of a part of the selected cases, by the summary's I/N."""
    try:
        return isinstance(shard, str) and is_partial(shard)
    except InputError:  # of another version, or written by hand
        return False


def _share_strings(record: Record) -> None:
    """Keep one copy of the strings that many records have in common."""
    intern = sys.intern
    record.op, record.suite, record.impl = intern(record.op), intern(record.suite), intern(record.impl)
    record.platform, record.device = intern(record.platform), intern(record.device)
    record.options_hash = intern(record.options_hash)
    if record.operator_status:
        record.operator_status = intern(record.operator_status)
    found = [*record.tensors.values()]
    for output in record.outputs.values():
        found += output.get("criteria", ())
    if record.perf:
        found.append(record.perf)
    for each in found:  # the names of a criterion, a dtype, a layout, a timer
        if type(each) is dict:
            for name, value in each.items():
                if type(value) is str:
                    each[name] = intern(value)


def _check_counts(out: Path, counts: Counter[str], summary: Mapping[str, Any]) -> None:
    """InputError where the results aren't those that the summary counts; a run without summary was cut off."""
    expected = summary.get("counts")
    if expected is None:
        return
    place = SourceLocation(str(out / SUMMARY), key="counts")
    if not isinstance(expected, dict) or not all(isinstance(number, int) for number in expected.values()):
        raise InputError(f"{expected!r:.60}, expected a number for each status", place)
    differences = [
        f"{status} {expected.get(status, 0)} times and {RESULTS} {counts[status]} times"
        for status in {**expected, **counts}
        if expected.get(status, 0) != counts[status]
    ]
    if differences:
        raise InputError(f"has {', '.join(differences)}: results are missing or were added, run again", place)


def read_summary(out: Path) -> dict[str, Any]:
    """Read the summary of a run, empty where there is none; InputError where it is something else."""
    path = out / SUMMARY
    refuse_special(path)
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (ValueError, OSError) as error:
        raise InputError(f"not a summary of mluops run: {error}", SourceLocation(str(path))) from None
    if not isinstance(summary, dict):
        raise InputError("not a summary of mluops run", SourceLocation(str(path)))
    return summary
