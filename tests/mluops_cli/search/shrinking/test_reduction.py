"""Whatever ends the shrinking of a finding, what was found so far stays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mluops_cli.core.case_options import CaseOptions
from mluops_cli.core.record import Record
from mluops_cli.results.symptoms import Symptom
from mluops_cli.search.faulty_kernels.catalogue import implementation
from mluops_cli.search.fuzz.findings import Finding
from mluops_cli.search.shrinking import reduction
from mluops_cli.search.shrinking.candidate import candidate_of
from mluops_cli.search.shrinking.shrinker import Shrinker
from schemas.errors import UnavailableError
from tests.mluops_cli.search.shrinking.in_process import InProcess

OP = "psamask_forward"
ENTRY: dict[str, Any] = {
    "name": "small",
    "sizes": {"N": 1, "H": 2, "W": 2},
    "params": {"psa_type": "collect", "h_mask": 1, "w_mask": 1},
}
FOUND = Finding(Symptom(OP, "y", "never written"), ENTRY, Record("case", OP, "fuzz", "file", "impl", status="fail"))


class Failing(InProcess):
    """After so many runs the implementation can't be loaded; a run of an entry is interrupted."""

    def __init__(self, folder: Path, runs: int = 1000) -> None:
        super().__init__(implementation(OP, "writes_nothing"), folder)
        self.left = runs
        self.interrupted = False

    def run(self, *given: Any, **named: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            raise UnavailableError("can't be loaded")
        return super().run(*given, **named)

    def run_entry(self, *_: Any) -> None:
        self.interrupted = True


def test_an_implementation_that_cannot_be_loaded_any_more_leaves_the_smallest_so_far(tmp_path: Path) -> None:
    runner = Failing(tmp_path, runs=5)
    found = Shrinker(runner, reduction.symptom_judge()).shrink(candidate_of(OP, ENTRY), "fuzz")
    assert found is not None
    assert found.line == "1x2x2x1 -> 1x1x1x1, 5 runs (can't be loaded)"


def test_a_finding_stays_where_a_signal_comes_before_it_is_run_again() -> None:
    reduced = reduction.finding_reducer(CaseOptions(implementation(OP, "writes_nothing")), [OP])(FOUND, lambda: True)
    assert reduced.interrupted
    assert reduced.finding == replace(FOUND, shrunk="not shrunk: interrupted")


def test_a_finding_stays_where_the_implementation_cannot_be_loaded_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, Failing(tmp_path, runs=0))
    reduced = reduction.finding_reducer(CaseOptions(), [OP])(FOUND, lambda: False)
    assert not reduced.interrupted
    assert reduced.finding == replace(FOUND, shrunk="not shrunk: can't be loaded")


def test_a_signal_while_the_smallest_hang_is_run_at_length_leaves_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = Failing(tmp_path)
    use(monkeypatch, runner)
    start = candidate_of(OP, ENTRY)
    judge = reduction.symptom_judge()
    wanted = Symptom(OP, "y", "never written")
    found = reduction.reduced_hang(start, "fuzz", CaseOptions(), judge, lambda: runner.interrupted, wanted)
    assert found is not None
    assert found.interrupted
    assert found.elements == 1


def use(monkeypatch: pytest.MonkeyPatch, runner: Failing) -> None:
    """Let this runner stand for the worker processes."""

    @contextmanager
    def shrinking_runner(*_: Any) -> Iterator[Failing]:
        yield runner

    monkeypatch.setattr(reduction, "shrinking_runner", shrinking_runner)
