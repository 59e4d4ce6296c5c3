"""get_indice_pairs with planted faults: `--impl python:tests/planted/get_indice_pairs.py:NAME`."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from mluops_cli.search.faulty_kernels.get_indice_pairs import right
from tests.planted.planted_fault import KernelCall, planted

_planted = partial(planted, "get_indice_pairs", right)
_ONES = [1, 1, 1]


def _params(batch: int, space: list[int], kernel: list[int], **others: Any) -> dict[str, Any]:
    axes = {"stride": _ONES, "dilation": _ONES, "pad": [0, 0, 0]}
    return {"batch": batch, "input_space": space, "filter_space": kernel, **axes, **others}


@_planted(
    "Dilations are taken for equal where the first two are: the third axis gets the dilation of the first.",
    condition="dilation[0] == dilation[1] and dilation[1] != dilation[2] and filter_space[2] > 1",
    trigger={"sizes": {"L": 30}, "params": _params(1, [3, 5, 8], [2, 2, 3], dilation=[1, 1, 2])},
    spared={"params": {"dilation": [2, 1, 2]}},
)
def dilation_of_the_first_two_axes(call: KernelCall) -> Any:
    return call.again(dilation=[call.params["dilation"][0]] * 3)


@_planted(
    "Every site is believed to reach an output: in the gaps of a stride beyond the kernel the depth is rounded down.",
    condition="not sub_m and stride[0] > filter_space[0]",
    values="a site in a gap",
    trigger={"sizes": {"L": 15}, "params": _params(1, [7, 2, 3], [2, 1, 1], stride=[3, 1, 1])},
    spared={"params": {"filter_space": [3, 1, 1]}},
)
def gaps_of_a_stride_beyond_the_kernel(call: KernelCall) -> Any:
    stride, last = call.params["stride"][0], call.params["filter_space"][0] - 1
    indices = call.inputs["indices"].copy()
    beyond = (indices[:, 1] + call.params["pad"][0]) % stride - last
    indices[:, 1] -= np.maximum(beyond, 0).astype(np.int32)
    return call.again({"indices": indices})


@_planted(
    "One thread per kernel offset, 256 at most; the loop over later offsets looks at the first two sites alone.",
    condition="prod(filter_space) > 256 and L > 2",
    trigger={"sizes": {"L": 20}, "params": _params(1, [1, 18, 19], [1, 17, 17], pad=[0, 8, 8])},
    spared={"params": {"filter_space": [1, 16, 16]}},
)
def offsets_beyond_256(call: KernelCall) -> None:
    pairs, num = call.outputs["indice_pairs"], call.outputs["indice_num"]
    for k in range(256, len(num)):
        num[k] = np.count_nonzero(pairs[k, 0, : num[k]] < 2)


@_planted(
    "subm derives the pad of an even kernel width from the kernel (width // 2) and doesn't read the given one.",
    condition="sub_m and filter_space[2] % 2 == 0 and pad[2] != filter_space[2]//2",
    trigger={"sizes": {"L": 10}, "params": _params(1, [1, 3, 5], [1, 1, 2], sub_m=1)},
    spared={"params": {"pad": [0, 0, 1]}},
)
def pad_of_even_kernels_of_subm(call: KernelCall) -> Any:
    width = call.params["filter_space"][2]
    return call.again(pad=[*call.params["pad"][:2], width // 2])


@_planted(
    "subm keeps the number of a site in 16 bits: output row 65536 becomes row 0.",
    condition="sub_m and L > 65536",
    trigger={"sizes": {"L": 65540}, "params": _params(1, [1, 260, 261], [1, 1, 1], sub_m=1)},
    spared={"sizes": {"L": 65536}},
)
def site_number_of_subm_in_16_bits(call: KernelCall) -> None:
    pairs, num = call.outputs["indice_pairs"], call.outputs["indice_num"]
    for k in range(len(num)):
        pairs[k, 1, : num[k]] &= 0xFFFF


@_planted(
    "Small spaces find the column of a cell by a multiplication with the float32 reciprocal of the width.",
    condition="not sub_m and batch*prod(output_space) < 4096",
    values="a cell whose quotient rounds below the whole number: column 0 of some row, with a width such as 41",
    trigger={"sizes": {"L": 300}, "params": _params(1, [1, 12, 41], [1, 1, 1])},
    spared={"params": {"input_space": [1, 12, 32]}},
)
def column_by_a_reciprocal(call: KernelCall) -> None:
    D, H, W = call.params["output_space"]
    rows = call.outputs["out_indices"]
    n, d, h, w = rows.astype(np.int64).T
    cell = ((n * D + d) * H + h) * W + w
    line = (cell.astype(np.float32) * (np.float32(1) / np.float32(W))).astype(np.int64)
    rows[:, 3] = cell - line * W
