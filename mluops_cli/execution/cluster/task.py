"""What a Dask task does on its worker: check that the worker can run the cases, then run them one after the other."""

from __future__ import annotations

import atexit
import json
import os
import pickle
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from mluops_cli.core.case_options import WorkerSettings
from mluops_cli.core.discovery import PlannedCase
from mluops_cli.core.events import CaseFinished, CaseStarted, Event, Heartbeat
from mluops_cli.execution.recorder import RunSettings
from mluops_cli.execution.workers.handle import WorkerProcess
from schemas.errors import MluopsError
from schemas.version import __version__

_WARM: Final = 5.0  # seconds that a worker process without work is kept for the next batch


class _Cancelled(Exception):  # noqa: N818 - not an error: nobody waits for the records any more
    pass


def request_for(cases: Iterable[PlannedCase], worker: WorkerSettings, topic: str, token: str) -> dict[str, Any]:
    """What run_batch is given. Paths that are missing here too are the case's problem, not the worker's."""
    work = [
        replace(case, file=os.path.abspath(case.file), external=tuple(map(os.path.abspath, case.external)))
        for case in cases
    ]
    paths = [worker.folder, *worker.options.plugins, *(case.file for case in work)]
    return {
        "topic": topic,
        "token": token,
        "version": __version__,
        "paths": [path for path in paths if os.path.exists(path)],
        "work": pickle.dumps((work, worker)),
    }


def run_batch(request: Mapping[str, Any]) -> None:
    """Run the cases of a request: topic, token, version, paths, and work, the pickled cases and worker settings.

    The work is read after the version has been compared: another version couldn't read it.

    Everything is reported by events under the request's topic: a result would be lost with its worker. An event has
    one of the keys begun (the worker's address; name is its name), refused (why the worker can't be used), problem with
    exit_code (why the implementation can't be loaded), cases and end. cases holds pairs of a case id and its record,
    which is None where the case begins.
    """
    from distributed import get_worker  # type: ignore[import-not-found,unused-ignore]

    worker = get_worker()
    key = worker.get_current_task()

    def tell(**message: Any) -> None:
        worker.log_event(request["topic"], {"token": request["token"], **message})

    tell(begun=worker.address, name=str(worker.name))
    if reason := _unusable(request):
        tell(refused=reason)
        return

    news: list[tuple[str, str | None]] = []

    def tell_news() -> None:
        if news:
            tell(cases=news.copy())
            news.clear()

    def listen(event: Event) -> None:
        if isinstance(event, CaseStarted):  # right after the record before it: one message for both
            news.append((event.case, None))
            tell_news()
        elif isinstance(event, CaseFinished):
            news.append((event.record.case, json.dumps(event.record.as_json())))
        elif isinstance(event, Heartbeat):
            tell_news()
            if _cancelled(worker, key):
                raise _Cancelled

    try:
        _run(request, listen)
    except _Cancelled:
        return
    except MluopsError as error:
        tell(problem=str(error), exit_code=error.exit_code)
    tell_news()
    tell(end=True)


def _run(request: Mapping[str, Any], listen: Any) -> None:
    from mluops_cli.execution.supervisor import run_cases

    cases, worker = pickle.loads(request["work"])
    processes = _WARM_PROCESSES.take(worker)
    try:
        run_cases(cases, RunSettings(worker, Path()), [listen], processes)
    finally:
        _WARM_PROCESSES.keep(worker, processes)


def _unusable(request: Mapping[str, Any]) -> str:
    """Why this worker can't run the cases, empty where it can."""
    if request["version"] != __version__:
        return f"has mluops {__version__}, here is {request['version']}"
    missing = [path for path in request["paths"] if not os.path.exists(path)]
    return f"doesn't see {missing[0]}: expected a path that all share" if missing else ""


def _cancelled(worker: Any, key: Any) -> bool:
    """Whether the client has cancelled the task or is gone; Dask tells a running task so only by its state."""
    task = worker.state.tasks.get(key)
    return task is None or task.state != "executing"


class _WarmProcesses:
    """Worker processes between two batches: the implementation is loaded once per worker, not once per batch."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: list[tuple[float, WorkerSettings, WorkerProcess]] = []

    def take(self, settings: WorkerSettings) -> list[WorkerProcess]:
        """At most one process that was started with these settings."""
        with self._lock:
            for index, (_, made_with, process) in enumerate(self._kept):
                if made_with == settings:
                    del self._kept[index]
                    return [process]
        return []

    def keep(self, settings: WorkerSettings, processes: list[WorkerProcess]) -> None:
        """Keep the processes for a few seconds."""
        with self._lock:
            self._kept += [(time.monotonic(), settings, process) for process in processes]
        timer = threading.Timer(_WARM, self.end, (_WARM,))
        timer.daemon = True
        timer.start()

    def end(self, age: float = 0.0) -> None:
        """End the processes that have been kept for so many seconds."""
        limit = time.monotonic() - age
        with self._lock:
            old = [process for kept, _, process in self._kept if kept <= limit]
            self._kept = [each for each in self._kept if each[0] > limit]
        for process in old:
            process.close()


_WARM_PROCESSES: Final = _WarmProcesses()
atexit.register(_WARM_PROCESSES.end)
