"""What a case came to on its worker: the result that was sent, the worker's death, or no answer in time."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from mluops_cli.execution.kernel_process.frames import BrokenChannelError
from mluops_cli.execution.workers.handle import WorkerProcess


class Answer(NamedTuple):
    """What a case came to.

    result: the keys of its record from `status` on. usable: another case may come to the worker. again: the result is
    worth nothing, and another worker should run the case.
    """

    result: dict[str, Any]
    usable: bool
    again: bool


def answer_of(worker: WorkerProcess, timeout: float) -> Answer | None:
    """What the case of a worker came to; None while it may still answer. timeout: seconds since the case was sent."""
    alive = worker.alive  # asked first: a message that it sent before it died can still be read
    try:
        result = worker.result()
    except BrokenChannelError as broken:
        result = {"status": "crash", "reason": str(broken), "retire": True}
    if result is None and alive:
        if time.monotonic() - worker.since < timeout:
            return None
        result = {"status": "timeout", "reason": f"no answer within {timeout:g} s"}
    worker.drain()
    if result is None:
        result = {"status": "crash", "reason": worker.death}
    retire = result.pop("retire", False) or worker.unread
    again = result.pop("again", False)
    return Answer(result, alive and result["status"] != "timeout" and not retire, again)
