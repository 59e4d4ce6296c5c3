"""A runner of cases in this process, for tests of kernels that neither crash nor hang."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from mluops_cli.core.case_options import CaseOptions
from mluops_cli.core.discovery import PlannedCase
from mluops_cli.core.events import RunFinished
from mluops_cli.core.record import Record
from mluops_cli.core.tally import Tally
from mluops_cli.execution.case.case_run import run_case
from mluops_cli.implementations.python import Python
from mluops_cli.results.symptoms import Symptom
from mluops_cli.search.case_making import make_case
from mluops_cli.search.case_runner import CaseRunner, Listen
from mluops_cli.search.shrinking.attempts import proves_nothing, shows
from mluops_cli.search.shrinking.candidate import Candidate
from mluops_cli.search.shrinking.reduction import symptom_judge
from mluops_cli.search.shrinking.shrinker import Shrunk
from schemas.errors import MluopsError


class InProcess(CaseRunner):
    """Runs `python:` kernels as a worker process does."""

    def __init__(self, kernel: str, folder: Path) -> None:
        super().__init__(CaseOptions(kernel, bound="fail", relations=True), folder, 1)
        self.symptoms: list[Symptom | None] = []
        self.kernel = Python(kernel.removeprefix("python:"))

    def run(
        self,
        cases: Sequence[PlannedCase],
        listen: Listen,
        beat: Callable[[], None] | None = None,
        *,
        keep: bool = False,
    ) -> RunFinished:
        """Run cases; listen gets the record of each, and its files are removed."""
        for case in cases:
            task = {"file": case.file, "manifest_meta": None, "relations": case.relations}
            result = run_case(task, self.kernel, self.settings.worker)
            result = {key: each for key, each in result.items() if key not in ("retire", "traceback")}
            record = Record(case.id, case.op, case.suite, case.file, self.kernel.name, **result)
            if record.status == "error" and record.blame is None:
                record.blame = "implementation"
            self.symptoms.append(symptom_judge()(record))
            listen(record)
            for file in () if keep else case.files:
                Path(file).unlink(missing_ok=True)
        return RunFinished(Tally(), 0, 0.0, 0, False)


def lower_ones(runner: CaseRunner, shrunk: Shrunk, ops: Sequence[str], suite: str) -> list[str]:
    """The symbols that can be nearer to 0 by 1, all else fixed, with the start's symptom: none, where it is minimal.

    Calls whose baseline proves nothing don't count.
    """
    judge = symptom_judge(ops)
    start = runner.run_entry(shrunk.start.contract.op, suite, shrunk.start.entry(runner.folder))
    wanted = None if start is None else judge(start)
    assert wanted is not None
    found = []
    for symbol, value in shrunk.candidate.numbers.items():
        nearer = value - 1 if value > 0 else value + 1
        lower = _run(runner, shrunk.candidate.with_numbers({symbol: nearer}), suite) if value else None
        if lower is not None and shows(judge(lower), wanted):
            found.append(str(symbol))
    return found


def _run(runner: CaseRunner, candidate: Candidate, suite: str) -> Record | None:
    try:
        case = make_case(candidate.contract.op, suite, candidate.entry(runner.folder), runner.folder)
    except (MluopsError, NameError, ArithmeticError):
        return None
    records: list[Record] = []
    if not proves_nothing(case.file, candidate):
        runner.run([case], records.append)
    return records[0] if records else None
