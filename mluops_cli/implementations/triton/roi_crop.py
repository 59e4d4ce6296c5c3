"""roi_crop_forward and roi_crop_backward in Triton: a tile is some bins times some channels.

Corners outside of the image are neither read nor written, and have weight 0. Backward adds in float32.
"""

from __future__ import annotations

import triton
import triton.language as tl

from mluops_cli.implementations.preconditions import roi_crop as checks
from mluops_cli.implementations.preconditions.base import Params, Result, Tensors
from mluops_cli.implementations.triton.tiles import power_of_two, width
from schemas.status import SUCCESS

_TILE = 1024  # elements
_CHANNELS = 512  # of a tile, at most


@triton.jit
def _sample(grid, bin, held, axis: tl.constexpr, size):
    """The pixel before a bin's point on one axis, as a float, and the weight of the pixel after it."""
    point = tl.load(grid + bin * 2 + axis, mask=held, other=0)
    pixel = (point + 1) * (size - 1) * 0.5
    first = tl.floor(pixel)
    return first, pixel - first


@triton.jit
def _corner(image, first_y, after_y, first_x, after_x, held, H, W, dy: tl.constexpr, dx: tl.constexpr):
    """One of the four corners of bins: the number of its pixel over all images, its weight, whether it is inside."""
    row = first_y + dy
    column = first_x + dx
    inside = held & (row >= 0) & (row < H) & (column >= 0) & (column < W)
    weight_y = after_y if dy == 1 else 1 - after_y
    weight_x = after_x if dx == 1 else 1 - after_x
    weight = tl.where(inside, weight_y * weight_x, 0.0)
    row = tl.where(inside, row, 0.0).to(tl.int32)
    column = tl.where(inside, column, 0.0).to(tl.int32)
    return ((image * H + row) * W + column).to(tl.int64), weight, inside


@triton.jit
def _forward(
    images, grid, crops, bins, bins_per_image, H, W, C, BINS: tl.constexpr, CHANNELS: tl.constexpr
):  # fmt: skip
    blocks = tl.cdiv(C, CHANNELS)
    bin = (tl.program_id(0) // blocks) * BINS + tl.arange(0, BINS)
    channel = (tl.program_id(0) % blocks) * CHANNELS + tl.arange(0, CHANNELS)[None, :]
    held = bin < bins
    first_y, after_y = _sample(grid, bin, held, 0, H)
    first_x, after_x = _sample(grid, bin, held, 1, W)
    image = bin // bins_per_image
    total = tl.zeros((BINS, CHANNELS), tl.float32)
    for dy in tl.static_range(2):
        for dx in tl.static_range(2):
            pixel, weight, inside = _corner(image, first_y, after_y, first_x, after_x, held, H, W, dy, dx)
            read = inside[:, None] & (channel < C)
            total += weight[:, None] * tl.load(images + pixel[:, None] * C + channel, mask=read, other=0)
    tl.store(crops + bin.to(tl.int64)[:, None] * C + channel, total, mask=held[:, None] & (channel < C))


@triton.jit
def _backward(
    crops, grid, images, bins, bins_per_image, H, W, C, BINS: tl.constexpr, CHANNELS: tl.constexpr
):  # fmt: skip
    blocks = tl.cdiv(C, CHANNELS)
    bin = (tl.program_id(0) // blocks) * BINS + tl.arange(0, BINS)
    channel = (tl.program_id(0) % blocks) * CHANNELS + tl.arange(0, CHANNELS)[None, :]
    held = bin < bins
    first_y, after_y = _sample(grid, bin, held, 0, H)
    first_x, after_x = _sample(grid, bin, held, 1, W)
    image = bin // bins_per_image
    read = held[:, None] & (channel < C)
    gradient = tl.load(crops + bin.to(tl.int64)[:, None] * C + channel, mask=read, other=0)
    for dy in tl.static_range(2):
        for dx in tl.static_range(2):
            pixel, weight, inside = _corner(image, first_y, after_y, first_x, after_x, held, H, W, dy, dx)
            added = inside[:, None] & (channel < C)
            target = images + pixel[:, None] * C + channel
            tl.atomic_add(target, weight[:, None] * gradient, mask=added, sem="relaxed")


class RoiCropForward(checks.RoiCropForward):
    """One pass over the crops; an image's pixels come from the cache where bins share them."""

    def run(self, tensors: Tensors, params: Params) -> Result:
        """Add up the four corners of every bin."""
        images, grid, crops = tensors["input"], tensors["grid"], tensors["output"]
        _forward[_programs(images, crops)](images, grid, crops, *_sizes(images, crops))
        return SUCCESS


class RoiCropBackward(checks.RoiCropBackward):
    """One pass over the crops' gradients, after the images' are set to 0."""

    def run(self, tensors: Tensors, params: Params) -> Result:
        """Add every bin to its four corners."""
        crops, grid, images = tensors["grad_output"], tensors["grid"], tensors["grad_input"]
        images[...] = 0
        _backward[_programs(images, crops)](crops, grid, images, *_sizes(images, crops))
        return SUCCESS


def _sizes(images, crops) -> tuple[int, ...]:
    """All bins, those of an image, its height, width and channels; then bins and channels of a tile."""
    B, H, W, C = images.shape
    bins = crops.shape[0] * crops.shape[1] * crops.shape[2]
    channels = width(C, _CHANNELS)
    return bins, bins // B, H, W, C, power_of_two(bins, _TILE // channels), channels


def _programs(images, crops) -> tuple[int]:
    bins, _, _, _, C, high, wide = _sizes(images, crops)
    return (triton.cdiv(bins, high) * triton.cdiv(C, wide),)
