"""roialign_forward with faults: per box a gather of all its samples in float32, with one injected fault per name.

Each is an implementation `python:FILE.py:NAME`; written from mmcv's formula, independent of the reference.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from schemas.status import BAD_PARAM, NOT_SUPPORTED, SUCCESS

F = np.float32


def _status(params: Any, inputs: Any, outputs: Any, descriptors: Any, handle: Any, fault: str) -> str | None:
    """The status of what is wrong with the call, or None."""
    if handle is None or any(each is None for each in descriptors.values()):
        return BAD_PARAM
    image, boxes, output = (descriptors[name] for name in ("input", "boxes", "output"))
    if any(each.dtype != "float" for each in (image, boxes, output)):
        return BAD_PARAM
    if (len(image.dims), len(boxes.dims), len(output.dims)) != (4, 2, 4):
        return BAD_PARAM
    if (image.layout != "NHWC" or output.layout != "NHWC") and fault != "accepts_any_layout":
        return BAD_PARAM
    if params["pooled_height"] < 1 or params["pooled_width"] < 1 or not params["spatial_scale"] > 0:
        return BAD_PARAM
    if boxes.dims[1] != 5 and fault != "accepts_boxes_of_any_width":
        return BAD_PARAM
    if tuple(output.dims) != (boxes.dims[0], params["pooled_height"], params["pooled_width"], image.dims[3]):
        return BAD_PARAM
    if any(each.strides is not None for each in descriptors.values()):
        return NOT_SUPPORTED
    if any(np.prod(each.dims, dtype=object) >= 2**31 for each in descriptors.values()):
        return NOT_SUPPORTED
    if 0 in image.dims:
        return SUCCESS if fault == "accepts_zero_elements" else BAD_PARAM
    if 0 in (*boxes.dims, *output.dims):
        return SUCCESS
    return BAD_PARAM if any(each is None for each in (*inputs.values(), *outputs.values())) else None


def positions(low: Any, high: Any, bins: int, params: Any, fault: str) -> Any:
    """The positions of the samples along one axis: [bins, samples], float32."""
    scale, aligned = F(params["spatial_scale"]), params["aligned"]
    if fault == "scale_ignored":
        scale = F(1)
    half = F(0.5 if aligned and fault != "aligned_ignored" else 0)
    start, end = low * scale - half, high * scale - half
    if fault == "box_rounded":
        start, end = np.rint(start), np.rint(end)
    if fault == "end_included":
        end = end + F(1)
    extent = end - start
    if (not aligned or fault == "size_1_if_aligned") and fault != "empty_box_is_a_point":
        extent = max(extent, F(1))
    share = extent / F(bins)
    count = params["sampling_ratio"] or max(int(np.ceil(share)), 0)
    if fault == "ratio_ignored":
        count = 2
    if fault == "by_size_rounded_down" and not params["sampling_ratio"]:
        count = max(int(np.floor(share)), 1)
    if fault == "one_sample_per_bin":
        count = min(count, 1)
    middle = F(0 if fault == "samples_at_edges" else 0.5)
    inner = (np.arange(count, dtype=F) + middle) * share / F(max(count, 1))
    return start + np.arange(bins, dtype=F)[:, None] * share + inner


def sides(at: Any, size: int, fault: str) -> Any:
    """Both pixels of each position, the weight of the far one, and whether the sample counts."""
    first, last = -1, size
    if fault == "first_pixel_lost":
        first = 0
    if fault == "last_pixel_lost":
        last = size - 1
    counted = (at >= first) & (at <= last)
    if fault == "clamped":
        counted = np.ones_like(counted)
    at = np.clip(at, F(-1e6), F(1e6))
    inside = np.clip(at, F(0), F(size - 1))
    if fault == "extrapolated":  # to the left of the first pixel
        inside = np.minimum(at, F(size - 1))
    low = np.clip(np.floor(inside).astype(np.int64), 0, size - 1)
    far = np.minimum(low + 1, size - 1)
    rest = inside - low.astype(F)
    if fault == "nearest":
        rest = (rest >= 0.5).astype(F)
    if fault == "weights_swapped":
        rest = 1 - rest
    return low, far, rest.astype(F), counted


def _bins(image: Any, y: Any, x: Any, fault: str) -> Any:
    """The means of the samples at [bins, samples] positions of both axes."""
    H, W, C = image.shape
    top, bottom, down, in_y = sides(y.ravel(), H, fault)
    left, right, across, in_x = sides(x.ravel(), W, fault)
    down, across = down[:, None, None], across[:, None]
    corners = [
        ((1 - down) * (1 - across), top, left),
        ((1 - down) * across, top, right),
        (down * (1 - across), bottom, left),
        (down * across, bottom, right),
    ]
    if fault == "fourth_corner_lost":
        corners.pop()
    samples = np.zeros((y.size, x.size, C), F)
    for weight, rows, columns in corners:
        part = weight * image[rows[:, None], columns]
        samples += np.where(weight == 0, F(0), part) if fault == "weight_0_not_read" else part
    counted = in_y[:, None] & in_x
    samples = samples * counted[:, :, None] if fault == "outside_times_0" else np.where(counted[:, :, None], samples, 0)
    shape = (*y.shape, *x.shape)
    sums = samples.reshape(*shape, C).sum((1, 3), dtype=F)
    if fault == "sums_in_half":
        with np.errstate(over="ignore"):
            sums = sums.astype(np.float16).astype(F)
    if fault == "mean_of_counted":
        return sums / np.maximum(counted.reshape(shape).sum((1, 3)), 1)[..., None]
    if fault == "sum_of_samples":
        return sums
    if fault == "maximum":
        return samples.reshape(*shape, C).max((1, 3))
    return sums / F(y.shape[1] * x.shape[1])


def _roialign(op: str, inputs: Any, outputs: Any, params: Any, descriptors: Any, handle: Any, fault: str = "") -> Any:
    status = _status(params, inputs, outputs, descriptors, handle, fault)
    if status is not None or fault == "writes_nothing":
        return status or SUCCESS
    images, boxes, output = inputs["input"], inputs["boxes"], outputs["output"]
    if fault == "nan_dropped":
        images = np.where(np.isnan(images), F(0), images)
    _, height, width, C = output.shape
    with np.errstate(invalid="ignore", over="ignore"):
        for k, box in enumerate(boxes):
            number, x1, y1, x2, y2 = [*box, F(0)][:5]
            if fault == "xy_swapped":
                x1, y1, x2, y2 = y1, x1, y2, x2
            image = images[0 if fault == "image_of_box_lost" else int(number)]
            bins = (width, height) if fault == "bins_swapped" and width == height + 1 else (height, width)
            y, x = positions(y1, y2, bins[0], params, fault), positions(x1, x2, bins[1], params, fault)
            if y.size and x.size:
                output[k] = _bins(image, y, x, fault).reshape(height, width, C)
            elif fault != "empty_not_stored":
                output[k] = 0
    if fault == "last_box_lost":
        output[-1] = 0
    if fault == "last_bin_lost":
        output[:, -1, -1] = 0
    if fault == "channel_tail_lost" and C >= 64:
        output[..., C // 64 * 64 :] = 0
    return SUCCESS


# fault -> what the reason must speak of: a criterion, NaN / Inf, the status
REASONS = {
    "xy_swapped": "diff1",
    "scale_ignored": "diff1",
    "aligned_ignored": "diff1",
    "box_rounded": "diff1",
    "end_included": "diff1",
    "size_1_if_aligned": "diff1",
    "empty_box_is_a_point": "diff1",
    "ratio_ignored": "diff1",
    "by_size_rounded_down": "diff1",
    "one_sample_per_bin": "diff1",
    "samples_at_edges": "diff1",
    "first_pixel_lost": "diff1",
    "last_pixel_lost": "diff1",
    "clamped": "diff1",
    "extrapolated": "diff1",
    "nearest": "diff1",
    "weights_swapped": "diff1",
    "fourth_corner_lost": "diff1",
    "weight_0_not_read": "NaN",
    "outside_times_0": "NaN",
    "nan_dropped": "NaN",
    "sums_in_half": "diff1",
    "mean_of_counted": "diff1",
    "sum_of_samples": "diff1",
    "maximum": "diff1",
    "image_of_box_lost": "diff1",
    "empty_not_stored": "diff1",
    "last_box_lost": "diff1",
    "last_bin_lost": "diff1",
    "channel_tail_lost": "diff1",
    "bins_swapped": "diff1",
    "writes_nothing": "diff1",
    "accepts_any_layout": "got",
    "accepts_boxes_of_any_width": "got",
    "accepts_zero_elements": "got",
}
FAULTS = {name: (partial(_roialign, fault=name), reason) for name, reason in REASONS.items()}
right = partial(_roialign)
globals().update({name: implementation for name, (implementation, _) in FAULTS.items()})
