"""voxel_pooling_forward in PyTorch: the features of the points inside, added up by cell (BEVDepth)."""

from __future__ import annotations

import torch

from mluops_cli.implementations.preconditions import voxel_pooling as checks
from mluops_cli.implementations.preconditions.base import Params
from mluops_cli.implementations.preconditions.voxel_pooling import SIZES
from mluops_cli.implementations.torch.base import Shapes, Torches, TorchKernel


class VoxelPoolingForward(TorchKernel, checks.VoxelPoolingForward):
    """output_features[b, y, x] is the sum over all points of batch b in that column; pos_memo their places."""

    def compute(self, inputs: Torches, params: Params, shapes: Shapes) -> dict[str, torch.Tensor]:
        """All z share one cell."""
        B, N, C, X, Y, Z = (params[name] for name in SIZES)
        points = inputs["geom_xyz"]
        inside = ((points >= 0) & (points < torch.tensor([X, Y, Z], dtype=points.dtype))).all(dim=2)
        batch, x, y = torch.arange(B)[:, None].expand(B, N), points[..., 0], points[..., 1]
        place = torch.stack([batch, y, x], dim=2).to(points.dtype)
        pos_memo = place.masked_fill(~inside[..., None], -1)
        cell = ((batch * Y + y) * X + x)[inside]
        sums = torch.zeros(B * Y * X, C).index_add_(0, cell, inputs["input_features"][inside])
        return {"output_features": sums.reshape(B, Y, X, C), "pos_memo": pos_memo}


KERNELS = {"voxel_pooling_forward": VoxelPoolingForward}
