"""What an operator's error_bound returns, checked against its baseline, in the form in which bounds are stored."""

from __future__ import annotations

from typing import Any

import numpy as np

from generators.error_bounds.precision import Array, rounded_up
from schemas.errors import MluopsError


def checked_bound(op: str, name: str, bound: Any, baseline: Array | None) -> Array:
    """The bound of an output as float32, rounded up; Inf, which is no answer, becomes NaN.

    MluopsError, for the operator's author, where it is no array of floats of shape () or the baseline's, where a bound
    is negative, and where the operator has no floating output of that name (baseline is None without one).
    """
    where = f"error_bound of {op}: {name!r}"
    if baseline is None:
        raise MluopsError(f"{where} is no output")
    if baseline.dtype.kind not in "fV":
        raise MluopsError(f"{where} holds {baseline.dtype}, only outputs of real floats have error bounds")
    array = np.asarray(bound)
    if array.dtype.kind != "f" or array.shape not in ((), baseline.shape):
        text = f"{array.dtype}{list(array.shape)}, expected floats of shape [] or {list(baseline.shape)}"
        raise MluopsError(f"{where} is {text}")
    single = array if array.dtype == np.float32 else rounded_up(array)
    least, largest = np.fmin.reduce(single, None, initial=0), np.fmax.reduce(single, None, initial=0)
    if least < 0:
        raise MluopsError(f"{where} is {least:g} somewhere, expected 0 or more, NaN where there is no bound")
    return np.where(np.isinf(single), np.float32(np.nan), single) if np.isinf(largest) else single
