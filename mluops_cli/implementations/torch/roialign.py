"""roialign_forward in PyTorch: per box four gathers of all its samples at once, then a mean over each bin."""

from __future__ import annotations

import torch

from mluops_cli.implementations.preconditions import roialign as checks
from mluops_cli.implementations.preconditions.base import Params
from mluops_cli.implementations.torch.base import Shapes, Torches, TorchKernel


class RoialignForward(TorchKernel, checks.RoialignForward):
    """A bin is the mean of its samples, those outside of the image included as 0."""

    def compute(self, inputs: Torches, params: Params, shapes: Shapes) -> dict[str, torch.Tensor]:
        """Box by box: the number of samples may differ."""
        images, boxes = inputs["input"], inputs["boxes"]
        output = torch.zeros(shapes["output"])
        for k, (image, x1, y1, x2, y2) in enumerate(boxes.unbind(0) if len(boxes) else ()):
            pixels = images[int(image)]
            y = _positions(y1, y2, params["pooled_height"], params)
            x = _positions(x1, x2, params["pooled_width"], params)
            if y.numel() and x.numel():
                samples = _samples(pixels, y.flatten(), x.flatten())
                output[k] = samples.reshape(*y.shape, *x.shape, -1).mean((1, 3))
        return {"output": output}


def _positions(low: torch.Tensor, high: torch.Tensor, bins: int, params: Params) -> torch.Tensor:
    """The positions of the samples along one axis: [bins, samples]."""
    half = 0.5 if params["aligned"] else 0.0
    start, end = low * params["spatial_scale"] - half, high * params["spatial_scale"] - half
    size = end - start if params["aligned"] else (end - start).clamp(min=1)
    number = params["sampling_ratio"] or max(0, int((size / bins).ceil()))
    fractions = (torch.arange(number) + 0.5) / max(number, 1)
    return start + (torch.arange(bins)[:, None] + fractions) * (size / bins)


def _samples(pixels: torch.Tensor, y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The bilinear samples at all y and x; what lies beyond one pixel outside of the image is 0."""
    H, W, _ = pixels.shape
    counted = ((y >= -1) & (y <= H))[:, None] & (x >= -1) & (x <= W)
    y, x = y.clamp(0, H - 1), x.clamp(0, W - 1)
    top, left = y.long(), x.long()
    bottom, right = (top + 1).clamp(max=H - 1), (left + 1).clamp(max=W - 1)
    down, across = (y - top)[:, None, None], (x - left)[:, None]
    upper = (1 - across) * pixels[top][:, left] + across * pixels[top][:, right]
    lower = (1 - across) * pixels[bottom][:, left] + across * pixels[bottom][:, right]
    samples = (1 - down) * upper + down * lower
    return samples.masked_fill(~counted[:, :, None], 0)


KERNELS = {"roialign_forward": RoialignForward}
