"""voxel_pooling, right and wrong: one scatter in float32, with one injected fault per name.

Each is an implementation `python:FILE.py:NAME`; written from the formula, independent of the reference.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from schemas.status import BAD_PARAM, NOT_SUPPORTED, SUCCESS


def _status(inputs: Any, outputs: Any, params: Any, descriptors: Any, handle: Any, fault: str) -> str | None:
    """The status of what is wrong with the call, or None."""
    if handle is None or any(each is None for each in descriptors.values()):
        return BAD_PARAM
    dtypes = {"geom_xyz": "int32", "input_features": "float", "output_features": "float", "pos_memo": "int32"}
    if any(descriptors[name].dtype != dtype for name, dtype in dtypes.items()) and fault != "accepts_any_dtype":
        return BAD_PARAM
    B, N, C, X, Y, Z = (
        params[name]
        for name in ("batch_size", "num_points", "num_channels", "num_voxel_x", "num_voxel_y", "num_voxel_z")
    )
    expected = {"geom_xyz": (B, N, 3), "input_features": (B, N, C), "output_features": (B, Y, X, C)}
    expected["pos_memo"] = (B, N, 3)
    if any(descriptors[name].dims != dims for name, dims in expected.items() if fault != "accepts_any_memo_shape"):
        return BAD_PARAM
    if min(B, N, C, X, Y) <= 0 or (Z <= 0 and fault != "accepts_no_z"):
        return SUCCESS if fault == "accepts_zero_elements" else BAD_PARAM
    if any(each.strides is not None for each in descriptors.values()) and fault != "accepts_strides":
        return NOT_SUPPORTED
    if any(np.prod(each.dims, dtype=object) >= 2**31 for each in descriptors.values()):
        return NOT_SUPPORTED
    return BAD_PARAM if any(each is None for each in (*inputs.values(), *outputs.values())) else None


def _pool(op: str, inputs: Any, outputs: Any, params: Any, descriptors: Any, handle: Any, fault: str = "") -> Any:
    status = _status(inputs, outputs, params, descriptors, handle, fault)
    if status is not None or fault == "writes_nothing":
        return status or SUCCESS
    features, output, memo = inputs["input_features"], outputs["output_features"], outputs["pos_memo"]
    _, N, C = features.shape
    X, Y, Z = params["num_voxel_x"], params["num_voxel_y"], params["num_voxel_z"]
    x, y, z = np.moveaxis(inputs["geom_xyz"], -1, 0)
    if fault == "bounds_swapped":
        X, Y = Y, X
    low = 1 if fault == "zero_is_outside" else 0
    over = 1 if fault == "end_is_inside" else 0
    inside = (x >= low) & (x < X + over) & (y >= low) & (y < Y + over)
    if fault != "z_not_checked":
        inside &= (z >= low) & (z < Z + over)
    if fault == "last_column_lost":
        inside &= x < X - 1
    if fault == "last_row_lost":
        inside &= y < Y - 1
    if fault == "only_z_0":
        inside &= z == 0
    if fault == "edge_clamped":
        x, y, inside = x.clip(0, X - 1), y.clip(0, Y - 1), np.ones_like(inside)
    if fault == "point_tail_lost":
        inside[:, max(1, N // 64 * 64) :] = False
    b, n = np.nonzero(inside)
    x, y = x[b, n], y[b, n]
    row, column, image = y.clip(0, output.shape[1] - 1), x.clip(0, output.shape[2] - 1), b
    if fault == "xy_swapped":
        row, column = x.clip(0, output.shape[1] - 1), y.clip(0, output.shape[2] - 1)
    if fault == "batch_offset_lost":
        image = b * 0
    parts = features[b, n]
    if fault == "nan_dropped":
        parts = np.where(np.isnan(parts), np.float32(0), parts)
    if fault == "features_of_batch_0":
        parts = features[0, n]
    if fault == "zero_by_multiplying_the_output":
        output *= np.float32(0)
    elif fault == "max_with_stale":
        np.fmax(output, 0, out=output)  # as fmaxf in C: NaN loses
    elif fault != "no_zero_fill":
        output[:] = 0
    with np.errstate(invalid="ignore"):
        if fault == "duplicates_lost":
            output[image, row, column] = parts
        elif fault == "mean_instead_of_sum":
            count = np.zeros(output.shape[:3], np.float32)
            np.add.at(output, (image, row, column), parts)
            np.add.at(count, (image, row, column), 1)
            output /= np.maximum(count, 1)[..., None]
        else:
            np.add.at(output, (image, row, column), parts)
    if fault == "channel_tail_lost" and C > 64:
        output[..., C // 64 * 64 :] = 0
    if fault == "memo_outside_0":
        memo[~inside] = 0
    if fault == "sums_in_half":
        with np.errstate(over="ignore"):
            output[:] = output.astype(np.float16)
    positions = (b + 1, y, x) if fault == "memo_batch_from_1" else (b, y, x)
    if fault == "memo_xy_swapped":
        positions = (b, x, y)
    if fault != "memo_not_written":
        memo[b, n] = np.stack(positions, axis=-1)
    if fault == "positions_in_16_bits":
        memo[b, n] &= 0xFFFF
    if fault == "pos_memo_of_element_0":  # "the initial value", read from where another core has written
        memo[~inside] = memo[0, 0]
    return SUCCESS


# fault -> what the reason must speak of: a criterion, the output, NaN / Inf, the status, or unwritten memory
REASONS = {
    "bounds_swapped": "diff1",
    "zero_is_outside": "diff1",
    "end_is_inside": "diff1",
    "z_not_checked": "diff1",
    "last_column_lost": "diff1",
    "last_row_lost": "diff1",
    "only_z_0": "diff1",
    "edge_clamped": "diff1",
    "point_tail_lost": "diff1",
    "xy_swapped": "diff1",
    "batch_offset_lost": "diff1",
    "features_of_batch_0": "diff1",
    "nan_dropped": "NaN",
    "no_zero_fill": "diff1",
    "zero_by_multiplying_the_output": "NaN",
    "max_with_stale": "diff1",
    "duplicates_lost": "diff1",
    "mean_instead_of_sum": "diff1",
    "channel_tail_lost": "diff1",
    "memo_outside_0": "pos_memo",
    "memo_batch_from_1": "pos_memo",
    "memo_xy_swapped": "pos_memo",
    "memo_not_written": "pos_memo",
    "pos_memo_of_element_0": "pos_memo",
    "sums_in_half": "diff1",
    "positions_in_16_bits": "pos_memo",
    "writes_nothing": "diff1",
    "accepts_any_dtype": "got",
    "accepts_any_memo_shape": "got",
    "accepts_no_z": "got",
    "accepts_zero_elements": "got",
    "accepts_strides": "got",
}
FAULTS = {name: (partial(_pool, fault=name), reason) for name, reason in REASONS.items()}
right = partial(_pool)
globals().update({name: implementation for name, (implementation, _) in FAULTS.items()})
