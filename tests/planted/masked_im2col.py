"""masked_im2col with planted faults: `--impl python:tests/planted/masked_im2col.py:NAME`."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from mluops_cli.search.faulty_kernels.masked_im2col import right
from tests.planted.planted_fault import KernelCall, planted

_planted = partial(planted, "masked_im2col_forward", right)
_INSIDE = {
    "mask_h_idx": {"dist": {"integers": [0, "H - 1"]}},
    "mask_w_idx": {"dist": {"integers": [0, "W - 1"]}},
}


@_planted(
    "Masks are taken 48 at a time; a last tile of a single mask is never stored, its column holds 0.",
    condition="M > 48 and M % 48 == 1",
    trigger={"sizes": {"C": 2, "H": 5, "W": 6, "M": 97}, "inputs": _INSIDE},
    spared={"sizes": {"M": 98}},
)
def single_mask_behind_tiles_of_48(call: KernelCall) -> None:
    call.outputs["data_col"][:, -1] = 0


@_planted(
    "The path for half keeps pad_h in an unsigned variable and takes a negative one as 0.",
    condition="half and pad_h < 0",
    trigger={
        "sizes": {"C": 2, "H": 6, "W": 5, "M": 20},
        "params": {"kernel_h": 2, "kernel_w": 2, "pad_h": -1, "pad_w": 0},
        "inputs": {"feature": {"dtype": "half"}},
    },
    spared={"inputs": {"feature": {"dtype": "float"}}},
)
def negative_pad_of_half(call: KernelCall) -> Any:
    return call.again(pad_h=0)


@_planted(
    "Pairs of half values are moved by an addition to 0, which turns -0 into 0; odd rows are moved one by one.",
    condition="half and W % 2 == 0",
    values="-0 in the feature",
    trigger={
        "sizes": {"C": 2, "H": 3, "W": 4, "M": 10},
        "inputs": {**_INSIDE, "feature": {"dtype": "half", "dist": {"special": [-0.0], "special_share": 0.3}}},
    },
    spared={"sizes": {"W": 5}},
)
def minus_zero_in_pairs_of_half(call: KernelCall) -> None:
    with np.errstate(invalid="ignore"):
        call.outputs["data_col"] += np.float16(0)


@_planted(
    "A kernel of exactly the feature's size is taken for one copy of the whole feature, wherever the mask points.",
    condition="kernel_h == H and kernel_w == W",
    values="a mask whose window is not the feature",
    trigger={
        "sizes": {"C": 2, "H": 3, "W": 2, "M": 5},
        "params": {"kernel_h": 3, "kernel_w": 2, "pad_h": 1, "pad_w": 0},
        "inputs": _INSIDE,
    },
    spared={"params": {"kernel_h": 2}},
)
def kernel_of_the_feature_size(call: KernelCall) -> None:
    call.outputs["data_col"][:] = call.inputs["feature"].reshape(-1, 1)


@_planted(
    "A window that passes the left and the right border at once is cut on the left only: it reads on into later rows.",
    condition="kernel_w > W + 1 and W > 1",
    values="a mask whose window begins left of the feature and ends right of it",
    trigger={
        "sizes": {"C": 2, "H": 4, "W": 2, "M": 12},
        "params": {"kernel_h": 1, "kernel_w": 5, "pad_h": 0, "pad_w": 2},
        "inputs": _INSIDE,
    },
    spared={"params": {"kernel_w": 3}},
)
def window_over_left_and_right(call: KernelCall) -> None:
    C, H, W = call.inputs["feature"].shape[1:]
    kernel_h, kernel_w = call.params["kernel_h"], call.params["kernel_w"]
    y = call.inputs["mask_h_idx"].astype(np.int64) - call.params["pad_h"] + np.arange(kernel_h)[:, None, None]
    left = call.inputs["mask_w_idx"].astype(np.int64) - call.params["pad_w"]
    x = left + np.arange(kernel_w)[:, None]
    over = (left < 0) & (left + kernel_w > W)
    read = over & (x >= W) & (y >= 0) & (y < H) & (y * W + x < H * W)  # kernel_h, kernel_w, M
    i, j, m = np.nonzero(read)
    column = call.outputs["data_col"].reshape(C, kernel_h, kernel_w, -1)
    column[:, i, j, m] = call.inputs["feature"].reshape(C, -1)[:, (y * W + x)[i, j, m]]


@_planted(
    "Blocks of 1024 channels; the stride between kernel rows of an odd last block is rounded, so the last channel"
    " repeats its first kernel row.",
    condition="C > 1024 and C % 2 == 1 and kernel_h > 1",
    trigger={
        "sizes": {"C": 1027, "H": 3, "W": 2, "M": 4},
        "params": {"kernel_h": 2, "kernel_w": 1, "pad_h": 1, "pad_w": 0},
        "inputs": _INSIDE,
    },
    spared={"params": {"kernel_h": 1}},
)
def odd_channels_beyond_1024(call: KernelCall) -> None:
    kernel_h, kernel_w = call.params["kernel_h"], call.params["kernel_w"]
    last = call.outputs["data_col"][-kernel_h * kernel_w :].reshape(kernel_h, -1)
    last[1:] = last[0]
