"""The preconditions of voxel_pooling_forward."""

from __future__ import annotations

from typing import Final

from mluops_cli.implementations.preconditions.base import CheckedOperator, Descriptors, Params, expect, require
from schemas.status import BAD_PARAM

SIZES: Final = ("batch_size", "num_points", "num_channels", "num_voxel_x", "num_voxel_y", "num_voxel_z")


class VoxelPoolingForward(CheckedOperator):
    """Points and their features to voxel columns."""

    inputs, outputs = ("geom_xyz", "input_features"), ("output_features", "pos_memo")
    on_empty = BAD_PARAM

    def check(self, described: Descriptors, params: Params) -> None:
        """Refuse, with BAD_PARAM, what section 1.4 excludes."""
        B, N, C, X, Y, Z = (params[name] for name in SIZES)
        require(min(B, N, C, X, Y, Z) > 0)
        expect(described["geom_xyz"], "int32", (B, N, 3))
        expect(described["input_features"], "float", (B, N, C))
        expect(described["output_features"], "float", (B, Y, X, C))
        expect(described["pos_memo"], "int32", (B, N, 3))
