"""voxel_pooling_forward on the device; source: design document voxel_pooling_forward, sections 3.1 to 3.4."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mluops_cli.implementations.base import Array
from mluops_cli.implementations.preconditions import voxel_pooling as checks
from mluops_cli.implementations.preconditions.base import Params, Tensors
from mluops_cli.implementations.preconditions.voxel_pooling import SIZES
from mluops_cli.implementations.tiled.base import Kernel
from mluops_cli.implementations.tiled.onchip import (
    arrival_order,
    atomic_add,
    shaped,
    shuffled,
    span,
    split,
    tiles,
)
from schemas.status import SUCCESS

_PARTS: Final = 9  # of the memory: 3 for the points, 3 for their transpose, 3 for masks and offsets (3.1, step 0)


class VoxelPoolingForward(Kernel, checks.VoxelPoolingForward):
    """Points are loaded as many at a time as 9 parts allow; 6 of these then hold the features of points inside."""

    def run(self, tensors: Tensors, params: Params) -> str:
        """Zero the output; per load: which points are inside, their pos_memo, and the sums of their features."""
        B, N, C, *_ = (params[name] for name in SIZES)
        points, memo = tensors["geom_xyz"].reshape(B * N, 3), tensors["pos_memo"].reshape(B * N, 3)
        features, pooled = tensors["input_features"].reshape(B * N, C), tensors["output_features"].reshape(-1, C)
        limit = max(1, self.machine.nram // points.itemsize // _PARTS)
        chip = self.machine.core()
        memory = chip.alloc(_PARTS * limit, points.dtype)
        channels_memory = memory[: 6 * limit].view(features.dtype)
        order = arrival_order()
        pooled[...] = 0
        cores = split(range(B * N), self.machine.tasks)
        for load in shuffled([load for core in cores for load in tiles(core, limit)], order):
            inside, cells = _locate(points, memo, load, memory, params)
            _pool(features, inside, cells, pooled, channels_memory, order)
        return SUCCESS


def _locate(points: Array, memo: Array, load: range, memory: Array, params: Params) -> tuple[Array, Array]:
    """Write pos_memo of the loaded points; which points are inside, and the output cell of each of these."""
    count = len(load)
    loaded, turned, scratch = (memory[part * 3 * (memory.size // _PARTS) :] for part in range(3))
    shaped(loaded, count, 3)[...] = points[span(load)]
    xyz = shaped(turned, 3, count)
    xyz[...] = shaped(loaded, count, 3).T
    mask, other, offset = shaped(scratch, 3, count)
    _inside(xyz, params, mask, other)

    # value*mask - (1-mask): batch, y, x of a point inside, -1 of the others (steps 4 and 5)
    batch, y, x = result = shaped(loaded, 3, count)
    np.floor_divide(np.arange(load.start, load.stop, dtype=batch.dtype), params["num_points"], out=batch)
    y[...], x[...] = xyz[1], xyz[0]
    np.subtract(1, mask, out=other)
    result *= mask
    result -= other
    stored = shaped(turned, count, 3)
    stored[...] = result.T
    memo[span(load)] = stored

    # Step 6.1, in cells rather than elements; for points outside it may overflow and is not used.
    np.multiply(batch, params["num_voxel_y"], out=offset)
    offset += y
    offset *= params["num_voxel_x"]
    offset += x
    inside = np.flatnonzero(mask)
    return inside + load.start, offset[inside]


def _inside(xyz: Array, params: Params, mask: Array, other: Array) -> None:
    """mask = 1 where 0 <= x < X, 0 <= y < Y and 0 <= z < Z, else 0 (steps 2 and 3)."""
    mask[...] = 1
    for values, bound in zip(xyz, ("num_voxel_x", "num_voxel_y", "num_voxel_z"), strict=True):
        np.greater_equal(values, 0, out=other)
        mask &= other
        np.less(values, params[bound], out=other)
        mask &= other


def _pool(features: Array, inside: Array, cells: Array, pooled: Array, memory: Array, order: Any) -> None:
    """Add the features of the points inside to their cells, in as many points or channels as the memory holds (6.2)."""
    C = features.shape[1]
    for group in tiles(range(inside.size), max(1, memory.size // C)):
        for channels in tiles(range(C), memory.size):
            values = shaped(memory, len(group), len(channels))
            if len(channels) == C:
                np.take(features, inside[span(group)], axis=0, out=values, mode="clip")
            else:
                values[...] = features[inside[span(group)], span(channels)]
            atomic_add(pooled[:, span(channels)], cells[span(group)], values, order)


KERNELS = {"voxel_pooling_forward": VoxelPoolingForward}
