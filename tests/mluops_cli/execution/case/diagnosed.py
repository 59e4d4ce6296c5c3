"""psamask_forward, right but for one fault per name, for `--impl python:`."""

import ml_dtypes
import numpy as np

FAULTS = {}


def compute(x, params, mode):
    """The output by the formula of the design document, point by point."""
    n_all, height, width, _ = x.shape
    h_mask, w_mask = params["h_mask"], params["w_mask"]
    y = np.zeros((n_all, height, width, height, width), x.dtype)
    for h, w, i, j in np.ndindex(height, width, height, width):
        p, q = i - h + (h_mask - 1) // 2, j - w + (w_mask - 1) // 2
        if 0 <= p < h_mask and 0 <= q < w_mask:
            at = (h, w, i, j) if mode == 0 else (i, j, h, w)
            y[(slice(None), *at)] = x[:, h, w, p * w_mask + q]
    return y.reshape(n_all, height, width, height * width)


def fault(make):
    """A callable whose output is make(right output, what the buffer held, inputs, params)."""

    def call(op, inputs, outputs, params):
        right = compute(inputs["x"], params, params["psa_type"])
        outputs["y"][...] = make(right, outputs["y"].copy(), inputs, params)

    FAULTS[make.__name__] = call
    return call


@fault
def right(y, held, inputs, params):
    return y


@fault
def writes_nothing(y, held, inputs, params):
    return held


@fault
def last_channels_unwritten(y, held, inputs, params):
    y[..., -5:] = held[..., -5:]
    return y


@fault
def all_zero(y, held, inputs, params):
    return np.zeros_like(y)


@fault
def last_batch_zero(y, held, inputs, params):
    y[-1] = 0
    return y


@fault
def other_mode(y, held, inputs, params):
    return compute(inputs["x"], params, 1 - params["psa_type"])


@fault
def shifted_channels(y, held, inputs, params):
    return np.roll(y, 1, axis=3)


@fault
def axes_swapped(y, held, inputs, params):
    return np.ascontiguousarray(y.swapaxes(1, 2)).reshape(y.shape)


@fault
def batch_offset_lost(y, held, inputs, params):
    return np.broadcast_to(y[:1], y.shape)


@fault
def through_half(y, held, inputs, params):
    return y.astype(np.float16).astype(np.float32)


@fault
def through_bfloat16(y, held, inputs, params):
    return y.astype(ml_dtypes.bfloat16).astype(np.float32)


@fault
def scaled(y, held, inputs, params):
    return y * np.float32(1.01)


@fault
def biased(y, held, inputs, params):
    return y + np.abs(np.random.default_rng(1).normal(0, 1e-3, y.shape).astype(np.float32)) + np.float32(1e-4)


@fault
def not_a_number(y, held, inputs, params):
    y[1, 2, 3, 4:10] = np.nan
    return y


@fault
def rows_exchanged(y, held, inputs, params):
    y[:, [1, 4]] = y[:, [4, 1]]
    return y


globals().update(FAULTS)
