"""psamask with planted faults: `--impl python:tests/planted/psamask.py:NAME`."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from mluops_cli.search.faulty_kernels.psamask import right
from tests.planted.planted_fault import Array, KernelCall, planted

_forward = partial(planted, "psamask_forward", right)
_backward = partial(planted, "psamask_backward", right)
_TINY = np.finfo(np.float32).tiny


def _reached(call: KernelCall, shape: tuple[int, ...]) -> Array:
    """Which mask cells lie over the feature: [H, W, h_mask*w_mask]."""
    H, W = shape[1:3]
    over = []
    for size, mask in ((H, call.params["h_mask"]), (W, call.params["w_mask"])):
        at = np.arange(size)[:, None] + np.arange(mask) - (mask - 1) // 2
        over.append((at >= 0) & (at < size))
    both: Array = over[0][:, None, :, None] & over[1][None, :, None, :]
    return both.reshape(H, W, -1)


@_forward(
    "With both mask sizes even, images from the third on get the output of the image before them.",
    condition="N >= 3 and h_mask % 2 == 0 and w_mask % 2 == 0",
    trigger={"sizes": {"N": 3, "H": 2, "W": 3}, "params": {"psa_type": 0, "h_mask": 2, "w_mask": 2}},
    spared={"params": {"w_mask": 3}},
)
def third_image_of_even_masks(call: KernelCall) -> None:
    y = call.outputs["y"]
    y[2:] = y[1:-1].copy()


@_forward(
    "Rows over 8 cores: where 3 are left over and columns go in pairs, the last core takes one row too few.",
    condition="H > 8 and H % 8 == 3 and W % 2 == 0",
    trigger={"sizes": {"N": 1, "H": 11, "W": 2}, "params": {"psa_type": 1, "h_mask": 3, "w_mask": 3}},
    spared={"sizes": {"W": 3}},
)
def three_rows_left_over_by_8_cores(call: KernelCall) -> None:
    call.outputs["y"][:, -1] = 0


@_forward(
    "The number of a mask cell is held in 16 bits, signed: cells from 32768 on are not read.",
    # The number of the last cell that lies over the feature is beyond 32767.
    condition="min((h_mask - 1)//2 + H, h_mask)*w_mask - w_mask + min((w_mask - 1)//2 + W, w_mask) > 32768",
    trigger={"sizes": {"N": 1, "H": 2, "W": 2}, "params": {"psa_type": 0, "h_mask": 257, "w_mask": 257}},
    spared={"params": {"h_mask": 129}},
)
def mask_cells_in_16_bits(call: KernelCall) -> Any:
    x = call.inputs["x"].copy()
    x[..., 32768:] = 0
    return call.again({"x": x})


@_forward(
    "A mask of as many cells as the feature has gives tensors of one shape; they are taken for the same: y = x.",
    condition="h_mask*w_mask == H*W and H*W > 1",
    trigger={"sizes": {"N": 1, "H": 2, "W": 3}, "params": {"psa_type": 0, "h_mask": 3, "w_mask": 2}},
    spared={"params": {"w_mask": 3}},
)
def mask_as_large_as_the_feature(call: KernelCall) -> None:
    call.outputs["y"][:] = call.inputs["x"]


@_forward(
    "Rows of a multiple of 4 columns go through vector arithmetic that flushes subnormal values to 0.",
    condition="W % 4 == 0",
    values="a subnormal value in x",
    trigger={
        "sizes": {"N": 1, "H": 2, "W": 4},
        "params": {"psa_type": 0, "h_mask": 3, "w_mask": 3},
        "inputs": {"x": {"dist": {"special": ["subnormal"], "special_share": 0.3}}},
    },
    spared={"sizes": {"W": 5}},
)
def subnormals_in_vectors_of_4(call: KernelCall) -> None:
    y = call.outputs["y"]
    np.copyto(y, np.copysign(np.float32(0), y), where=np.abs(y) < _TINY)


@_backward(
    "A mask of exactly twice the feature is believed to reach every cell: the buffer of one position is not zeroed, and"
    " unreached cells keep what the position before has left there.",
    condition="psa_type == 0 and h_mask == 2*H and w_mask == 2*W and N*H*W > 1",
    trigger={"sizes": {"N": 1, "H": 2, "W": 2}, "params": {"psa_type": 0, "h_mask": 4, "w_mask": 4}},
    spared={"params": {"psa_type": 1}},
)
def mask_of_twice_the_feature(call: KernelCall) -> None:
    dx = call.outputs["dx"]
    rows = dx.reshape(-1, dx.shape[3])
    reached = np.tile(_reached(call, dx.shape).reshape(-1, dx.shape[3]), (dx.shape[0], 1))
    for position in range(1, len(rows)):
        np.copyto(rows[position], rows[position - 1], where=~reached[position])


@_backward(
    "DISTRIBUTE transposes tiles of 48 positions; a last tile shorter than a vector of 4 is left out.",
    condition="psa_type == 1 and H*W > 48 and 0 < H*W % 48 < 4",
    trigger={"sizes": {"N": 1, "H": 5, "W": 10}, "params": {"psa_type": 1, "h_mask": 3, "w_mask": 3}},
    spared={"sizes": {"W": 11}},
)
def tail_of_the_transpose(call: KernelCall) -> None:
    N, H, W, cells = call.outputs["dx"].shape
    call.outputs["dx"].reshape(N, H * W, cells)[:, H * W // 48 * 48 :] = 0


@_backward(
    "The number of an image is held in 8 bits: image 256 gets the gradient of image 0.",
    condition="N > 256",
    trigger={"sizes": {"N": 257, "H": 1, "W": 2}, "params": {"psa_type": 0, "h_mask": 1, "w_mask": 1}},
    spared={"sizes": {"N": 256}},
)
def image_number_in_8_bits(call: KernelCall) -> None:
    dx = call.outputs["dx"]
    dx[:] = dx[np.arange(len(dx)) & 255]


@_backward(
    "With a mask wider than two features, unreached cells are filled with dy - dy, which is NaN for NaN and Inf.",
    condition="w_mask > 2*W",
    values="NaN or Inf in dy at channel 0",
    trigger={
        "sizes": {"N": 1, "H": 2, "W": 2},
        "params": {"psa_type": 0, "h_mask": 3, "w_mask": 5},
        "inputs": {"dy": {"dist": {"inf": 0.7}}},
    },
    spared={"params": {"w_mask": 4}},
)
def fill_made_of_the_gradient(call: KernelCall) -> None:
    dx, dy = call.outputs["dx"], call.inputs["dy"]
    with np.errstate(invalid="ignore"):
        fill = dy[..., :1] - dy[..., :1]
    np.copyto(dx, fill, where=~_reached(call, dx.shape))


@_backward(
    "COLLECT keeps one row of dy in shared memory, which holds 1536 positions: what lies behind counts as 0.",
    condition="psa_type == 0 and H*W > 1536",
    trigger={"sizes": {"N": 1, "H": 1, "W": 1540}, "params": {"psa_type": 0, "h_mask": 1, "w_mask": 3}},
    spared={"params": {"psa_type": 1}},
)
def positions_beyond_1536(call: KernelCall) -> Any:
    dy = call.inputs["dy"].copy()
    dy[..., 1536:] = 0
    return call.again({"dy": dy})
