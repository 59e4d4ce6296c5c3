"""What becomes of a batch, from the events of its task and from Dask's word."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mluops_cli.core.case_options import CaseOptions, WorkerSettings
from mluops_cli.core.discovery import PlannedCase
from mluops_cli.core.events import CaseFinished, Event, WorkerLost
from mluops_cli.execution.cluster.assignments import Assignments
from mluops_cli.execution.cluster.batch import Batch
from mluops_cli.execution.cluster.members import Members
from mluops_cli.execution.recorder import Recorder, RunSettings

ADDRESS = "tcp://192.0.2.2:33749"


class KilledWorker(Exception):  # noqa: N818 (the name is what counts)
    """Dask's exception has this name; last_worker is what the scheduler knew of the worker."""

    last_worker = SimpleNamespace(address=ADDRESS, name=7)


def assignments(listener: Any) -> tuple[Assignments, Batch]:
    """One batch of a case that a task runs, on a worker that came after the scheduler's last list."""
    worker = WorkerSettings(CaseOptions("reference"))
    case = PlannedCase("op/suite/0", "op", "suite", "f.pb", 100)
    recorder = Recorder(RunSettings(worker, Path()), [listener])
    made = Assignments(None, worker, "topic", recorder, Members({}))
    batch = Batch(deque([case]))
    batch.submitted("token", SimpleNamespace(status="error", cancel=lambda **_: None), frozenset())
    made.in_flight["token"] = batch
    return made, batch


def test_a_worker_that_is_lost_within_a_second_has_its_name() -> None:
    events: list[Event] = []
    made, batch = assignments(events.append)
    made.take({"token": "token", "begun": ADDRESS, "name": "7"})
    made.take({"token": "token", "cases": [("op/suite/0", None)]})
    made.lose(batch, "the scheduler has no connection to it any more")
    records = [event.record for event in events if isinstance(event, CaseFinished)]
    assert [record.worker for record in records] == ["7"]


def test_a_worker_on_which_a_batch_only_waited_has_its_name() -> None:
    events: list[Event] = []
    made, batch = assignments(events.append)
    batch.future.exception = lambda timeout: KilledWorker()
    assert made.conclude(batch) == ""
    assert [event.worker for event in events if isinstance(event, WorkerLost)] == ["7"]
    assert list(made.waiting) == [batch]
