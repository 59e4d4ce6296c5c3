"""masked_col2im, right and wrong: one scatter over flat positions, with one injected fault per name.

Each is an implementation `python:FILE.py:NAME`; written from the formula, independent of the reference.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from schemas.status import BAD_PARAM, NOT_SUPPORTED, SUCCESS


def _status(inputs: Any, outputs: Any, descriptors: Any, handle: Any, fault: str) -> str | None:
    """The status of what is wrong with the call, workspace aside, or None."""
    if handle is None or any(descriptor is None for descriptor in descriptors.values()):
        return BAD_PARAM
    col, rows, columns, im = (descriptors[name] for name in ("col", "mask_h_idx", "mask_w_idx", "im"))
    if col.dtype not in ("half", "float") or (col.dtype != im.dtype and fault != "accepts_any_dtype"):
        return BAD_PARAM
    if rows.dtype != "int32" or columns.dtype != "int32":
        return BAD_PARAM
    if im.layout != "NCHW" and fault != "accepts_any_layout":
        return BAD_PARAM
    if [len(each.dims) for each in (col, rows, columns, im)] != [2, 1, 1, 4]:
        return BAD_PARAM
    C, M = col.dims
    if rows.dims != (M,) or columns.dims != (M,) or im.dims[1] != C:
        return BAD_PARAM
    if im.dims[0] != 1 and fault != "accepts_any_batch":
        return BAD_PARAM
    if any(each.strides is not None for each in descriptors.values()) and fault != "accepts_strides":
        return NOT_SUPPORTED
    if any(np.prod(each.dims, dtype=object) >= 2**31 for each in descriptors.values()):
        return NOT_SUPPORTED
    if 0 in im.dims:
        return SUCCESS if fault == "accepts_an_empty_image" else BAD_PARAM
    if M == 0 and fault == "no_masks_not_stored":
        return SUCCESS
    missing = [name for name, array in {**inputs, **outputs}.items() if array is None]
    return BAD_PARAM if any(np.prod(descriptors[name].dims) for name in missing) else None


class _Col2im:
    """The implementation with one fault, or none."""

    def __init__(self, fault: str = "") -> None:
        self.fault = fault

    def workspace_size(self, op: str, inputs: Any, outputs: Any, params: Any, size: Any) -> Any:
        if size is None:
            return BAD_PARAM
        size[0] = inputs["col"].nbytes + outputs["im"].nbytes
        return SUCCESS

    def __call__(self, op: str, inputs: Any, outputs: Any, params: Any, descriptors: Any, handle: Any) -> Any:
        fault = self.fault
        status = _status(inputs, outputs, descriptors, handle, fault)
        if status is not None:
            return status
        col, rows, columns, im = inputs["col"], inputs["mask_h_idx"], inputs["mask_w_idx"], outputs["im"]
        workspace = params.get("workspace")
        if not col.size:
            if fault != "writes_nothing":
                im[...] = 0
            return SUCCESS
        if fault != "ignores_the_workspace" and (workspace is None or workspace.size < col.nbytes + im.nbytes):
            return BAD_PARAM
        if fault != "writes_nothing":
            self.compute(col, rows.astype(np.int64), columns.astype(np.int64), im[0])
        return SUCCESS

    def compute(self, col: Any, rows: Any, columns: Any, im: Any) -> None:
        fault = self.fault
        C, H, W = im.shape
        M = col.shape[1]
        if fault == "masks_swapped":
            rows, columns = columns % H, rows % W
        if fault == "shifted_by_one":
            columns = (columns + 1) % W
        if fault == "first_index_is_1":
            rows = np.maximum(rows - 1, 0)
        place = columns * H + rows if fault == "column_major" else rows * W + columns
        if fault == "height_for_width":
            place = (rows * H + columns) % (H * W)
        if fault == "wraps_in_15_bits":
            place = place % 2**15
        values = col.reshape(M, C).T if fault == "columns_last" else col
        if fault == "masks_sorted":
            place = np.sort(place)
        if fault == "rounded_through_half":
            with np.errstate(over="ignore"):
                values = values.astype(np.float16).astype(col.dtype)
        if fault == "nan_dropped":
            values = np.where(np.isnan(values), np.zeros((), col.dtype), values)
        if fault == "subnormals_flushed":
            values = np.where(np.abs(values) < np.finfo(col.dtype).tiny, np.zeros((), col.dtype), values)
        used = np.ones(M, bool)
        used[M - 1 :] = fault != "last_mask_lost"
        if fault == "mask_tail_lost" and M > 64:
            used[M // 64 * 64 :] = False
        if fault == "last_row_lost":
            used &= rows < H - 1
        if fault == "last_column_lost":
            used &= columns < W - 1
        if fault == "first_column_lost":
            used &= columns > 0
        with np.errstate(invalid="ignore", over="ignore"):
            if fault == "zero_by_multiplying_the_output":
                im *= im.dtype.type(0)
            elif fault == "max_with_stale":
                np.fmax(im, 0, out=im)  # as fmaxf in C: NaN loses
            elif fault == "added_to_stale":
                np.add.at(im.reshape(C, -1).T, place[used], values[:, used].T)
                return
            elif fault != "no_zero_fill":
                im[...] = 0
        flat = im.reshape(C, H * W)
        flat[:, place[used]] = values[:, used] + 0 if fault == "minus_zero_lost" else values[:, used]
        if fault == "channel_tail_lost" and C > 64:
            flat[C // 64 * 64 :] = 0


# fault -> what the reason must speak of: a criterion, NaN / Inf, the status, or unwritten memory
REASONS = {
    "masks_swapped": "diff3",
    "shifted_by_one": "diff3",
    "first_index_is_1": "diff3",
    "column_major": "diff3",
    "height_for_width": "diff3",
    "wraps_in_15_bits": "diff3",
    "columns_last": "diff3",
    "masks_sorted": "diff3",
    "rounded_through_half": "diff3",
    "subnormals_flushed": "diff3",
    "nan_dropped": "NaN",
    "minus_zero_lost": "diff3",
    "last_mask_lost": "diff3",
    "mask_tail_lost": "diff3",
    "last_row_lost": "diff3",
    "last_column_lost": "diff3",
    "first_column_lost": "diff3",
    "no_zero_fill": "diff3",
    "zero_by_multiplying_the_output": "NaN",
    "max_with_stale": "diff3",
    "added_to_stale": "diff3",
    "channel_tail_lost": "diff3",
    "no_masks_not_stored": "diff3",
    "writes_nothing": "diff3",
    "accepts_any_dtype": "got",
    "accepts_any_layout": "got",
    "accepts_any_batch": "got",
    "accepts_strides": "got",
    "accepts_an_empty_image": "got",
    "ignores_the_workspace": "got",
}
FAULTS = {name: (_Col2im(name), reason) for name, reason in REASONS.items()}
right = _Col2im()
globals().update({name: implementation for name, (implementation, _) in FAULTS.items()})
