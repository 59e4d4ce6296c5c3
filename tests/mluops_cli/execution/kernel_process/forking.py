"""Kernels of psamask_forward that fork: right ones, and one whose forked process doesn't end."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import time
from multiprocessing.pool import Pool
from typing import Any

import numpy as np

from mluops_cli.processes.process_tree import die_with_parent
from tests.mluops_cli.execution.misbehaving import right

_inputs: dict[str, Any] = {}
_pools: list[Pool] = []


def _computed(op: str, params: Any, shape: tuple[int, ...]) -> np.ndarray:
    y = np.empty(shape, np.float32)
    right(op, _inputs, {"y": y}, params)
    return y


def new_pool(op: str, inputs: Any, outputs: Any, params: Any) -> None:
    """Forked processes read the inputs, write to their copy of the outputs, and send it."""
    _inputs.update(inputs)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        outputs["y"][...] = pool.apply(_computed, (op, params, outputs["y"].shape))


def old_pool(op: str, inputs: Any, outputs: Any, params: Any) -> None:
    """Forked processes wait between the calls."""
    _pools[:] = _pools or [multiprocessing.get_context("fork").Pool(2)]
    outputs["y"][...] = _pools[0].apply(_sent, (op, inputs, params, outputs["y"].shape))


def _sent(op: str, inputs: Any, params: Any, shape: tuple[int, ...]) -> np.ndarray:
    _inputs.update(inputs)
    return _computed(op, params, shape)


def child_writes(op: str, inputs: Any, outputs: Any, params: Any) -> None:
    """A forked process writes the outputs, and ends before the call does."""
    if (child := os.fork()) == 0:
        right(op, inputs, outputs, params)
        os._exit(0)
    os.waitpid(child, 0)


def child_of_c_writes(op: str, inputs: Any, outputs: Any, params: Any) -> None:
    """The same with a process that C code forks."""
    y = np.empty_like(outputs["y"])
    right(op, inputs, {"y": y}, params)
    libc = ctypes.PyDLL(None)  # it keeps Python's lock, which the forked process needs
    if (child := libc.fork()) == 0:
        libc.memcpy(
            ctypes.c_void_p(outputs["y"].ctypes.data), ctypes.c_void_p(y.ctypes.data), ctypes.c_size_t(y.nbytes)
        )
        libc._exit(0)
    os.waitpid(child, 0)


def child_goes_on(op: str, inputs: Any, outputs: Any, params: Any) -> None:
    """A forked process counts in the outputs, and doesn't end."""
    outputs["y"][...] = 0
    if os.fork() == 0:
        die_with_parent()  # where the tests are killed, no reaper ends it
        first = outputs["y"].reshape(-1)[:1]
        while True:
            first += 1
    while not outputs["y"].any():
        time.sleep(0.001)
