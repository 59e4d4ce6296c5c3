"""The supervisor itself: what it does with its own memory, and with that of the machine."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from mluops_cli.core.case_options import CaseOptions, WorkerSettings
from mluops_cli.core.discovery import PlannedCase, plan_cases
from mluops_cli.core.events import CaseFinished, CaseStarted, Event
from mluops_cli.execution import supervisor
from mluops_cli.execution.supervisor import RunSettings, run_cases
from tests.mluops_cli.execution.conftest import write_psamask


def many(folder: Path, sizes: list[int]) -> list[PlannedCase]:
    """The same small file as so many cases, said to be of these sizes."""
    (case,) = plan_cases([write_psamask(folder, "one")])
    return [replace(case, id=f"{case.id}-{number}", size=size) for number, size in enumerate(sizes)]


def number(case: str) -> int:
    return int(case.rpartition("-")[2])


@pytest.mark.parametrize(("jobs", "order"), [(2, [1, 3, 4, 2, 0]), (1, [0, 1, 2, 3, 4])])
def test_of_many_the_largest_are_begun_first(jobs: int, order: list[int], tmp_path: Path) -> None:
    begun: list[int] = []

    def watch(event: Event) -> None:
        if isinstance(event, CaseStarted):
            begun.append(number(event.case))

    cases = many(tmp_path, [10, 50, 20, 40, 30])
    run_cases(cases, RunSettings(WorkerSettings(CaseOptions("reference")), tmp_path, jobs=jobs), [watch])
    assert begun == order


def test_cases_that_need_much_memory_do_not_run_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "available_memory", lambda: 1 << 30)
    running: set[int] = set()
    large_together: list[int] = []

    def watch(event: Event) -> None:
        if isinstance(event, CaseStarted):
            running.add(number(event.case))
            large_together.append(len(running & {0, 1, 2}))
        elif isinstance(event, CaseFinished):
            assert event.record.status == "pass"
            running.discard(number(event.record.case))

    # 2.5 times 400 MiB are more than 0.8 of 1 GiB: beside one of them only small ones run.
    cases = many(tmp_path, [400 << 20] * 3 + [100] * 3)
    run_cases(cases, RunSettings(WorkerSettings(CaseOptions("reference", memory=1 << 40)), tmp_path, jobs=3), [watch])
    assert len(large_together) == 6
    assert max(large_together) == 1


class OneByOne:
    """A source that has a case now and then; it has ended when all are taken."""

    def __init__(self, cases: list[PlannedCase]) -> None:
        self.handle, self._write = os.pipe()
        os.write(self._write, b"!")
        self.cases = cases
        self.asked: list[int] = []

    @property
    def ended(self) -> bool:
        return not self.cases

    def take(self, count: int) -> list[PlannedCase]:
        self.asked.append(count)
        return [self.cases.pop(0)] if len(self.asked) % 2 else []


def test_cases_of_a_source_run_as_they_come(tmp_path: Path) -> None:
    events: list[Event] = []
    source = OneByOne(many(tmp_path, [10, 50, 20]))
    settings = RunSettings(WorkerSettings(CaseOptions("reference")), tmp_path, jobs=2)
    finished = run_cases((), settings, [events.append], source=source)
    assert [number(event.case) for event in events if isinstance(event, CaseStarted)] == [0, 1, 2]
    assert finished.tally.counts == {"pass": 3}
    assert finished.not_run == 0
    assert max(source.asked) <= 2


@pytest.mark.slow
def test_ten_thousand_cases_and_the_supervisor_does_not_grow(tmp_path: Path) -> None:
    sizes: list[int] = []
    words: Counter[str] = Counter()

    def watch(event: Event) -> None:
        if isinstance(event, CaseFinished):
            words[event.record.status] += 1
            if words.total() % 1000 == 0:
                sizes.append(psutil.Process().memory_info().rss)

    run_cases(many(tmp_path, [100] * 10_000), RunSettings(WorkerSettings(CaseOptions("reference")), tmp_path), [watch])
    assert words == {"pass": 10_000}
    assert sizes[-1] - sizes[0] < 4 << 20
