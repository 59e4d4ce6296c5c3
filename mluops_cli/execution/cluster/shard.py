"""What a fleet's worker does for us: say what it is, and run a shard under a supervisor of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mluops_cli.core.case_options import WorkerSettings
from mluops_cli.core.discovery import PlannedCase
from mluops_cli.core.events import CaseFinished, CaseStarted, Event, Heartbeat
from mluops_cli.execution.recorder import RunSettings
from schemas.errors import MluopsError
from schemas.version import __version__


class _Unwanted(Exception):  # noqa: N818 - the client took the shard back, or is gone
    pass


def introduce(paths: Sequence[str], dask_worker: Any = None) -> dict[str, Any]:
    """Identity of this incarnation of the worker, its version, and which paths it doesn't see."""
    return {
        "id": dask_worker.id,
        "version": __version__,
        "missing": [path for path in paths if not os.path.exists(path)],
    }


def run_shard(
    topic: str,
    token: str,
    identity: str,
    cases: Sequence[PlannedCase],
    settings: WorkerSettings,
) -> dict[str, Any]:
    """Run cases one after the other in a child process, telling each start and record under the topic.

    Returns the records again, or the problem that kept the implementation from being loaded; no record where this is
    not the incarnation of the worker that the shard was meant for.
    """
    from distributed import get_worker

    from mluops_cli.execution.supervisor import run_cases

    worker = get_worker()
    if worker.id != identity:
        return {"records": []}
    key = worker.get_current_task()
    records: list[dict[str, Any]] = []

    def tell(event: Event) -> None:
        if isinstance(event, CaseStarted):
            worker.log_event(topic, {"shard": token, "case": event.case})
        elif isinstance(event, CaseFinished):
            records.append(event.record.as_json())
            worker.log_event(topic, {"shard": token, "case": event.record.case, "record": records[-1]})
        elif isinstance(event, Heartbeat) and _cancelled(worker, key):
            raise _Unwanted

    try:
        run_cases(cases, RunSettings(settings, Path()), [tell])
    except _Unwanted:
        pass
    except MluopsError as error:
        return {"problem": str(error), "exit_code": error.exit_code}
    return {"records": records}


def _cancelled(worker: Any, key: Any) -> bool:
    """Whether nobody waits for the task any more; Dask tells a running task so only by its state."""
    task = worker.state.tasks.get(key)
    return task is None or task.state != "executing"
