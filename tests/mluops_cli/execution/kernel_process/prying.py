"""Callables that look for the judge or reach for it, from the process that calls them; see misbehaving.py."""

import gc
import json
import mmap
import os
import random
import resource
import sys
import time
from typing import Any

import numpy as np

from tests.mluops_cli.execution.misbehaving import right

Arrays = dict[str, Any]
Params = dict[str, Any]


def looks_around(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    """Says what it finds of the judge and of the baseline, which it knows: on the stack, on the heap, in modules."""
    own = {"y": np.zeros_like(outputs["y"])}
    right(op, inputs, own, params)
    known = own["y"].tobytes()
    found = [name for name in sys.modules if "judging" in name or name.endswith(("case.calls", "case.case_run"))]
    frame, held = sys._getframe(), list[Any]()
    while (outer := frame.f_back) is not None:
        frame = outer
        held += frame.f_locals.values()
    for each in [*held, *gc.get_objects()]:
        if type(each).__name__ in ("Prepared", "BoundCase", "CaseFile", "WorkerSettings", "CaseOptions"):
            found.append(type(each).__name__)
        if isinstance(each, np.ndarray) and each is not own["y"] and each.nbytes == len(known):
            found += ["the baseline"] * (each.tobytes() == known)
    print("found", sorted(set(found)), "by", sys.argv)
    outputs["y"][...] = own["y"]


def replaces_functions(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    """Wrong where h_mask is 5; before, it replaces what a judge would call."""
    right(op, inputs, outputs, params)
    if params["h_mask"] == 5:
        outputs["y"][...] += 1
        for name in ("array_equal", "abs", "subtract", "isnan", "max", "count_nonzero", "copyto", "ndarray"):
            setattr(np, name, lambda *_, **__: True)
        mmap.mmap = type("mmap", (), {})  # type: ignore[misc,assignment]
        dumps = json.dumps
        json.dumps = lambda message, **_: dumps(message | {"status": "SUCCESS"})
        json.loads = lambda *_: {"status": "pass"}


def stops_our_clock(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    """Lets the time of its calls run a thousand times as fast, where only the runner reads it."""
    module: Any = sys.modules["mluops_cli.execution.kernel_process.timed_call"]
    module.perf_counter = lambda: time.monotonic() * 1000
    right(op, inputs, outputs, params)


def ends_in_garbage(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    """Right; where h_mask isn't 3 it writes bytes into every socket that it finds, of which h_mask is the seed."""
    from tests.mluops_cli.execution.kernel_process.mutated_frames import mutated
    from tests.mluops_cli.execution.misbehaving import _into_pipes

    right(op, inputs, outputs, params)
    if params["h_mask"] != 3:
        rng = random.Random(params["h_mask"])
        for _ in range(1 + params["h_mask"] % 5):
            _into_pipes(mutated({"token": "another", "kind": "done", "status": "SUCCESS"}, rng))


def ends_after_its_reply(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    """Right; where h_mask is 5 its process ends as soon as it has answered."""
    channel = sys.modules["mluops_cli.execution.kernel_process.kernel_main"]._Channel
    send = channel.send

    def last(self: Any, message: Any) -> None:
        send(self, message)
        os._exit(3)

    right(op, inputs, outputs, params)
    if params["h_mask"] == 5:
        channel.send = last


def raises_a_long_name(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    """Raises an exception whose type, text and file are longer than any message may be."""
    long = "A" * 70_000_000
    if params["h_mask"] == 3:
        raise type(long, (Exception,), {})
    if params["h_mask"] == 5:
        return long
    exec(compile("raise ValueError", long, "exec"), {})
    return None


def takes_memory_again_and_again(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    """Says how many pages it touches first in work of which each turn takes 16 MiB in eight parts."""
    before = 0
    for _ in range(10):
        parts = [np.ones(1 << 18) for _ in range(8)]
        del parts
        before = before or resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    print("touched", resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    right(op, inputs, outputs, params)
