"""roi_crop, right and wrong: four gathers (or scatters) in float32, with one injected fault per name.

Each is an implementation `python:FILE.py:NAME`; written from the formula, independent of the reference.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from schemas.status import BAD_PARAM, NOT_SUPPORTED, SUCCESS


def _status(op: str, inputs: Any, outputs: Any, descriptors: Any, handle: Any, fault: str) -> str | None:
    """The status of what is wrong with the call, or None."""
    if handle is None or any(each is None for each in descriptors.values()):
        return BAD_PARAM
    image, bins = ("input", "output") if op == "roi_crop_forward" else ("grad_input", "grad_output")
    image, bins, grid = descriptors[image], descriptors[bins], descriptors["grid"]
    for each in (image, bins, grid):
        if each.dtype != "float" or len(each.dims) != 4:
            return BAD_PARAM
    if (image.layout != "NHWC" or bins.layout != "NHWC") and fault != "accepts_any_layout":
        return BAD_PARAM
    if grid.dims[3] != 2 and fault != "accepts_any_last_dim_of_grid":
        return BAD_PARAM
    if grid.dims[:3] != bins.dims[:3] or image.dims[3] != bins.dims[3]:
        return BAD_PARAM
    if image.dims[0] and grid.dims[0] % image.dims[0] and fault != "accepts_any_number_of_rois":
        return BAD_PARAM
    if any(each.strides is not None for each in descriptors.values()):
        return NOT_SUPPORTED
    if any(np.prod(each.dims, dtype=object) >= 2**31 for each in descriptors.values()):
        return NOT_SUPPORTED
    if 0 in image.dims + bins.dims:
        return SUCCESS if fault == "accepts_zero_elements" else BAD_PARAM
    return BAD_PARAM if any(each is None for each in (*inputs.values(), *outputs.values())) else None


def corners(grid: Any, B: int, H: int, W: int, fault: str = "") -> Any:
    """Per corner: image, row, column (in range), weight, whether it is read."""
    y, x = grid[..., :2].reshape(-1, 2).T.astype(np.float32)
    if fault == "xy_swapped":
        y, x = x, y
    with np.errstate(over="ignore"):
        if fault == "pixel_edges_at_1":
            ay, ax = ((y + 1) * H - 1) / 2, ((x + 1) * W - 1) / 2
        elif fault == "height_for_both":
            ay, ax = (y + 1) * (H - 1) / 2, (x + 1) * (H - 1) / 2
        else:
            ay, ax = (y + 1) * (H - 1) / 2, (x + 1) * (W - 1) / 2
    ay, ax = ay.clip(-1e6, 1e6), ax.clip(-1e6, 1e6)
    if fault == "edge_clamped":
        ay, ax = ay.clip(0, H - 1), ax.clip(0, W - 1)
    integral = np.trunc if fault == "truncated_instead_of_floored" else np.floor
    y0, x0 = integral(ay).astype(np.int64), integral(ax).astype(np.int64)
    wy, wx = 1 - (ay - y0), 1 - (ax - x0)
    if fault == "nearest":
        wy, wx = (wy > 0.5).astype(np.float32), (wx > 0.5).astype(np.float32)
    if fault == "weights_swapped":
        wy, wx = 1 - wy, 1 - wx
    rois = len(grid)
    roi = np.repeat(np.arange(rois), grid.shape[1] * grid.shape[2])
    image = roi % B if fault == "rois_interleaved" else (roi // (rois // B)).clip(0, B - 1)
    if fault == "batch_offset_lost":
        image = image * 0
    last_row, last_column = H - 1 - (fault == "last_row_lost"), W - 1 - (fault == "last_column_lost")
    first_row, first_column = int(fault == "first_row_lost"), int(fault == "first_column_lost")
    found = []
    for down in (0, 1):
        for across in (0, 1):
            if fault == "fourth_corner_lost" and down and across:
                continue
            cy, cx = y0 + down, x0 + across
            seen_y, seen_x = cy, cx
            if fault == "corner_checks_swapped" and down != across:
                seen_y, seen_x = y0 + across, x0 + down
            if fault == "wraps_around":
                cy, cx = cy % H, cx % W
                seen_y, seen_x = cy, cx
            read = (first_row <= seen_y) & (seen_y <= last_row) & (first_column <= seen_x) & (seen_x <= last_column)
            weight = (wy if not down else 1 - wy) * (wx if not across else 1 - wx)
            if fault == "weight_0_not_read":
                read = read & (weight != 0)
            if fault == "outside_times_0":
                weight, read = weight * read, np.ones_like(read)
            found.append((image, cy.clip(0, H - 1), cx.clip(0, W - 1), weight.astype(np.float32), read))
    return found


def _roi_crop(op: str, inputs: Any, outputs: Any, params: Any, descriptors: Any, handle: Any, fault: str = "") -> Any:
    status = _status(op, inputs, outputs, descriptors, handle, fault)
    if status is not None or fault == "writes_nothing":
        return status or SUCCESS
    grid = inputs["grid"]
    forward = op == "roi_crop_forward"
    image = inputs["input"] if forward else outputs["grad_input"]
    bins = (outputs["output"] if forward else inputs["grad_output"]).reshape(-1, image.shape[3])
    B, H, W, _ = image.shape
    found = corners(grid, B, H, W, fault)
    with np.errstate(invalid="ignore", over="ignore"):
        if forward:
            if fault == "nan_dropped":
                image = np.where(np.isnan(image), np.float32(0), image)
            total = np.zeros_like(bins)
            for n, y, x, weight, read in found:
                total[read] += weight[read, None] * image[n[read], y[read], x[read]]
            if fault == "bins_outside_not_stored":
                stored = np.any([read for *_, read in found], axis=0)
                bins[stored] = total[stored]
            else:
                bins[:] = total
            if fault == "last_bin_lost":
                bins[-1] = 0
        else:
            gradient = np.where(np.isnan(bins), np.float32(0), bins) if fault == "nan_dropped" else bins
            if fault == "zero_by_multiplying_the_output":
                image *= np.float32(0)
            elif fault == "max_with_stale":
                np.fmax(image, 0, out=image)  # as fmaxf in C: NaN loses
            elif fault != "no_zero_fill":
                image[:] = 0
            for n, y, x, weight, read in found:
                if fault == "last_bin_lost":
                    read = read & (np.arange(len(read)) < len(read) - 1)
                part = weight[read, None] * gradient[read]
                if fault == "adds_lost":
                    image[n[read], y[read], x[read]] = part
                else:
                    np.add.at(image, (n[read], y[read], x[read]), part)
    computed = outputs["output"] if forward else outputs["grad_input"]
    if fault == "sums_in_half":
        with np.errstate(over="ignore"):
            computed[:] = computed.astype(np.float16)
    if fault == "first_256_rows_alone":
        computed[:, 256:] = 0
    tail = image.shape[3] // 64 * 64
    if fault == "channel_tail_lost" and tail:
        (bins if forward else image)[..., tail:] = 0
    return SUCCESS


# fault -> (what the reason must speak of: a criterion, NaN / Inf, the status; where it can be planted)
_BOTH, _FORWARD, _BACKWARD = ("roi_crop_forward", "roi_crop_backward"), ("roi_crop_forward",), ("roi_crop_backward",)
REASONS = {
    "xy_swapped": ("diff1", _BOTH),
    "pixel_edges_at_1": ("diff1", _BOTH),
    "height_for_both": ("diff1", _BOTH),
    "edge_clamped": ("diff1", _BOTH),
    "truncated_instead_of_floored": ("diff1", _BOTH),
    "nearest": ("diff1", _BOTH),
    "weights_swapped": ("diff1", _BOTH),
    "rois_interleaved": ("diff1", _BOTH),
    "batch_offset_lost": ("diff1", _BOTH),
    "first_row_lost": ("diff1", _BOTH),
    "first_column_lost": ("diff1", _BOTH),
    "last_row_lost": ("diff1", _BOTH),
    "last_column_lost": ("diff1", _BOTH),
    "fourth_corner_lost": ("diff1", _BOTH),
    "corner_checks_swapped": ("diff1", _BOTH),
    "wraps_around": ("diff1", _BOTH),
    "weight_0_not_read": ("NaN", _BOTH),
    "outside_times_0": ("NaN", _BOTH),
    "nan_dropped": ("NaN", _BOTH),
    "last_bin_lost": ("diff1", _BOTH),
    "channel_tail_lost": ("diff1", _BOTH),
    "sums_in_half": ("diff1", _BOTH),
    "first_256_rows_alone": ("diff2", _BOTH),
    "bins_outside_not_stored": ("diff1", _FORWARD),
    "no_zero_fill": ("diff1", _BACKWARD),
    "zero_by_multiplying_the_output": ("NaN", _BACKWARD),
    "max_with_stale": ("diff1", _BACKWARD),
    "adds_lost": ("diff1", _BACKWARD),
    "writes_nothing": ("diff1", _BOTH),
    "accepts_any_layout": ("got", _BOTH),
    "accepts_any_last_dim_of_grid": ("got", _BOTH),
    "accepts_zero_elements": ("got", _BOTH),
}
# Neither the design nor the vendor demands a refusal here: all cases pass.
BEYOND_DESIGN = {"accepts_any_number_of_rois": partial(_roi_crop, fault="accepts_any_number_of_rois")}
FAULTS = {name: (partial(_roi_crop, fault=name), reason) for name, (reason, _) in REASONS.items()}
OPERATORS = {name: operators for name, (_, operators) in REASONS.items()}
right = partial(_roi_crop)
globals().update({name: implementation for name, (implementation, _) in FAULTS.items()} | BEYOND_DESIGN)
