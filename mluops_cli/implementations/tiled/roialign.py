"""roialign_forward on the device: the boxes are split over the cores; a box is interpolated along x, then along y.

Both steps are means of weighted rows, so that a bin is computed from few sums: per row of the image that a box needs
the mean over its columns of samples, then the mean of those rows. Positions and weights are the core's scalars, in
float32. Columns of bins and channels that exceed the on-chip memory are looped over.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mluops_cli.implementations.base import Array
from mluops_cli.implementations.preconditions import roialign as checks
from mluops_cli.implementations.preconditions.base import Params, Tensors
from mluops_cli.implementations.tiled.base import Kernel
from mluops_cli.implementations.tiled.onchip import OnChip, shaped, span, split, tiles
from schemas.status import SUCCESS

F = np.float32


class _Taps(NamedTuple):
    """What the samples of a box read along one axis, in bins of `number` samples each."""

    bins: Array  # int [taps]: the bin
    pixels: Array  # int [taps]: the row or column of the image
    weights: Array  # float [taps]
    number: int

    def of(self, bins: range) -> _Taps:
        """The taps of consecutive bins, which are counted from their first one."""
        chosen = (self.bins >= bins.start) & (self.bins < bins.stop)
        return _Taps(self.bins[chosen] - bins.start, self.pixels[chosen], self.weights[chosen], self.number)


class RoialignForward(Kernel, checks.RoialignForward):
    """On chip per box: a loaded row of pixels, the means along x of all rows that are needed, a row of bins."""

    def run(self, tensors: Tensors, params: Params) -> str:
        """Per box and part of the channels: rows of the image to rows of means, those to rows of bins."""
        images, boxes, output = tensors["input"], tensors["boxes"], tensors["output"]
        for core in split(range(len(boxes)), self.machine.tasks):
            chip = self.machine.core()
            for k in core:
                self._box(images[int(boxes[k, 0])], boxes[k, 1:], output[k], params, chip)
        return SUCCESS

    def _box(self, image: Array, ends: Array, bins: Array, params: Params, chip: OnChip) -> None:
        H, W, _ = image.shape
        height, width, _ = bins.shape
        y = _taps(ends[1], ends[3], height, H, params)
        x = _taps(ends[0], ends[2], width, W, params)
        if not len(y.bins) or not len(x.bins):
            bins[...] = 0
            return
        rows, of_row = np.unique(y.pixels, return_inverse=True)
        elements = self.machine.part(1, 4)
        for across in tiles(range(width), max(1, elements // (2 * x.number + len(rows) + 1))):
            self._bins(image, rows, y._replace(pixels=of_row), x.of(across), bins[:, span(across)], chip)

    def _bins(self, image: Array, rows: Array, y: _Taps, x: _Taps, bins: Array, chip: OnChip) -> None:
        """Some columns of bins: as many channels at a time as fit; y.pixels are positions in rows."""
        height, width, C = bins.shape
        for channels in tiles(range(C), max(1, self.machine.part(1, 4) // (len(x.bins) + (len(rows) + 1) * width))):
            chip.free()
            part = len(channels)
            loaded = shaped(chip.alloc(len(x.bins) * part, F), len(x.bins), part)
            means = shaped(chip.alloc(len(rows) * width * part, F), len(rows), width, part)
            sums = shaped(chip.alloc(width * part, F), width, part)
            for number, row in enumerate(rows):
                np.multiply(image[row, x.pixels, span(channels)], x.weights[:, None], out=loaded)
                _add_up(loaded, x.bins, means[number])
                means[number] /= F(x.number)
            for p in range(height):
                sums[...] = 0
                for tap in np.flatnonzero(y.bins == p):
                    sums += y.weights[tap] * means[y.pixels[tap]]
                bins[p, :, span(channels)] = sums / F(y.number)


def _add_up(taps: Array, bins: Array, out: Array) -> None:
    """out[b] = the sum of the taps of bin b; bins ascend."""
    out[...] = 0
    if not len(bins):
        return
    first = np.flatnonzero(np.diff(bins, prepend=-1))
    out[bins[first]] = np.add.reduceat(taps, first, axis=0)


def _taps(low: Array, high: Array, bins: int, size: int, params: Params) -> _Taps:
    """The two taps of each sample that counts, the far one too where its weight is 0."""
    scale, half = F(params["spatial_scale"]), F(0.5 if params["aligned"] else 0)
    start = low * scale - half
    extent = high * scale - half - start
    if not params["aligned"]:
        extent = max(extent, F(1))
    step = extent / F(bins)
    number = params["sampling_ratio"] if params["sampling_ratio"] > 0 else max(0, math.ceil(step))
    fine = step / F(max(number, 1))
    bin_of = np.repeat(np.arange(bins), number)
    position = start + bin_of.astype(F) * step + (np.tile(np.arange(number), bins).astype(F) + F(0.5)) * fine
    counted = (position >= -1) & (position <= size)
    bin_of, position = bin_of[counted], position[counted]
    position = np.minimum(np.maximum(position, F(0)), F(size - 1))
    near = position.astype(np.int64)
    far = np.minimum(near + 1, size - 1)
    rest = position - near.astype(F)
    weights = np.stack([F(1) - rest, rest], axis=1).ravel()
    return _Taps(np.repeat(bin_of, 2), np.stack([near, far], axis=1).ravel(), weights, number)


KERNELS = {"roialign_forward": RoialignForward}
