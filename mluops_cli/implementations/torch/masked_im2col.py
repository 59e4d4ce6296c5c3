"""masked_im2col_forward in PyTorch: one gather of all taps of all masks (mmcv masked_im2col)."""

from __future__ import annotations

import torch

from mluops_cli.implementations.preconditions import masked_im2col as checks
from mluops_cli.implementations.preconditions.base import Params
from mluops_cli.implementations.torch.base import Shapes, Torches, TorchKernel


class MaskedIm2colForward(TorchKernel, checks.MaskedIm2colForward):
    """data_col[(c, i, j), m] = feature[c, mask_h_idx[m] - pad_h + i, mask_w_idx[m] - pad_w + j], 0 outside."""

    def compute(self, inputs: Torches, params: Params, shapes: Shapes) -> dict[str, torch.Tensor]:
        """The taps' places by broadcasting over [kernel_h, kernel_w, M], clamped to be read, then masked."""
        feature = inputs["feature"][0]
        C, H, W = feature.shape
        kernel_h, kernel_w = params["kernel_h"], params["kernel_w"]
        y = inputs["mask_h_idx"].long() - params["pad_h"] + torch.arange(kernel_h)[:, None, None]
        x = inputs["mask_w_idx"].long() - params["pad_w"] + torch.arange(kernel_w)[:, None]
        inside = (y >= 0) & (y < H) & (x >= 0) & (x < W)
        columns = feature[:, y.clamp(0, H - 1), x.clamp(0, W - 1)]
        columns.masked_fill_(~inside, 0)
        return {"data_col": columns.reshape(C * kernel_h * kernel_w, -1)}


KERNELS = {"masked_im2col_forward": MaskedIm2colForward}
