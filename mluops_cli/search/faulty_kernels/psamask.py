"""psamask, right and wrong: a gather over the whole H x W x H x W relation, with one injected fault per name.

Each is an implementation `python:FILE.py:NAME`; written from the formula, independent of the reference.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from schemas.status import BAD_PARAM, NOT_SUPPORTED, SUCCESS


def _status(op: str, inputs: Any, outputs: Any, params: Any, descriptors: Any, handle: Any, fault: str) -> str | None:
    """The status of what is wrong with the call, or None."""
    masked, full = ("x", "y") if op == "psamask_forward" else ("dx", "dy")
    if handle is None or any(descriptor is None for descriptor in descriptors.values()):
        return None if fault == "accepts_null_handle" and handle is None else BAD_PARAM
    for descriptor in descriptors.values():
        if descriptor.dtype != "float" or len(descriptor.dims) != 4:
            return BAD_PARAM
        if descriptor.layout != "NHWC" and fault != "accepts_any_layout":
            return BAD_PARAM
    h_mask, w_mask = params["h_mask"], params["w_mask"]
    if (params["psa_type"] not in (0, 1) and fault != "accepts_any_psa_type") or h_mask < 1 or w_mask < 1:
        return BAD_PARAM
    small, large = descriptors[masked].dims, descriptors[full].dims
    if small[:3] != large[:3] or small[3] != h_mask * w_mask or large[3] != large[1] * large[2]:
        return BAD_PARAM
    for descriptor in descriptors.values():
        if descriptor.strides is not None or np.prod(descriptor.dims, dtype=object) >= 2**31:
            return NOT_SUPPORTED
    if 0 in large:
        return BAD_PARAM if fault == "refuses_zero_elements" else SUCCESS
    return BAD_PARAM if any(array is None for array in (*inputs.values(), *outputs.values())) else None


def _psamask(op: str, inputs: Any, outputs: Any, params: Any, descriptors: Any, handle: Any, fault: str = "") -> Any:
    status = _status(op, inputs, outputs, params, descriptors, handle, fault)
    if status is not None:
        return status
    (given,), (computed,) = inputs.values(), outputs.values()
    if fault == "writes_nothing":
        return SUCCESS
    N, H, W, _ = given.shape
    h_mask, w_mask, mode = params["h_mask"], params["w_mask"], params["psa_type"]
    half_h, half_w = (h_mask - 1) // 2, (w_mask - 1) // 2
    if fault == "half_of_even_mask_rounded_up":
        half_h, half_w = h_mask // 2, w_mask // 2
    if fault == "half_width_from_height":
        half_w = half_h
    if fault == "mask_shifted_by_one":
        half_h += 1

    h, w, i, j = np.meshgrid(*map(np.arange, (H, W, H, W)), indexing="ij", sparse=True)
    p, q = i - h + half_h, j - w + half_w
    inside = (p >= 0) & (p < h_mask) & (q >= 0) & (q < w_mask)
    skipped = {
        "first_row_lost": i == 0,
        "last_row_lost": i == H - 1,
        "first_column_lost": j == 0,
        "last_column_lost": j == W - 1,
        "first_mask_row_lost": p == 0,
        "last_mask_column_lost": q == w_mask - 1,
    }.get(fault)
    if skipped is not None:
        inside = inside & ~skipped
    h, w, i, j = np.nonzero(inside)
    cell = (i - h + half_h) * w_mask + (j - w + half_w)
    if fault == "mask_axes_swapped":
        cell = (j - w + half_w) * h_mask + (i - h + half_h)
    if mode == 0 or (fault == "distribute_as_collect" and mode == 1):
        row, column, channel = h, w, i * W + j
    else:
        row, column, channel = i, j, h * W + w
    if fault == "modes_swapped":
        row, column, channel = (i, j, h * W + w) if mode == 0 else (h, w, i * W + j)
    if fault == "feature_axes_swapped":
        channel = (channel % W) * H + channel // W

    if fault == "rounded_through_half":
        with np.errstate(over="ignore"):
            given = given.astype(np.float16).astype(np.float32)
    if fault == "nan_dropped":
        given = np.where(np.isnan(given), np.float32(0), given)
    if fault == "inf_clamped":
        given = np.where(np.isinf(given), np.copysign(np.finfo(np.float32).max, given), given)
    if fault == "batch_offset_lost":
        given = np.broadcast_to(given[:1], given.shape)

    batches = N - 1 if fault == "last_batch_lost" and N > 1 else N
    if fault == "zero_by_multiplying_the_output":
        computed *= np.float32(0)
    elif fault == "max_with_stale":
        np.fmax(computed, 0, out=computed)  # as fmaxf in C: NaN loses
    elif fault != "no_zero_fill":
        computed[:] = 0
    if op == "psamask_forward":
        computed[:batches, row, column, channel] = given[:batches, h, w, cell]
    else:
        computed[:batches, h, w, cell] = given[:batches, row, column, channel]
    if fault == "first_1024_channels_alone":
        computed[..., 1024:] = 0
    if fault == "first_128_rows_alone":
        computed[:, 128:] = 0
    tail = computed.shape[3] // 64 * 64
    if fault == "channel_tail_lost" and tail:
        computed[..., tail:] = 0
    return SUCCESS


# fault -> what the reason must speak of: a criterion, NaN / Inf, the status, or unwritten memory
REASONS = {
    "half_of_even_mask_rounded_up": "diff3",
    "half_width_from_height": "diff3",
    "mask_shifted_by_one": "diff3",
    "first_row_lost": "diff3",
    "last_row_lost": "diff3",
    "first_column_lost": "diff3",
    "last_column_lost": "diff3",
    "first_mask_row_lost": "diff3",
    "last_mask_column_lost": "diff3",
    "mask_axes_swapped": "diff3",
    "distribute_as_collect": "diff3",
    "modes_swapped": "diff3",
    "feature_axes_swapped": "diff3",
    "rounded_through_half": "diff3",
    "nan_dropped": "NaN",
    "inf_clamped": "Inf",
    "batch_offset_lost": "diff3",
    "last_batch_lost": "diff3",
    "channel_tail_lost": "diff3",
    "first_1024_channels_alone": "diff3",
    "first_128_rows_alone": "diff3",
    "no_zero_fill": "diff3",
    "zero_by_multiplying_the_output": "NaN",
    "max_with_stale": "diff3",
    "writes_nothing": "diff3",
    "accepts_null_handle": "got",
    "accepts_any_layout": "got",
    "refuses_zero_elements": "got",
}
# Neither the design nor the vendor demands a refusal here: all cases pass.
BEYOND_DESIGN = {"accepts_any_psa_type": partial(_psamask, fault="accepts_any_psa_type")}
FAULTS = {name: (partial(_psamask, fault=name), reason) for name, reason in REASONS.items()}
right = partial(_psamask)
globals().update({name: implementation for name, (implementation, _) in FAULTS.items()} | BEYOND_DESIGN)
