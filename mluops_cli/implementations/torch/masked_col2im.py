"""masked_col2im_forward in PyTorch: one scatter of all masks (mmcv masked_col2im)."""

from __future__ import annotations

import torch

from mluops_cli.implementations.preconditions import masked_col2im as checks
from mluops_cli.implementations.preconditions.base import Params
from mluops_cli.implementations.torch.base import Shapes, Torches, TorchKernel


class MaskedCol2imForward(TorchKernel, checks.MaskedCol2imForward):
    """im[0, c, mask_h_idx[m], mask_w_idx[m]] = col[c, m], 0 elsewhere."""

    def compute(self, inputs: Torches, params: Params, shapes: Shapes) -> dict[str, torch.Tensor]:
        """Positions differ, so no write meets another."""
        col = inputs["col"]
        _, C, H, W = shapes["im"]
        image = torch.zeros(C, H * W, dtype=col.dtype)
        image[:, inputs["mask_h_idx"].long() * W + inputs["mask_w_idx"].long()] = col
        return {"im": image.reshape(1, C, H, W)}


KERNELS = {"masked_col2im_forward": MaskedCol2imForward}
