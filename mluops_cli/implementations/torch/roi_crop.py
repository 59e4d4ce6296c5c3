"""roi_crop_forward and roi_crop_backward in PyTorch: the four corners of every bin, one after the other.

torch.nn.functional.grid_sample isn't used: it takes (x, y), and a huge coordinate makes it multiply Inf by 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch

from mluops_cli.implementations.preconditions import roi_crop as checks
from mluops_cli.implementations.preconditions.base import Params
from mluops_cli.implementations.torch.base import Shapes, Torches, TorchKernel


class _Corner(NamedTuple):
    """One of the four pixels around the sampling points, for the bins whose pixel lies inside the image."""

    bins: torch.Tensor  # int64 [n]: number of the bin over all crops
    pixel: torch.Tensor  # int64 [n]: number of the pixel over all images
    weight: torch.Tensor  # float [n, 1]


class RoiCropForward(TorchKernel, checks.RoiCropForward):
    """A bin is the sum of its corners, each times its weight."""

    def compute(self, inputs: Torches, params: Params, shapes: Shapes) -> dict[str, torch.Tensor]:
        """Only corners inside the image are read."""
        images, grid = inputs["input"], inputs["grid"]
        N, OH, OW, _ = grid.shape
        C = images.shape[3]
        pixels = images.reshape(-1, C)
        crops = torch.zeros(N * OH * OW, C)
        for corner in _corners(grid, *images.shape[:3]):
            # A bin occurs at most once per corner, so no addition is lost.
            crops[corner.bins] += corner.weight * pixels[corner.pixel]
        return {"output": crops.reshape(N, OH, OW, C)}


class RoiCropBackward(TorchKernel, checks.RoiCropBackward):
    """A pixel gets what each bin that read it got, times the same weight."""

    def compute(self, inputs: Torches, params: Params, shapes: Shapes) -> dict[str, torch.Tensor]:
        """Several bins may add to one pixel: index_add_ loses none."""
        B, H, W, C = shapes["grad_input"]
        crops = inputs["grad_output"].reshape(-1, C)
        pixels = torch.zeros(B * H * W, C)
        for corner in _corners(inputs["grid"], B, H, W):
            pixels.index_add_(0, corner.pixel, corner.weight * crops[corner.bins])
        return {"grad_input": pixels.reshape(B, H, W, C)}


def _corners(grid: torch.Tensor, B: int, H: int, W: int) -> Iterator[_Corner]:
    """The four corners of all bins, top left first; corner pixels of an image sit at -1 and 1."""
    N = grid.shape[0]
    y, x = grid.reshape(N, -1, 2).unbind(2)
    image = torch.arange(N)[:, None] // (N // B)
    for row, weight_y in _neighbours((y + 1) * (H - 1) / 2):
        for column, weight_x in _neighbours((x + 1) * (W - 1) / 2):
            # Asked of floats: a huge coordinate has no integer.
            inside = (row >= 0) & (row < H) & (column >= 0) & (column < W)
            pixel = (image * H + row.where(inside, 0).long()) * W + column.where(inside, 0).long()
            bins = inside.flatten().nonzero().squeeze(1)
            yield _Corner(bins, pixel.flatten()[bins], (weight_y * weight_x).flatten()[bins, None])


def _neighbours(position: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """The whole coordinates on both sides of a position, as floats, with their weights."""
    first = position.floor()
    fraction = position - first
    yield first, 1 - fraction
    yield first + 1, fraction


KERNELS = {"roi_crop_forward": RoiCropForward, "roi_crop_backward": RoiCropBackward}
