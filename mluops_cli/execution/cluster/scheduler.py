"""Functions that run inside the Dask scheduler's process, and a thread that calls them from the client."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

PREFIX: Final = "mluops-"  # of the keys of our tasks
_INTERVAL: Final = 1.0  # seconds between two looks at the scheduler
_PLUGIN: Final = "mluops-one-attempt"

Workers = dict[str, dict[str, Any]]  # address -> name, nthreads, resources, last_seen


def forbid_second_attempts(dask_scheduler: Any = None) -> None:
    """Make the scheduler give up a task of ours when its worker is lost, instead of trying it on other workers.

    This is `distributed.scheduler.allowed-failures: 0`, but for our tasks alone: others may share the scheduler.
    """
    from distributed.diagnostics.plugin import (  # type: ignore[import-not-found,unused-ignore]
        SchedulerPlugin,
    )

    def update_graph(scheduler: Any, *, keys: Any, **_: Any) -> None:
        for key in keys:
            if isinstance(key, str) and key.startswith(PREFIX) and key in scheduler.tasks:
                scheduler.tasks[key].suspicious = scheduler.allowed_failures

    plugin = SchedulerPlugin()
    plugin.update_graph = update_graph
    dask_scheduler.add_plugin(plugin, idempotent=True, name=_PLUGIN)


def describe_workers(topic: str, dask_scheduler: Any = None) -> Workers:
    """What the scheduler knows of its workers. Its log of our events is emptied: they have been sent on."""
    with suppress(Exception):  # no part of Dask's interface; without it the log just grows
        dask_scheduler._broker.truncate(topic)
    return {
        address: {
            "name": str(worker.name),
            "nthreads": worker.nthreads,
            "resources": dict(worker.resources),
            "last_seen": worker.last_seen,
        }
        for address, worker in dask_scheduler.workers.items()
    }


async def remove_worker(address: str, dask_scheduler: Any = None) -> None:
    """Remove a worker that no longer answers; the tasks it has are lost."""
    await dask_scheduler.remove_worker(address, stimulus_id="mluops-silent-worker")


def erred_on(key: str, dask_scheduler: Any = None) -> list[str]:
    """Addresses of the workers on which a task raised an exception."""
    task = dask_scheduler.tasks.get(key)
    return sorted(task.erred_on) if task is not None else []


class SchedulerWatch(threading.Thread):
    """Looks at the scheduler once a second, so that a scheduler that hangs doesn't make the run hang.

    tell is called with the workers, or with the error where the scheduler can't be reached.
    """

    def __init__(self, client: Any, topic: str, tell: Callable[[Workers | Exception], None]) -> None:
        super().__init__(name="mluops-scheduler-watch", daemon=True)
        self._client = client
        self._topic = topic
        self._tell = tell
        self._ended = threading.Event()

    def run(self) -> None:
        """Look until end() is called."""
        ready = False
        while not self._ended.is_set():
            try:
                if not ready:
                    self._client.run_on_scheduler(forbid_second_attempts)
                    ready = True
                self._tell(self._client.run_on_scheduler(describe_workers, self._topic))
            except Exception as error:
                self._tell(error)
            self._ended.wait(_INTERVAL)

    def end(self) -> None:
        """Stop looking."""
        self._ended.set()


def within(seconds: float, function: Callable[..., Any], *arguments: Any) -> Any:
    """The function's result; TimeoutError where it takes longer. Dask's own calls may wait for ever."""
    results: list[Any] = []
    errors: list[Exception] = []

    def call() -> None:
        try:
            results.append(function(*arguments))
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError(f"no answer within {seconds:g} s")
    return results[0]
