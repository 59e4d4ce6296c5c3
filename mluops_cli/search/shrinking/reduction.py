"""Shrinking with worker processes of its own: options and limits that suit many small runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Final

from mluops_cli.core.case_options import CaseOptions
from mluops_cli.core.record import Record
from mluops_cli.search.case_runner import CaseRunner, case_folder
from mluops_cli.search.fuzz.drawing import SUITE
from mluops_cli.search.fuzz.findings import Finding, Reduced, Symptom, is_finding, set_right, symptom_of
from mluops_cli.search.shrinking.candidate import Candidate, candidate_of
from mluops_cli.search.shrinking.shrinker import Budget, Judge, Shrinker, Shrunk
from schemas.errors import InputError

Stopped = Callable[[], bool]

_ROOM: Final = 64 << 20  # bytes of a case that the folder of the cases should hold
_SLOW: Final = 10.0  # seconds that a smaller case may take
_HANG: Final = 2.0  # seconds after which a case counts as hanging, where a hang is looked for
_SURE: Final = 20.0  # the same for the smallest one
_BUDGET: Final = Budget()


def symptom_judge(ops: Collection[str] | None = None) -> Judge:
    """The symptom of records; ops: the operators that are searched, where adjoint ones of others don't count."""

    def judge(record: Record) -> Symptom | None:
        if ops is not None:
            set_right(record, ops)
        return symptom_of(record) if is_finding(record) else None

    return judge


def reduced(
    start: Candidate,
    suite: str,
    options: CaseOptions,
    judge: Judge,
    stopped: Stopped,
    wanted: Symptom | None = None,
    *,
    hangs: bool = False,
) -> Shrunk | None:
    """The smallest call with the same symptom; None where the call doesn't fail again with the wanted one.

    hangs: the symptom is a timeout; what hangs is then known after 2 s, and the smallest call is run for 20 s.
    InputError where the call is not legal, or the implementation can't be loaded.
    """
    limit = _HANG if hangs else _SLOW
    with _runner(replace(options, timeout=min(options.timeout, limit))) as runner:
        found = Shrinker(runner, judge, _BUDGET, stopped).shrink(start, suite, wanted)
    if found is None or not hangs or options.timeout <= limit or stopped():
        return found
    with _runner(replace(options, timeout=min(options.timeout, _SURE))) as runner:
        again = runner.run_entry(start.contract.op, suite, found.candidate.entry(runner.folder))
    return found if again is not None and judge(again) == judge(found.record) else None


@contextmanager
def _runner(options: CaseOptions) -> Iterator[CaseRunner]:
    quick = replace(options, perf=False, perf_gate=False)
    with case_folder(_ROOM) as folder, closing(CaseRunner(quick, folder, 1)) as runner:
        yield runner


def finding_reducer(options: CaseOptions, ops: Sequence[str]) -> Callable[[Finding, Stopped], Reduced]:
    """What shrinks the findings of a run of fuzz; one that doesn't fail again is left as it is."""
    judge = symptom_judge(ops)

    def reduce(finding: Finding, stopped: Stopped) -> Reduced:
        hangs = finding.record.status == "timeout"
        try:
            start = candidate_of(finding.symptom.op, finding.entry)
            shrunk = reduced(start, SUITE, options, judge, stopped, finding.symptom, hangs=hangs)
        except InputError:
            shrunk = None
        if shrunk is None:
            return Reduced(replace(finding, shrunk="not shrunk: it doesn't fail again alone"), False)
        line = shrunk.line
        smaller = replace(finding, entry=shrunk.candidate.entry(), record=shrunk.record, shrunk=line)
        return Reduced(smaller, shrunk.interrupted)

    return reduce
