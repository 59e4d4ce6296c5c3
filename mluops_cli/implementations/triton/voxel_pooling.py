"""voxel_pooling_forward in Triton: a tile is some points times some channels, added to their cells in float32."""

from __future__ import annotations

import triton
import triton.language as tl

from mluops_cli.implementations.preconditions import voxel_pooling as checks
from mluops_cli.implementations.preconditions.base import Params, Result, Tensors
from mluops_cli.implementations.preconditions.voxel_pooling import SIZES
from mluops_cli.implementations.triton.tiles import power_of_two, width
from schemas.status import SUCCESS

_TILE = 2048  # elements
_CHANNELS = 128  # of a tile, at most


@triton.jit
def _pool(
    points, features, sums, memo, count, N, C, X, Y, Z, POINTS: tl.constexpr, CHANNELS: tl.constexpr
):  # fmt: skip
    """Features of points outside are not read; the rows of pos_memo of these points keep what the caller set."""
    blocks = tl.cdiv(C, CHANNELS)
    block = tl.program_id(0) % blocks
    point = (tl.program_id(0) // blocks) * POINTS + tl.arange(0, POINTS)
    channel = block * CHANNELS + tl.arange(0, CHANNELS)[None, :]
    held = point < count
    x = tl.load(points + point * 3, mask=held, other=-1)
    y = tl.load(points + point * 3 + 1, mask=held, other=-1)
    z = tl.load(points + point * 3 + 2, mask=held, other=-1)
    inside = held & (x >= 0) & (x < X) & (y >= 0) & (y < Y) & (z >= 0) & (z < Z)
    batch = point // N
    if block == 0:
        tl.store(memo + point * 3, batch, mask=inside)
        tl.store(memo + point * 3 + 1, y, mask=inside)
        tl.store(memo + point * 3 + 2, x, mask=inside)
    cell = tl.where(inside, (batch * Y + y) * X + x, 0).to(tl.int64)[:, None]
    added = inside[:, None] & (channel < C)
    value = tl.load(features + point.to(tl.int64)[:, None] * C + channel, mask=added, other=0)
    tl.atomic_add(sums + cell * C + channel, value, mask=added, sem="relaxed")


class VoxelPoolingForward(checks.VoxelPoolingForward):
    """One pass over the points, after the sums are set to 0. All z share one cell."""

    def run(self, tensors: Tensors, params: Params) -> Result:
        """Add the features of the points inside to their cells."""
        B, N, C, X, Y, Z = (params[name] for name in SIZES)
        sums = tensors["output_features"]
        sums[...] = 0
        channels = width(C, _CHANNELS)
        points = power_of_two(B * N, _TILE // channels)
        grid = (triton.cdiv(B * N, points) * triton.cdiv(C, channels),)
        given = tensors["geom_xyz"], tensors["input_features"], sums, tensors["pos_memo"]
        _pool[grid](*given, B * N, N, C, X, Y, Z, points, channels)
        return SUCCESS
