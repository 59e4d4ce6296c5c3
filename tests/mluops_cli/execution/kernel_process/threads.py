"""psamask whose output is written by threads of C code (threads.c): the call waits for them, or it doesn't."""

import ctypes
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from mluops_cli.search.faulty_kernels.psamask import right

_C = ctypes.CDLL(os.environ["MLUOPS_TEST_THREADS"])
_ARGUMENTS = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_C.start.argtypes = _C.copy.argtypes = _ARGUMENTS
_KEPT: list[Any] = []  # the thread reads it after the call


def _written(function: Callable[[Any, Any, int], Any], arguments: Any, rest: Any) -> None:
    op, inputs, outputs, params = arguments
    (output,) = outputs.values()
    _KEPT[:] = [np.empty_like(output)]
    right(op, inputs, {"y": _KEPT[0]}, params, **rest)
    function(output.ctypes.data, _KEPT[0].ctypes.data, output.nbytes)


def with_openmp(*arguments: Any, **rest: Any) -> None:
    _written(_C.copy, arguments, rest)


def waits_for_a_thread(*arguments: Any, **rest: Any) -> None:
    _written(_C.start, arguments, rest)
    _C.await_end()


def leaves_a_thread(*arguments: Any, **rest: Any) -> None:
    _written(_C.start, arguments, rest)
