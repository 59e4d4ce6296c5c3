"""psamask_forward and psamask_backward on the device; source: design document psamask, sections 3.1 to 3.3."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

from mluops_cli.implementations.base import Array
from mluops_cli.implementations.preconditions import psamask as checks
from mluops_cli.implementations.preconditions.base import Params, Tensors, require
from mluops_cli.implementations.preconditions.psamask import DISTRIBUTE
from mluops_cli.implementations.tiled.base import Kernel
from mluops_cli.implementations.tiled.onchip import OnChip, shaped, span, split, tiles
from schemas.status import NOT_SUPPORTED, SUCCESS

_Segment = tuple[range, range, range]  # of N, H and W
_Index = tuple[Any, ...]


class _Tile(NamedTuple):
    """One tile: its memory on chip, and its place in main memory; mask cells are [p, q], feature cells [i, j]."""

    mask: Array  # on chip [n, h, w, p, q]
    cells: Array  # on chip [n, h, w, i, j], what COLLECT computes
    turned: Array | None  # on chip [n, i, j, h, w], the transpose of (HW, C) for DISTRIBUTE
    masked: Array  # main memory [n, h, w, p, q]
    full: Array  # main memory [n, h, w, i, j]; DISTRIBUTE: [n, i, j, h, w]


class _Psamask(Kernel, checks.Psamask):
    """The two directions differ in which tensor is read; both are split and held on chip alike."""

    def run(self, tensors: Tensors, params: Params) -> str:
        """Every core walks over its segment in tiles; a mask of which not one position fits: NOT_SUPPORTED (3.2.3)."""
        N, H, W, _ = tensors[self.masked].shape
        masked = tensors[self.masked].reshape(N, H, W, params["h_mask"], params["w_mask"])
        full = tensors[self.full].reshape(N, H, W, H, W)
        position = (masked[0, 0, 0].size + full[0, 0, 0].size * (params["psa_type"] + 1)) * masked.itemsize
        require(position <= self.machine.nram, NOT_SUPPORTED)
        chip = self.machine.core()
        for cluster in _parts((range(N), range(H), range(W)), self.machine.clusters):
            for core in _parts(cluster, self.machine.cores):
                limits = _find_limits(core, position, self.machine.nram)
                self._core(core, limits, params["psa_type"], masked, full, chip)
        return SUCCESS

    def _core(
        self, core: _Segment, limits: tuple[int, int, int], psa_type: int, masked: Array, full: Array, chip: OnChip
    ) -> None:
        _, H, W, h_mask, w_mask = masked.shape
        positions = limits[0] * limits[1] * limits[2]
        chip.free()
        mask = chip.alloc(positions * h_mask * w_mask, masked.dtype)
        cells = chip.alloc(positions * H * W, masked.dtype)
        turned = chip.alloc(positions * H * W, masked.dtype) if psa_type == DISTRIBUTE else None
        for n in tiles(core[0], limits[0]):
            for h in tiles(core[1], limits[1]):
                for w in tiles(core[2], limits[2]):
                    count, place = (len(n), len(h), len(w)), (span(n), span(h), span(w))
                    tile = _Tile(
                        shaped(mask, *count, h_mask, w_mask),
                        shaped(cells, *count, H, W),
                        None if turned is None else shaped(turned, len(n), H, W, len(h), len(w)),
                        masked[place],
                        full[place] if turned is None else full[place[0], :, :, place[1], place[2]],
                    )
                    self.tile(tile, _rectangles(h, w, masked.shape))

    @abstractmethod
    def tile(self, tile: _Tile, rectangles: Iterator[tuple[_Index, _Index]]) -> None:
        """Load, zero on chip, copy the rectangles, store."""


class PsamaskForward(_Psamask, checks.PsamaskForward):
    """x to y; for DISTRIBUTE transposed on chip before the store."""

    def tile(self, tile: _Tile, rectangles: Iterator[tuple[_Index, _Index]]) -> None:
        """Place the mask's valid cells on the feature's."""
        tile.mask[...] = tile.masked
        tile.cells[...] = 0
        for in_mask, in_feature in rectangles:
            tile.cells[in_feature] = tile.mask[in_mask]
        if tile.turned is None:
            tile.full[...] = tile.cells
        else:
            tile.turned[...] = tile.cells.transpose(0, 3, 4, 1, 2)
            tile.full[...] = tile.turned


class PsamaskBackward(_Psamask, checks.PsamaskBackward):
    """dy to dx; for DISTRIBUTE transposed on chip after the load."""

    def tile(self, tile: _Tile, rectangles: Iterator[tuple[_Index, _Index]]) -> None:
        """Fetch the mask's valid cells from the feature's."""
        if tile.turned is None:
            tile.cells[...] = tile.full
        else:
            tile.turned[...] = tile.full
            tile.cells[...] = tile.turned.transpose(0, 3, 4, 1, 2)
        tile.mask[...] = 0
        for in_mask, in_feature in rectangles:
            tile.mask[in_mask] = tile.cells[in_feature]
        tile.masked[...] = tile.mask


def _parts(segment: _Segment, parts: int) -> Iterator[_Segment]:
    """Split N, else H, else W into so many parts; where none is long enough, the longest (3.2.1, 3.2.2)."""
    lengths = [len(units) for units in segment]
    axis = next((axis for axis in range(3) if lengths[axis] >= parts), lengths.index(max(lengths)))
    for part in split(segment[axis], parts):
        n, h, w = (part if each == axis else segment[each] for each in range(3))
        yield n, h, w


def _find_limits(segment: _Segment, position: int, nram: int) -> tuple[int, int, int]:
    """How many n, h and w fit on chip at once, from the bytes that one position takes (3.2.3)."""
    n, h, w = (len(units) for units in segment)
    if h * w * position <= nram:
        return min(n, nram // (h * w * position)), h, w
    if w * position <= nram:
        return 1, nram // (w * position), w
    return 1, 1, nram // position


def _rectangles(h: range, w: range, shape: tuple[int, ...]) -> Iterator[tuple[_Index, _Index]]:
    """Per position of a tile its valid cells: where they are in the mask and where in the feature (3.1.1)."""
    _, H, W, h_mask, w_mask = shape
    columns = [_interval(each, w_mask, W) for each in w]
    for at_h, rows in enumerate(_interval(each, h_mask, H) for each in h):
        for at_w, (mask_columns, feature_columns) in enumerate(columns):
            if rows[0] and mask_columns:
                at = slice(None), at_h, at_w
                yield (*at, span(rows[0]), span(mask_columns)), (*at, span(rows[1]), span(feature_columns))


def _interval(at: int, mask: int, feature: int) -> tuple[range, range]:
    """The mask cells of one axis that fall inside the feature, and the feature cells they fall on; may be empty."""
    half = (mask - 1) // 2
    start, end = max(0, half - at), min(mask, feature + half - at)
    return range(start, end), range(start + at - half, end + at - half)


KERNELS = {"psamask_forward": PsamaskForward, "psamask_backward": PsamaskBackward}
