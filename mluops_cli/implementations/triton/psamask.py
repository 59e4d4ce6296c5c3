"""psamask_forward and psamask_backward in Triton: copies between rows of mask cells and rows of feature cells.

Feature cell (i, j) of position (h, w) is mask cell (i - h + hh, j - w + hw). COLLECT: both rows belong to the
position. DISTRIBUTE: positions and feature cells are exchanged, so a tile is read along one axis and written along the
other.
"""

from __future__ import annotations

import triton
import triton.language as tl

from mluops_cli.implementations.preconditions import psamask as checks
from mluops_cli.implementations.preconditions.base import Params, Result, Tensors
from mluops_cli.implementations.preconditions.psamask import COLLECT, DISTRIBUTE
from mluops_cli.implementations.triton.tiles import power_of_two
from schemas.status import SUCCESS

_ROW = 1024  # elements of a tile that is read and written along the same axis
_EXCHANGED = (64, 32)  # positions and cells of a tile whose axes are exchanged


@triton.jit
def _tile(places, cells, PLACES: tl.constexpr, CELLS: tl.constexpr):
    """Image, positions in it (first axis) and cells (second axis) of this program."""
    blocks = tl.cdiv(cells, CELLS)
    tiles = tl.cdiv(places, PLACES) * blocks
    tile = tl.program_id(0) % tiles
    place = (tile // blocks) * PLACES + tl.arange(0, PLACES)[:, None]
    cell = (tile % blocks) * CELLS + tl.arange(0, CELLS)[None, :]
    return (tl.program_id(0) // tiles).to(tl.int64), place, cell


@triton.jit
def _gather(
    source, target, H, W, rows, columns, source_rows, source_columns, up, left,
    SIGN: tl.constexpr, EXCHANGED: tl.constexpr, PLACES: tl.constexpr, CELLS: tl.constexpr,
):  # fmt: skip
    """target[n, h, w, a, b] = source[n, h, w, a - SIGN*(h - up), b - SIGN*(w - left)], 0 where there is none.

    EXCHANGED: target[n, a, b, h, w] instead.
    """
    places, cells = H * W, rows * columns
    image, place, cell = _tile(places, cells, PLACES, CELLS)
    row = cell // columns - SIGN * (place // W - up)
    column = cell % columns - SIGN * (place % W - left)
    held = (place < places) & (cell < cells)
    inside = held & (row >= 0) & (row < source_rows) & (column >= 0) & (column < source_columns)
    start = (image * places + place) * (source_rows * source_columns)
    value = tl.load(source + start + row * source_columns + column, mask=inside, other=0)
    if EXCHANGED:
        tl.store(target + (image * cells + cell) * places + place, value, mask=held)
    else:
        tl.store(target + (image * places + place) * cells + cell, value, mask=held)


@triton.jit
def _scatter_exchanged(
    source, target, H, W, rows, columns, up, left, PLACES: tl.constexpr, CELLS: tl.constexpr
):  # fmt: skip
    """target[n, h, w, i - h + up, j - w + left] = source[n, i, j, h, w], where there is such a cell."""
    cells = H * W
    image, place, cell = _tile(cells, cells, PLACES, CELLS)
    row = cell // W - place // W + up
    column = cell % W - place % W + left
    inside = (place < cells) & (cell < cells) & (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
    value = tl.load(source + (image * cells + cell) * cells + place, mask=inside, other=0)
    tl.store(target + (image * cells + place) * (rows * columns) + row * columns + column, value, mask=inside)


class PsamaskForward(checks.PsamaskForward):
    """One pass over y."""

    def run(self, tensors: Tensors, params: Params) -> Result:
        """Gather the mask cell of every feature cell."""
        x, y = tensors["x"], tensors["y"]
        N, H, W, cells = y.shape
        h_mask, w_mask = params["h_mask"], params["w_mask"]
        exchanged = params["psa_type"] == DISTRIBUTE
        tile, grid = _covered(N, H * W, cells, exchanged=exchanged)
        up, left = (h_mask - 1) // 2, (w_mask - 1) // 2
        _gather[grid](x, y, H, W, H, W, h_mask, w_mask, up, left, 1, exchanged, *tile)
        return SUCCESS


class PsamaskBackward(checks.PsamaskBackward):
    """COLLECT: one pass over dx. DISTRIBUTE: one over dy, so that reads and writes are both along rows."""

    def run(self, tensors: Tensors, params: Params) -> Result:
        """Gather the feature cell of every mask cell, or scatter every feature cell."""
        dy, dx = tensors["dy"], tensors["dx"]
        N, H, W, cells = dx.shape
        h_mask, w_mask = params["h_mask"], params["w_mask"]
        up, left = (h_mask - 1) // 2, (w_mask - 1) // 2
        if params["psa_type"] == COLLECT:
            tile, grid = _covered(N, H * W, cells, exchanged=False)
            _gather[grid](dy, dx, H, W, h_mask, w_mask, H, W, up, left, -1, False, *tile)
        else:
            dx[...] = 0
            tile, grid = _covered(N, H * W, H * W, exchanged=True)
            _scatter_exchanged[grid](dy, dx, H, W, h_mask, w_mask, up, left, *tile)
        return SUCCESS


def _covered(images: int, places: int, cells: int, *, exchanged: bool) -> tuple[tuple[int, int], tuple[int]]:
    """Positions and cells of a tile, and the grid that covers all of all images."""
    wide = power_of_two(cells, _EXCHANGED[1] if exchanged else _ROW)
    high = power_of_two(places, _EXCHANGED[0] if exchanged else _ROW // wide)
    return (high, wide), (images * triton.cdiv(places, high) * triton.cdiv(cells, wide),)
