"""psamask_forward and psamask_backward in PyTorch: one gather over positions and cells (mmcv psa_mask)."""

from __future__ import annotations

import torch

from mluops_cli.implementations.preconditions import psamask as checks
from mluops_cli.implementations.preconditions.base import Params
from mluops_cli.implementations.preconditions.psamask import DISTRIBUTE
from mluops_cli.implementations.torch.base import Shapes, Torches, TorchKernel


class PsamaskForward(TorchKernel, checks.PsamaskForward):
    """Feature cell (i, j) of position (h, w) is mask cell (i - h + hh, j - w + hw), 0 where there is none."""

    def compute(self, inputs: Torches, params: Params, shapes: Shapes) -> dict[str, torch.Tensor]:
        """Gather mask cells; DISTRIBUTE exchanges positions and feature cells."""
        N, H, W, _ = inputs["x"].shape
        h_mask, w_mask = params["h_mask"], params["w_mask"]
        mask = inputs["x"].reshape(N, H, W, h_mask, w_mask)
        cells = _shifted(mask, H, (h_mask - 1) // 2, W, (w_mask - 1) // 2)
        return {"y": _exchanged(cells, params).reshape(N, H, W, H * W)}


class PsamaskBackward(TorchKernel, checks.PsamaskBackward):
    """Mask cell (p, q) of position (h, w) is feature cell (p + h - hh, q + w - hw), 0 where there is none."""

    def compute(self, inputs: Torches, params: Params, shapes: Shapes) -> dict[str, torch.Tensor]:
        """Gather feature cells; DISTRIBUTE exchanges them with the positions first."""
        N, H, W, _ = inputs["dy"].shape
        h_mask, w_mask = params["h_mask"], params["w_mask"]
        cells = _exchanged(inputs["dy"].reshape(N, H, W, H, W), params)
        mask = _shifted(cells, h_mask, (h_mask - 1) // 2, w_mask, (w_mask - 1) // 2, backward=True)
        return {"dx": mask.reshape(N, H, W, h_mask * w_mask)}


def _shifted(
    source: torch.Tensor, height: int, hh: int, width: int, hw: int, *, backward: bool = False
) -> torch.Tensor:
    """target [N, H, W, height, width] with target[n, h, w, a, b] = source[n, h, w, a - h + hh, b - w + hw], 0 outside.

    Backward: source[n, h, w, a + h - hh, b + w - hw].
    """
    _, H, W, rows, columns = source.shape
    sign = -1 if backward else 1
    h, w = torch.arange(H)[:, None, None, None], torch.arange(W)[:, None, None]
    row = torch.arange(height)[:, None] - sign * (h - hh)
    column = torch.arange(width) - sign * (w - hw)
    inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
    target = source[:, h, w, row.clamp(0, rows - 1), column.clamp(0, columns - 1)]
    return target.masked_fill_(~inside, 0)


def _exchanged(cells: torch.Tensor, params: Params) -> torch.Tensor:
    """DISTRIBUTE: [n, h, w, i, j] as [n, i, j, h, w], which is its own inverse."""
    return cells.permute(0, 3, 4, 1, 2) if params["psa_type"] == DISTRIBUTE else cells


KERNELS = {"psamask_forward": PsamaskForward, "psamask_backward": PsamaskBackward}
