"""Shrinking with worker processes of its own: options and limits that suit many small runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Final

from mluops_cli.core.case_options import CaseOptions
from mluops_cli.core.record import Record
from mluops_cli.results.symptoms import Symptom, symptom_of
from mluops_cli.search.case_runner import CaseRunner, case_folder
from mluops_cli.search.fuzz.drawing import SUITE
from mluops_cli.search.fuzz.findings import Finding, Reduced, is_finding, set_right
from mluops_cli.search.shrinking.attempts import INTERRUPTED, Judge, shows
from mluops_cli.search.shrinking.candidate import Candidate, candidate_of
from mluops_cli.search.shrinking.shrinker import Shrinker, Shrunk
from schemas.errors import MluopsError

Stopped = Callable[[], bool]

_MEMORY: Final = 64 << 20  # bytes of a case that the folder of the cases should hold
_SLOW: Final = 10.0  # seconds that a smaller case may take
_HANG: Final = 2.0  # seconds after which a case counts as hanging, where a hang is looked for
SURE: Final = 20.0  # the same for the call itself, and for the smallest one


def symptom_judge(ops: Collection[str] | None = None) -> Judge:
    """The symptom of records; ops: the operators that are searched, where adjoint ones of others don't count."""

    def judge(record: Record) -> Symptom | None:
        if ops is not None:
            set_right(record, ops)
        return symptom_of(record) if is_finding(record) else None

    return judge


@contextmanager
def shrinking_runner(options: CaseOptions, limit: float, keep_outputs: int | None = None) -> Iterator[CaseRunner]:
    """A worker process that runs cases for at most limit seconds each, without measuring them."""
    quick = replace(options, perf=False, perf_gate=False, timeout=min(options.timeout, limit))
    with case_folder(_MEMORY) as folder, closing(CaseRunner(quick, folder, 1, keep_outputs)) as runner:
        yield runner


def limit_of(record: Record) -> float:
    """Seconds that a case may take which is to be shrunk, and those that come of it."""
    return SURE if record.status == "timeout" else _SLOW + 4 * (record.seconds or 0.0)


def reduced_hang(
    start: Candidate, suite: str, options: CaseOptions, judge: Judge, stopped: Stopped, wanted: Symptom
) -> Shrunk | None:
    """What Shrinker.shrink gives for a call that hangs: what takes 2 s hangs; the smallest call is run for 20 s."""
    with shrinking_runner(options, _HANG) as runner:
        found = Shrinker(runner, judge, stopped=stopped).shrink(start, suite, wanted)
    if found is None or stopped():
        return found
    with shrinking_runner(options, SURE) as runner:
        again = runner.run_entry(start.contract.op, suite, found.candidate.entry(runner.folder))
    if again is None and stopped():
        return replace(found, ended=INTERRUPTED)
    return found if again is not None and shows(judge(again), wanted) else None


def finding_reducer(options: CaseOptions, ops: Sequence[str]) -> Callable[[Finding, Stopped], Reduced]:
    """What shrinks the findings of a run of fuzz; one that doesn't fail again is left as it is."""
    judge = symptom_judge(ops)

    def reduce(finding: Finding, stopped: Stopped) -> Reduced:
        try:
            start = candidate_of(finding.symptom.op, finding.entry)
            if finding.record.status == "timeout":
                shrunk = reduced_hang(start, SUITE, options, judge, stopped, finding.symptom)
            else:
                with shrinking_runner(options, limit_of(finding.record)) as runner:
                    shrunk = Shrinker(runner, judge, stopped=stopped).shrink(start, SUITE, finding.symptom)
        except MluopsError as error:  # such as: the implementation can't be loaded any more
            return Reduced(replace(finding, shrunk=f"not shrunk: {error}"), False)
        if shrunk is None and stopped():
            return Reduced(replace(finding, shrunk=f"not shrunk: {INTERRUPTED}"), True)
        if shrunk is None:
            return Reduced(replace(finding, shrunk="not shrunk: it doesn't fail again alone"), False)
        line = shrunk.line
        smaller = replace(finding, entry=shrunk.candidate.entry(), record=shrunk.record, shrunk=line)
        return Reduced(smaller, shrunk.interrupted)

    return reduce
