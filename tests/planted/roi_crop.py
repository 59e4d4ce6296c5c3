"""roi_crop with planted faults: `--impl python:tests/planted/roi_crop.py:NAME`."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from mluops_cli.search.faulty_kernels.roi_crop import FAULTS, right
from tests.planted.planted_fault import Array, KernelCall, planted

_forward = partial(planted, "roi_crop_forward", right)
_backward = partial(planted, "roi_crop_backward", right)


def _pixels(grid: Array, H: int, W: int) -> tuple[Array, Array]:
    """The pixel coordinates of all bins: y and x."""
    y, x = grid.reshape(-1, 2).T.astype(np.float64)
    return (y + 1) * (H - 1) / 2, (x + 1) * (W - 1) / 2


@_forward(
    "The table of image offsets has room for 3 images: rois of later ones read the third.",
    condition="B > 3",
    trigger={"sizes": {"B": 4, "H": 2, "W": 3, "C": 2, "N": 12, "OH": 1, "OW": 2}},
    spared={"sizes": {"B": 3}},
)
def images_from_the_fourth(call: KernelCall) -> Any:
    image = call.inputs["input"].copy()
    image[3:] = image[2]
    return call.again({"input": image})


@_forward(
    "A bin less than a pixel above the first row and exactly on the first column is taken for one outside.",
    condition="H > 1 and W > 1",
    values="a point (y, x) with x = -1 and y between -1 - 2/(H - 1) and -1",
    trigger={
        "sizes": {"B": 1, "H": 5, "W": 3, "C": 2, "N": 1, "OH": 3, "OW": 3},
        "inputs": {"grid": {"dist": {"choice": [-1, -1.25]}}},
    },
    spared={"inputs": {"grid": {"dist": {"choice": [-1, 1]}}}},
)
def above_the_first_row_on_the_first_column(call: KernelCall) -> None:
    _, H, W, C = call.inputs["input"].shape
    y, x = _pixels(call.inputs["grid"], H, W)
    call.outputs["output"].reshape(-1, C)[(y > -1) & (y < 0) & (x == 0)] = 0


@_forward(
    "The grid on chip holds 8192 bins: later ones use the point of the bin 8192 before them.",
    condition="N*OH*OW > 8192",
    trigger={"sizes": {"B": 1, "H": 3, "W": 4, "C": 1, "N": 1, "OH": 1, "OW": 8200}},
    spared={"sizes": {"OW": 8192}},
)
def bins_beyond_8192(call: KernelCall) -> Any:
    grid = call.inputs["grid"]
    points = grid.reshape(-1, 2)
    return call.again({"grid": points[np.arange(len(points)) % 8192].reshape(grid.shape)})


@_forward(
    "Channels behind the last vector of 4 skip corners of weight 0, so 0*NaN is lost there.",
    condition="C > 4 and C % 4 != 0",
    values="NaN or Inf in a pixel that a bin reads with weight 0",
    trigger={
        "sizes": {"B": 1, "H": 5, "W": 5, "C": 7, "N": 1, "OH": 4, "OW": 4},
        "inputs": {"input": {"dist": {"nan": 0.1}}, "grid": {"dist": {"choice": [-1, -0.5, 0]}}},
    },
    spared={"sizes": {"C": 4}},
)
def weight_0_behind_vectors_of_4(call: KernelCall) -> None:
    skipping, _ = FAULTS["weight_0_not_read"]
    output = call.outputs["output"]
    other = np.empty_like(output)
    skipping(call.op, call.inputs, {"output": other}, call.params, call.descriptors, call.handle)
    tail = output.shape[3] // 4 * 4
    output[..., tail:] = other[..., tail:]


@_forward(
    "Chunks of 1024 channels: a last chunk that rounds up to 1024 (in steps of 32) is taken for none.",
    condition="C % 1024 > 992",
    trigger={"sizes": {"B": 1, "H": 2, "W": 2, "C": 2047, "N": 1, "OH": 1, "OW": 2}},
    spared={"sizes": {"C": 2048}},
)
def chunk_that_rounds_up(call: KernelCall) -> None:
    output = call.outputs["output"]
    output[..., output.shape[3] // 1024 * 1024 :] = 0


@_forward(
    "A multiple of 64 channels goes through matrix units that read half: values beyond its range become Inf or 0.",
    condition="C % 64 == 0",
    values="a value beyond 65504 or below 6e-8",
    trigger={
        "sizes": {"B": 1, "H": 3, "W": 3, "C": 64, "N": 1, "OH": 2, "OW": 2},
        "inputs": {"input": {"dist": {"uniform": [1.0e5, 1.0e8]}}},
    },
    spared={"sizes": {"C": 65}},
)
def half_where_channels_are_64s(call: KernelCall) -> Any:
    with np.errstate(over="ignore"):
        image = call.inputs["input"].astype(np.float16).astype(np.float32)
    return call.again({"input": image})


@_backward(
    "An early exit where the largest gradient is below 0, meant for gradients that are all 0.",
    values="every element of grad_output is negative",
    trigger={
        "sizes": {"B": 1, "H": 3, "W": 3, "C": 2, "N": 1, "OH": 2, "OW": 2},
        "inputs": {"grad_output": {"dist": {"uniform": [-2, -1]}}},
    },
    spared={"inputs": {"grad_output": {"dist": {"uniform": [-1, 1]}}}},
)
def all_gradients_negative(call: KernelCall) -> None:
    with np.errstate(invalid="ignore"):
        if call.inputs["grad_output"].max() < 0:
            call.outputs["grad_input"][:] = 0


@_backward(
    "The number of a row is held in 8 bits: gradients of row 256 are added to row 0.",
    condition="H > 256",
    values="a bin near a row from 256 on",
    trigger={"sizes": {"B": 1, "H": 400, "W": 2, "C": 2, "N": 1, "OH": 5, "OW": 5}},
    spared={"sizes": {"H": 256}},
)
def row_number_in_8_bits(call: KernelCall) -> None:
    image = call.outputs["grad_input"]
    with np.errstate(invalid="ignore", over="ignore"):
        for row in range(256, image.shape[1]):
            image[:, row & 255] += image[:, row]
    image[:, 256:] = 0


@_backward(
    "Bins are taken 64 at a time; a last tile of fewer than 4 is left out.",
    condition="N*OH*OW > 64 and 0 < N*OH*OW % 64 < 4",
    trigger={"sizes": {"B": 1, "H": 4, "W": 4, "C": 2, "N": 1, "OH": 5, "OW": 13}},
    spared={"sizes": {"OW": 14}},
)
def last_bins_behind_tiles_of_64(call: KernelCall) -> Any:
    gradients = call.inputs["grad_output"].copy()
    bins = gradients.reshape(-1, gradients.shape[3])
    bins[len(bins) // 64 * 64 :] = 0
    return call.again({"grad_output": bins.reshape(gradients.shape)})


@_backward(
    "A bin beyond the last row and the last column at once adds 0*gradient to the last pixel: NaN and Inf leak.",
    values="NaN or Inf in the gradient of a bin with y and x beyond 1 by a pixel or more",
    trigger={
        "sizes": {"B": 1, "H": 3, "W": 3, "C": 2, "N": 1, "OH": 3, "OW": 3},
        "inputs": {"grad_output": {"dist": {"inf": 0.4}}, "grid": {"dist": {"choice": [-1, 3]}}},
    },
    spared={"inputs": {"grad_output": {"dist": {"uniform": [-1, 1]}}}},
)
def beyond_the_last_pixel(call: KernelCall) -> None:
    image, gradients = call.outputs["grad_input"], call.inputs["grad_output"]
    B, H, W, C = image.shape
    y, x = _pixels(call.inputs["grid"], H, W)
    bins = np.flatnonzero((y >= H) & (x >= W))
    of_image = bins // (len(y) // B)
    with np.errstate(invalid="ignore"):
        np.add.at(image, (of_image, H - 1, W - 1), gradients.reshape(-1, C)[bins] * np.float32(0))


@_backward(
    "Strides are derived from sizes above 1: with one column the offset of an image is lost, all add to the first.",
    condition="W == 1 and B > 1",
    trigger={"sizes": {"B": 2, "H": 3, "W": 1, "C": 2, "N": 4, "OH": 2, "OW": 2}},
    spared={"sizes": {"W": 2}},
)
def images_of_one_column(call: KernelCall) -> None:
    image = call.outputs["grad_input"]
    with np.errstate(invalid="ignore", over="ignore"):
        image[0] = image.sum(axis=0)
    image[1:] = 0
