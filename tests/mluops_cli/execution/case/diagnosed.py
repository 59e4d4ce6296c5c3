"""psamask_forward, right but for one fault per name, for `--impl python:`."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
Arrays = dict[str, Any]
Params = dict[str, Any]
Kernel = Callable[..., Any]

FAULTS: dict[str, Kernel] = {}


def compute(x: Array, params: Params, mode: int) -> Array:
    """The output by the formula of the design document, point by point."""
    n_all, height, width, _ = x.shape
    h_mask, w_mask = params["h_mask"], params["w_mask"]
    y = np.zeros((n_all, height, width, height, width), x.dtype)
    for h, w, i, j in np.ndindex(height, width, height, width):
        p, q = i - h + (h_mask - 1) // 2, j - w + (w_mask - 1) // 2
        if 0 <= p < h_mask and 0 <= q < w_mask:
            at = (h, w, i, j) if mode == 0 else (i, j, h, w)
            y[:, at[0], at[1], at[2], at[3]] = x[:, h, w, p * w_mask + q]
    return y.reshape(n_all, height, width, height * width)


def fault(make: Callable[..., Array]) -> Kernel:
    """A callable whose output is make(right output, what the buffer held, inputs, params)."""

    def call(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
        right = compute(inputs["x"], params, params["psa_type"])
        outputs["y"][...] = make(right, outputs["y"].copy(), inputs, params)

    FAULTS[make.__name__] = call
    return call


@fault
def right(y: Array, held: Array, inputs: Arrays, params: Params) -> Array:
    return y


@fault
def writes_nothing(y: Array, held: Array, inputs: Arrays, params: Params) -> Array:
    return held


@fault
def last_channels_unwritten(y: Array, held: Array, inputs: Arrays, params: Params) -> Array:
    y[..., -5:] = held[..., -5:]
    return y


@fault
def all_zero(y: Array, held: Array, inputs: Arrays, params: Params) -> Array:
    return np.zeros_like(y)


@fault
def last_batch_zero(y: Array, held: Array, inputs: Arrays, params: Params) -> Array:
    y[-1] = 0
    return y


@fault
def other_mode(y: Array, held: Array, inputs: Arrays, params: Params) -> Array:
    return compute(inputs["x"], params, 1 - params["psa_type"])


@fault
def shifted_channels(y: Array, held: Array, inputs: Arrays, params: Params) -> Array:
    return np.roll(y, 1, axis=3)


@fault
def axes_swapped(y: Array, held: Array, inputs: Arrays, params: Params) -> Any:
    return np.ascontiguousarray(y.swapaxes(1, 2)).reshape(y.shape)


@fault
def batch_offset_lost(y: Array, held: Array, inputs: Arrays, params: Params) -> Array:
    return np.broadcast_to(y[:1], y.shape)


@fault
def through_half(y: Array, held: Array, inputs: Arrays, params: Params) -> Array:
    return y.astype(np.float16).astype(np.float32)


@fault
def through_bfloat16(y: Array, held: Array, inputs: Arrays, params: Params) -> Array:
    return np.asarray(y.astype(ml_dtypes.bfloat16), np.float32)


@fault
def scaled(y: Array, held: Array, inputs: Arrays, params: Params) -> Any:
    return np.multiply(y, np.float32(1.01))


@fault
def biased(y: Array, held: Array, inputs: Arrays, params: Params) -> Any:
    noise = np.asarray(np.random.default_rng(1).normal(0, 1e-3, y.shape), np.float32)
    return np.add(y + np.abs(noise), np.float32(1e-4))


@fault
def not_a_number(y: Array, held: Array, inputs: Arrays, params: Params) -> Array:
    y[1, 2, 3, 4:10] = np.nan
    return y


@fault
def rows_exchanged(y: Array, held: Array, inputs: Arrays, params: Params) -> Array:
    y[:, [1, 4]] = y[:, [4, 1]]
    return y


globals().update(FAULTS)
