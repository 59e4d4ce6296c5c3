"""voxel_pooling with planted faults: `--impl python:tests/planted/voxel_pooling.py:NAME`."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from mluops_cli.search.faulty_kernels.voxel_pooling import right
from tests.planted.planted_fault import Array, KernelCall, planted

_planted = partial(planted, "voxel_pooling_forward", right)


def _params(B: int, N: int, C: int, X: int, Y: int, Z: int) -> dict[str, int]:
    return {
        "batch_size": B, "num_points": N, "num_channels": C, "num_voxel_x": X, "num_voxel_y": Y, "num_voxel_z": Z
    }  # fmt: skip


def _with_points(call: KernelCall, geom_xyz: Array) -> Any:
    call.outputs["pos_memo"][:] = -1
    return call.again({"geom_xyz": geom_xyz})


@_planted(
    "Blocks of 1024 points sum on chip, and a cell of one point is stored without an atomic add: of two points that lie"
    " alone in their cell and in different blocks the last one wins.",
    condition="num_points > 1024",
    values="a cell of exactly two points from different blocks of 1024",
    trigger={"params": _params(1, 1500, 2, 40, 41, 1)},
    spared={"params": {"num_points": 1024}},
)
def two_points_of_different_blocks(call: KernelCall) -> None:
    memo, output = call.outputs["pos_memo"], call.outputs["output_features"]
    X, Y = call.params["num_voxel_x"], call.params["num_voxel_y"]
    b, n = np.nonzero(memo[..., 0] >= 0)
    cell = (b * Y + memo[b, n, 1]) * X + memo[b, n, 2]
    order = np.argsort(cell, kind="stable")
    _, first, count = np.unique(cell[order], return_index=True, return_counts=True)
    first = first[count == 2]
    one, other = order[first], order[first + 1] if len(first) else first
    apart = n[one] // 1024 != n[other] // 1024
    last = other[apart]
    output.reshape(-1, output.shape[3])[cell[last]] = call.inputs["input_features"][b[last], n[last]]


@_planted(
    "One block per point, and a grid of at most 65535 blocks: later points are never looked at.",
    condition="batch_size*num_points > 65535",
    trigger={"params": _params(1, 65540, 1, 4, 4, 1), "inputs": {"geom_xyz": {"dist": {"constant": 0}}}},
    spared={"params": {"num_points": 65535}},
)
def points_beyond_65535(call: KernelCall) -> Any:
    geom = call.inputs["geom_xyz"].copy()
    geom.reshape(-1, 3)[65535:] = -1
    return _with_points(call, geom)


@_planted(
    "z is compared in 8 bits, signed: from 128 on it is negative, and so outside.",
    condition="num_voxel_z > 128",
    values="a point with z from 128 on",
    trigger={"params": _params(1, 20, 2, 3, 4, 250)},
    spared={"params": {"num_voxel_z": 128}},
)
def z_in_8_bits(call: KernelCall) -> Any:
    geom = call.inputs["geom_xyz"].copy()
    geom[..., 2] = geom[..., 2].astype(np.int8)
    return _with_points(call, geom)


@_planted(
    "Points without a feature above or below 0 are skipped to save adds; NaN is neither.",
    values="a point whose features are all NaN, or NaN and 0",
    trigger={"params": _params(1, 20, 1, 3, 4, 1), "inputs": {"input_features": {"dist": {"nan": 0.3}}}},
    spared={"params": {"num_channels": 8}},
)
def points_of_nan_alone(call: KernelCall) -> Any:
    features = call.inputs["input_features"]
    with np.errstate(invalid="ignore"):
        worth_adding = ((features > 0) | (features < 0)).any(axis=-1, keepdims=True)
    return call.again({"input_features": np.where(worth_adding, features, np.float32(0))})


@_planted(
    "The layout of the features is guessed from their shape: as many points as channels are taken for [B, C, N].",
    condition="num_points == num_channels and num_points > 1",
    trigger={"params": _params(1, 3, 3, 2, 2, 1), "inputs": {"geom_xyz": {"dist": {"integers": [0, 1]}}}},
    spared={"params": {"num_channels": 4}},
)
def as_many_channels_as_points(call: KernelCall) -> Any:
    return call.again({"input_features": call.inputs["input_features"].swapaxes(1, 2)})


@_planted(
    "Channels in vectors of 4, then one by one, but never in a pair: two channels behind the vectors are lost.",
    condition="num_channels > 4 and num_channels % 4 == 2",
    trigger={"params": _params(1, 10, 6, 2, 3, 1)},
    spared={"params": {"num_channels": 7}},
)
def two_channels_behind_vectors_of_4(call: KernelCall) -> None:
    call.outputs["output_features"][..., -2:] = 0


@_planted(
    "A tile of 48 points that are all outside ends the loop instead of going on to the next tile.",
    condition="batch_size*num_points > 48",
    values="48 points in a row outside, from a multiple of 48 on, and a point inside behind them",
    trigger={
        "params": _params(1, 60, 2, 40, 40, 40),
        "inputs": {"geom_xyz": {"dist": {"sequence": [-150, 1]}}},
    },
    spared={"inputs": {"geom_xyz": {"dist": {"sequence": [-60, 1]}}}},
)
def tile_of_points_outside(call: KernelCall) -> Any:
    outside = call.outputs["pos_memo"].reshape(-1, 3)[:, 0] < 0
    tiles = outside[: len(outside) // 48 * 48].reshape(-1, 48).all(axis=1)
    if not tiles.any():
        return None
    geom = call.inputs["geom_xyz"].copy()
    geom.reshape(-1, 3)[int(tiles.argmax()) * 48 :] = -1
    return _with_points(call, geom)
