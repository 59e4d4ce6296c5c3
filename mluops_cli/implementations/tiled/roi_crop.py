"""roi_crop_forward and roi_crop_backward on the device; source: design document roi_crop, sections 3.1 to 3.4.

A part of the on-chip memory holds the channels of one bin, or of several bins where they are few; channels that exceed
a part are looped over. Coordinates and weights are the core's scalars.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mluops_cli.implementations.base import Array
from mluops_cli.implementations.preconditions import roi_crop as checks
from mluops_cli.implementations.preconditions.base import Params, Tensors
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

_CORNERS = 4


class _Corner(NamedTuple):
    """One of the four pixels around the sampling points of some bins."""

    inside: Array  # bool [bins]: whether the pixel lies in the image
    pixel: Array  # int64 [bins]: its number over all images, 0 where outside
    weight: Array  # float [bins, 1], 0 where outside


class _RoiCrop(Kernel, checks.RoiCrop):
    """Both directions walk over the bins of the crops: N*OH*OW of them, split over the cores."""

    def loads(self, bins: int, channels: int, part: int) -> list[range]:
        """What the cores load at a time: as many bins as a part holds, one where the channels exceed it."""
        cores = split(range(bins), self.machine.tasks)
        return [load for core in cores for load in tiles(core, max(1, part // channels))]


class RoiCropForward(_RoiCrop, checks.RoiCropForward):
    """The memory in 8 parts: the four corners twice, for loading one while computing on the other (3.1.1)."""

    def run(self, tensors: Tensors, params: Params) -> str:
        """Per load: fetch the corners that lie inside, weigh and add them in place, store."""
        images, grid, crops = tensors["input"], tensors["grid"], tensors["output"]
        C = images.shape[3]
        pixels, bins = images.reshape(-1, C), crops.reshape(-1, C)
        chip = self.machine.core()
        part = self.machine.part(2 * _CORNERS, images.itemsize)
        ping_pong = [[chip.alloc(part, images.dtype) for _ in range(_CORNERS)] for _ in range(2)]
        for turn, load in enumerate(self.loads(len(bins), C, part)):
            corners = list(_corners(grid, load, images.shape))
            for channels in tiles(range(C), part):
                values = [shaped(each, len(load), len(channels)) for each in ping_pong[turn % 2]]
                for value, corner in zip(values, corners, strict=True):
                    _fetch(pixels, corner.pixel, channels, value)
                    value[~corner.inside] = 0
                    value *= corner.weight
                for value in values[1:]:
                    values[0] += value
                bins[span(load), span(channels)] = values[0]
        return SUCCESS


class RoiCropBackward(_RoiCrop, checks.RoiCropBackward):
    """The memory in 10 parts: the gradient of a bin and those of its four corners, twice (3.1.2)."""

    def run(self, tensors: Tensors, params: Params) -> str:
        """Per load: weigh the gradient for each corner and add it atomically to the pixels that lie inside."""
        images, grid, crops = tensors["grad_input"], tensors["grid"], tensors["grad_output"]
        C = images.shape[3]
        pixels, bins = images.reshape(-1, C), crops.reshape(-1, C)
        chip = self.machine.core()
        part = self.machine.part(2 * (1 + _CORNERS), images.itemsize)
        ping_pong = [[chip.alloc(part, images.dtype) for _ in range(1 + _CORNERS)] for _ in range(2)]
        order = arrival_order()
        images[...] = 0
        for turn, load in enumerate(shuffled(self.loads(len(bins), C, part), order)):
            corners = list(_corners(grid, load, images.shape))
            for channels in tiles(range(C), part):
                gradient, *values = (shaped(each, len(load), len(channels)) for each in ping_pong[turn % 2])
                gradient[...] = bins[span(load), span(channels)]
                for value, corner in zip(values, corners, strict=True):
                    np.multiply(gradient, corner.weight, out=value)
                    inside = corner.inside
                    atomic_add(pixels[:, span(channels)], corner.pixel[inside], value[inside], order)
        return SUCCESS


def _corners(grid: Array, bins: range, shape: tuple[int, ...]) -> Iterator[_Corner]:
    """Top left, top right, bottom left, bottom right pixels of some bins' points, in the grid's precision (1.2)."""
    B, H, W, _ = shape
    N, OH, OW, _ = grid.shape
    points = grid.reshape(-1, 2)[span(bins)]
    image = np.arange(bins.start, bins.stop) // (OH * OW) // (N // B)
    y = (points[:, 0] + 1) * (H - 1) / 2
    x = (points[:, 1] + 1) * (W - 1) / 2
    top, left = np.floor(y), np.floor(x)
    weight_y, weight_x = 1 - (y - top), 1 - (x - left)
    for row, of_row in ((top, weight_y), (top + 1, 1 - weight_y)):
        for column, of_column in ((left, weight_x), (left + 1, 1 - weight_x)):
            # Compared as floats: a coordinate too large for an integer is never cast to one.
            inside = (row >= 0) & (row <= H - 1) & (column >= 0) & (column <= W - 1)
            pixel_y, pixel_x = (np.where(inside, each, 0).astype(np.int64) for each in (row, column))
            weight = np.where(inside, of_row * of_column, np.zeros(1, grid.dtype))
            yield _Corner(inside, (image * H + pixel_y) * W + pixel_x, weight[:, None])


def _fetch(pixels: Array, wanted: Array, channels: range, out: Array) -> None:
    """Copy some channels of the wanted pixels onto the chip."""
    if len(channels) == pixels.shape[1]:
        np.take(pixels, wanted, axis=0, out=out, mode="clip")
    else:
        out[...] = pixels[wanted, span(channels)]


KERNELS = {"roi_crop_forward": RoiCropForward, "roi_crop_backward": RoiCropBackward}
