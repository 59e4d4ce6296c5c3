"""indice_convolution_forward on the device: the rulebook is turned into a table of inputs, outputs are tiled.

The table, in the workspace, holds per kernel offset and output row the input row, or -1. A core sums up a tile of
outputs on chip in float32, offset by offset, with matrix products of as many channels as fit: no two cores add to one
output, and no sum is rounded to the outputs' dtype before its end.
"""

from __future__ import annotations

import math

import numpy as np

from mluops_cli.implementations.base import Array
from mluops_cli.implementations.preconditions import indice_convolution as checks
from mluops_cli.implementations.preconditions.base import Params, Tensors
from mluops_cli.implementations.tiled.base import WorkspaceKernel, regions
from mluops_cli.implementations.tiled.onchip import OnChip, shaped, span, split, tiles
from schemas.status import SUCCESS

F = np.float32
_PARTS = 4  # of the memory: sums, gathered features, filters, products


class IndiceConvolutionForward(WorkspaceKernel, checks.IndiceConvolutionForward):
    """Per tile of outputs: the products of all offsets that reach one of them."""

    def workspace_bytes(self, tensors: Tensors, params: Params) -> int:
        """The table: an int32 per offset and output."""
        return np.dtype(np.int32).itemsize * len(tensors["indice_pairs"]) * len(tensors["features_out"])

    def run(self, tensors: Tensors, params: Params) -> str:
        """Make the table, then the outputs from it."""
        pairs, output = tensors["indice_pairs"], tensors["features_out"]
        offsets, outputs = len(pairs), len(output)
        (flat,) = regions(params["workspace"], (offsets * outputs, np.int32))
        table = shaped(flat, offsets, outputs)
        table[...] = -1
        for own, number, (inputs, reached) in zip(table, params["indice_num"], pairs, strict=True):
            own[reached[:number]] = inputs[:number]
        filters = tensors["filters"].reshape(offsets, *tensors["filters"].shape[3:])
        chip = self.machine.core()
        part = self.machine.part(_PARTS, 4)
        for core in split(range(outputs), self.machine.tasks):
            for channels in tiles(range(output.shape[1]), max(1, math.isqrt(part))):
                for rows in tiles(core, max(1, part // len(channels))):
                    self._tile(tensors["features"], filters, table, output, (rows, channels), chip)
        return SUCCESS

    def _tile(
        self, features: Array, filters: Array, table: Array, output: Array, tile: tuple[range, range], chip: OnChip
    ) -> None:
        rows, channels = tile
        part = self.machine.part(_PARTS, 4)
        chip.free()
        sums, gathered, loaded, products = (chip.alloc(part, F) for _ in range(_PARTS))
        sums = shaped(sums, len(rows), len(channels))
        sums[...] = 0
        deep = max(1, part // max(len(channels), len(rows)))
        for own, weights in zip(table[:, span(rows)], filters, strict=True):
            reached = np.flatnonzero(own >= 0)
            for depth in tiles(range(features.shape[1]), deep) if len(reached) else ():
                taken = shaped(gathered, len(reached), len(depth))
                taken[...] = features[own[reached], span(depth)]
                weight = shaped(loaded, len(depth), len(channels))
                weight[...] = weights[span(depth), span(channels)]
                product = shaped(products, len(reached), len(channels))
                np.matmul(taken, weight, out=product)
                sums[reached] += product
        output[span(rows), span(channels)] = sums


KERNELS = {"indice_convolution_forward": IndiceConvolutionForward}
