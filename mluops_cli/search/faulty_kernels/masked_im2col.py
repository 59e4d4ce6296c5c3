"""masked_im2col, right and wrong: a padded feature and one gather, with one injected fault per name.

Each is an implementation `python:FILE.py:NAME`; written from the formula, independent of the reference.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from schemas.status import BAD_PARAM, NOT_SUPPORTED, SUCCESS


def _status(inputs: Any, outputs: Any, params: Any, descriptors: Any, handle: Any, fault: str) -> str | None:
    """The status of what is wrong with the call, workspace aside, or None."""
    if handle is None or any(descriptor is None for descriptor in descriptors.values()):
        return BAD_PARAM
    feature, rows, columns, data_col = (
        descriptors[name] for name in ("feature", "mask_h_idx", "mask_w_idx", "data_col")
    )
    if feature.dtype not in ("half", "float") or (feature.dtype != data_col.dtype and fault != "accepts_any_dtype"):
        return BAD_PARAM
    if rows.dtype != "int32" or columns.dtype != "int32" or feature.layout != "NCHW":
        return BAD_PARAM
    if [len(each.dims) for each in (feature, rows, columns, data_col)] != [4, 1, 1, 2]:
        return BAD_PARAM
    kernel_h, kernel_w = params["kernel_h"], params["kernel_w"]
    batch, C, _, _ = feature.dims
    (M,) = rows.dims
    if kernel_h <= 0 or kernel_w <= 0 or (batch != 1 and fault != "accepts_any_batch"):
        return BAD_PARAM
    if columns.dims != (M,) or data_col.dims != (C * kernel_h * kernel_w, M):
        return BAD_PARAM
    if any(each.strides is not None for each in descriptors.values()) and fault != "accepts_strides":
        return NOT_SUPPORTED
    if any(np.prod(each.dims, dtype=object) >= 2**31 for each in descriptors.values()):
        return NOT_SUPPORTED
    if 0 in feature.dims:
        return SUCCESS if fault == "accepts_an_empty_feature" else BAD_PARAM
    if M == 0:
        return SUCCESS
    return BAD_PARAM if any(array is None for array in (*inputs.values(), *outputs.values())) else None


class _Im2col:
    """The implementation with one fault, or none."""

    def __init__(self, fault: str = "") -> None:
        self.fault = fault

    def workspace_size(self, op: str, inputs: Any, outputs: Any, params: Any, size: Any) -> Any:
        if size is None:
            return BAD_PARAM
        size[0] = inputs["feature"].nbytes + outputs["data_col"].nbytes
        return SUCCESS

    def __call__(self, op: str, inputs: Any, outputs: Any, params: Any, descriptors: Any, handle: Any) -> Any:
        fault = self.fault
        status = _status(inputs, outputs, params, descriptors, handle, fault)
        if status is not None:
            return status
        feature, rows, columns = (inputs[name] for name in ("feature", "mask_h_idx", "mask_w_idx"))
        data_col, workspace = outputs["data_col"], params.get("workspace")
        if fault != "ignores_the_workspace" and (
            workspace is None or workspace.size < feature.nbytes + data_col.nbytes
        ):
            return BAD_PARAM
        if fault != "writes_nothing":
            self.compute(feature[0], rows, columns, params, data_col)
        return SUCCESS

    def compute(self, feature: Any, rows: Any, columns: Any, params: Any, data_col: Any) -> None:
        fault = self.fault
        C, H, W = feature.shape
        kernel_h, kernel_w, pad_h, pad_w = (params[name] for name in ("kernel_h", "kernel_w", "pad_h", "pad_w"))
        if fault == "pad_ignored":
            pad_h = pad_w = 0
        if fault == "pads_swapped":
            pad_h, pad_w = pad_w, pad_h
        if fault == "masks_swapped":
            rows, columns = columns, rows
        position = np.int32 if fault == "wraps_in_32_bits" else np.int64
        pads = np.array([pad_h, pad_w]).astype(position)
        y = rows.astype(position) - pads[0] + np.arange(kernel_h, dtype=position)[:, None]  # kernel_h, M
        x = columns.astype(position) - pads[1] + np.arange(kernel_w, dtype=position)[:, None]
        if fault == "edge_clamped":
            y, x = y.clip(0, H - 1), x.clip(0, W - 1)
        if fault == "wraps_around":
            y, x = np.where(y < 0, y + H, y), np.where(x < 0, x + W, x)
        top, left = int(fault == "first_row_lost"), int(fault == "first_column_lost")
        bottom, right = H - int(fault == "last_row_lost"), W - int(fault == "last_column_lost")
        good_y, good_x = (y >= top) & (y < bottom), (x >= left) & (x < right)
        inside = good_y[:, None] & good_x[None]  # kernel_h, kernel_w, M
        flat = np.where(good_y, y, 0)[:, None] * W + np.where(good_x, x, 0)[None]
        taps = feature.reshape(C, H * W)[:, flat]
        if fault == "rounded_through_half":
            with np.errstate(over="ignore"):
                taps = taps.astype(np.float16).astype(feature.dtype)
        if fault == "nan_dropped":
            taps = np.where(np.isnan(taps), np.zeros((), taps.dtype), taps)
        if fault == "subnormals_flushed":
            taps = np.where(np.abs(taps) < np.finfo(taps.dtype).tiny, np.zeros((), taps.dtype), taps)
        stale = data_col.reshape(taps.shape)
        if fault == "no_zero_fill":
            result = np.where(inside, taps, stale)
        elif fault == "zero_by_multiplying_the_output":
            result = np.where(inside, taps, stale * stale.dtype.type(0))
        elif fault == "max_with_stale":
            result = np.where(inside, taps, np.fmax(stale, 0))  # as fmaxf in C: NaN loses
        elif fault == "zero_by_multiplication":  # NaN outside the feature leaks into the fill
            with np.errstate(invalid="ignore"):
                result = taps * inside.astype(taps.dtype)
        else:
            result = np.where(inside, taps, np.zeros((), taps.dtype))
        if fault == "kernel_axes_swapped":
            result = result.swapaxes(1, 2).reshape(C, kernel_h, kernel_w, -1)
        if fault == "channels_last":
            result = np.moveaxis(result, 0, 2)
        M = data_col.shape[1]
        if fault == "mask_tail_lost" and M > 64:
            result = result.copy()
            result[..., M // 64 * 64 :] = 0
        if fault == "channel_tail_lost" and C > 64:
            result = result.copy()
            result[C // 64 * 64 :] = 0
        data_col[:] = result.reshape(data_col.shape)


# fault -> what the reason must speak of: a criterion, NaN / Inf, the status, or unwritten memory
REASONS = {
    "pad_ignored": "diff3",
    "pads_swapped": "diff3",
    "masks_swapped": "diff3",
    "wraps_in_32_bits": "diff3",
    "edge_clamped": "diff3",
    "wraps_around": "diff3",
    "first_row_lost": "diff3",
    "last_row_lost": "diff3",
    "first_column_lost": "diff3",
    "last_column_lost": "diff3",
    "rounded_through_half": "diff3",
    "subnormals_flushed": "diff3",
    "nan_dropped": "NaN",
    "zero_by_multiplication": "NaN",
    "no_zero_fill": "diff3",
    "zero_by_multiplying_the_output": "NaN",
    "max_with_stale": "diff3",
    "writes_nothing": "diff3",
    "kernel_axes_swapped": "diff3",
    "channels_last": "diff3",
    "mask_tail_lost": "diff3",
    "channel_tail_lost": "diff3",
    "accepts_any_dtype": "got",
    "accepts_any_batch": "got",
    "accepts_strides": "got",
    "accepts_an_empty_feature": "got",
    "ignores_the_workspace": "got",
}
FAULTS = {name: (_Im2col(name), reason) for name, reason in REASONS.items()}
right = _Im2col()
globals().update({name: implementation for name, (implementation, _) in FAULTS.items()})
