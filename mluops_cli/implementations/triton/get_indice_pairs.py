"""get_indice_pairs in Triton: output cells in a hash table on the device, pairs in the order of the sites.

The table has open addresses and twice as many slots as there can be cells. Cells are numbered
((n*D + d)*H + h)*W + w in 64 bits. Each tile of sites counts its pairs first; sums of the counts tell where it writes.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
import triton.language as tl

from mluops_cli.implementations.preconditions import get_indice_pairs as checks
from mluops_cli.implementations.preconditions.base import Params, Result, Tensors
from mluops_cli.implementations.triton.tiles import power_of_two
from schemas.status import SUCCESS

_TILE = 1024  # kernel offsets times sites
_EMPTY = tl.constexpr(-1)  # key of a slot without a cell
_NO_KEY = tl.constexpr(-2)  # key that no slot has
_FACTOR = tl.constexpr(0x2545F4914F6CDD1D)
_NARROW = 2**31  # coordinates below fit 32 bits


@triton.jit
def _first_slot(cell, last):
    """Where the search for a cell begins; last is the number of the last slot, all ones."""
    return ((cell * _FACTOR) >> 32) & last


@triton.jit
def _insert(keys, cell, wanted, last):
    """Put the wanted cells into the table, each once; return their slots."""
    slot = _first_slot(cell, last)
    while tl.max(wanted.to(tl.int32), axis=None) > 0:
        # There is no mask for a compare and swap: lanes that are done compare with a key that no slot has.
        expected = tl.where(wanted, _EMPTY, _NO_KEY).to(tl.int64)
        held = tl.atomic_cas(keys + slot, expected, tl.where(wanted, cell, _NO_KEY), sem="relaxed")
        wanted = wanted & (held != _EMPTY) & (held != cell)
        slot = tl.where(wanted, (slot + 1) & last, slot)
    return slot


@triton.jit
def _reached(
    indices, offset, site, held, pad_d, pad_h, pad_w, stride_d, stride_h, stride_w, dilation_d, dilation_h, dilation_w,
    D, H, W, filter_h, filter_w, WIDE: tl.constexpr,
):  # fmt: skip
    """The number of the output cell of each site by each kernel offset, and whether it is a whole one in bounds."""
    n = tl.load(indices + site * 4, mask=held, other=0)
    d = tl.load(indices + site * 4 + 1, mask=held, other=0)
    h = tl.load(indices + site * 4 + 2, mask=held, other=0)
    w = tl.load(indices + site * 4 + 3, mask=held, other=0)
    if WIDE:
        d = d.to(tl.int64)
        h = h.to(tl.int64)
        w = w.to(tl.int64)
    d = d + pad_d - offset // filter_w // filter_h * dilation_d
    h = h + pad_h - offset // filter_w % filter_h * dilation_h
    w = w + pad_w - offset % filter_w * dilation_w
    whole = held & (d >= 0) & (h >= 0) & (w >= 0)
    whole = whole & (d % stride_d == 0) & (h % stride_h == 0) & (w % stride_w == 0)
    d = d // stride_d
    h = h // stride_h
    w = w // stride_w
    return ((n.to(tl.int64) * D + d) * H + h) * W + w, whole & (d < D) & (h < H) & (w < W)


@triton.jit
def _tile(offsets, sites, OFFSETS: tl.constexpr, SITES: tl.constexpr):
    """Kernel offsets and sites of this program, and which of them there are."""
    blocks = tl.cdiv(sites, SITES)
    offset = (tl.program_id(0) // blocks) * OFFSETS + tl.arange(0, OFFSETS)[:, None]
    site = (tl.program_id(0) % blocks) * SITES + tl.arange(0, SITES)[None, :]
    return offset, site, (offset < offsets) & (site < sites)


@triton.jit
def _insert_sites(indices, keys, rows, last, sites, D, H, W, SITES: tl.constexpr):
    """The input sites as cells, with their number as row."""
    site = tl.program_id(0) * SITES + tl.arange(0, SITES)
    held = site < sites
    n = tl.load(indices + site * 4, mask=held, other=0).to(tl.int64)
    d = tl.load(indices + site * 4 + 1, mask=held, other=0)
    h = tl.load(indices + site * 4 + 2, mask=held, other=0)
    w = tl.load(indices + site * 4 + 3, mask=held, other=0)
    slot = _insert(keys, ((n * D + d) * H + h) * W + w, held, last)
    tl.store(rows + slot, site, mask=held)


@triton.jit
def _insert_reached(
    indices, keys, last, offsets, sites, pad_d, pad_h, pad_w, stride_d, stride_h, stride_w, dilation_d, dilation_h,
    dilation_w, D, H, W, filter_h, filter_w, WIDE: tl.constexpr, OFFSETS: tl.constexpr, SITES: tl.constexpr,
):  # fmt: skip
    """The cells that any site reaches."""
    offset, site, held = _tile(offsets, sites, OFFSETS, SITES)
    cell, reached = _reached(
        indices, offset, site, held, pad_d, pad_h, pad_w, stride_d, stride_h, stride_w, dilation_d, dilation_h,
        dilation_w, D, H, W, filter_h, filter_w, WIDE,
    )  # fmt: skip
    _insert(keys, cell, reached, last)


@triton.jit
def _find(
    indices, keys, rows, found, counts, last, offsets, sites, pad_d, pad_h, pad_w, stride_d, stride_h, stride_w,
    dilation_d, dilation_h, dilation_w, D, H, W, filter_h, filter_w,
    WIDE: tl.constexpr, OFFSETS: tl.constexpr, SITES: tl.constexpr,
):  # fmt: skip
    """found[k, j]: the output row of a pair, -1 where there is none; counts[k, block]: the pairs of some sites."""
    offset, site, held = _tile(offsets, sites, OFFSETS, SITES)
    cell, wanted = _reached(
        indices, offset, site, held, pad_d, pad_h, pad_w, stride_d, stride_h, stride_w, dilation_d, dilation_h,
        dilation_w, D, H, W, filter_h, filter_w, WIDE,
    )  # fmt: skip
    slot = _first_slot(cell, last)
    row = tl.full((OFFSETS, SITES), -1, tl.int32)
    while tl.max(wanted.to(tl.int32), axis=None) > 0:
        key = tl.load(keys + slot, mask=wanted, other=_EMPTY)
        hit = wanted & (key == cell)
        row = tl.where(hit, tl.load(rows + slot, mask=hit, other=-1), row)
        wanted = wanted & (key != cell) & (key != _EMPTY)
        slot = (slot + 1) & last
    tl.store(found + offset.to(tl.int64) * sites + site, row, mask=held)
    blocks = tl.cdiv(sites, SITES)
    line = (tl.program_id(0) // blocks) * OFFSETS + tl.arange(0, OFFSETS)
    count = tl.sum((row >= 0).to(tl.int32), axis=1)
    tl.store(counts + line * blocks + tl.program_id(0) % blocks, count, mask=line < offsets)


@triton.jit
def _write_pairs(found, starts, pairs, offsets, sites, OFFSETS: tl.constexpr, SITES: tl.constexpr):
    """The pairs of each block of sites, behind those of the blocks before it."""
    offset, site, held = _tile(offsets, sites, OFFSETS, SITES)
    blocks = tl.cdiv(sites, SITES)
    row = tl.load(found + offset.to(tl.int64) * sites + site, mask=held, other=-1)
    hit = row >= 0
    start = tl.load(starts + offset * blocks + tl.program_id(0) % blocks, mask=offset < offsets, other=0)
    place = start + tl.cumsum(hit.to(tl.int32), axis=1) - 1
    target = pairs + offset.to(tl.int64) * (2 * sites) + place
    tl.store(target, site + tl.zeros_like(row), mask=hit)
    tl.store(target + sites, row, mask=hit)


@triton.jit
def _write_sites(cells, sites, count, D, H, W, CELLS: tl.constexpr):
    """The sites (n, d, h, w) of cell numbers."""
    at = tl.program_id(0) * CELLS + tl.arange(0, CELLS)
    held = at < count
    cell = tl.load(cells + at, mask=held, other=0)
    tl.store(sites + at * 4, (cell // W // H // D).to(tl.int32), mask=held)
    tl.store(sites + at * 4 + 1, (cell // W // H % D).to(tl.int32), mask=held)
    tl.store(sites + at * 4 + 2, (cell // W % H).to(tl.int32), mask=held)
    tl.store(sites + at * 4 + 3, (cell % W).to(tl.int32), mask=held)


class GetIndicePairs(checks.GetIndicePairs):
    """Insert the active cells, number them, find the row of every pair, write the pairs in order."""

    def run(self, tensors: Tensors, params: Params) -> Result:
        """Return the number of active outputs as num_act_out."""
        indices: Any = tensors["indices"]
        L, K = len(indices), math.prod(params["filter_space"])
        space = params["output_space"]
        most = L if params["sub_m"] else min(K * L, params["batch"] * math.prod(space))
        slots = triton.next_power_of_2(2 * most)
        keys = torch.full((slots,), -1, dtype=torch.int64, device=indices.device)
        rows = torch.empty(slots, dtype=torch.int32, device=indices.device)
        sites = power_of_two(L, _TILE)
        tile = power_of_two(K, _TILE // sites), sites
        grid = (triton.cdiv(K, tile[0]) * triton.cdiv(L, sites),)
        moves = _moves(params)
        out_indices: Any = tensors["out_indices"]
        if params["sub_m"]:
            _insert_sites[triton.cdiv(L, sites),](indices, keys, rows, slots - 1, L, *space, sites)
            out_indices[:L] = indices
            active = L
        else:
            _insert_reached[grid](indices, keys, slots - 1, K, L, *moves, *tile)
            active = _number(keys, rows, out_indices, space)
        self._pairs(tensors, keys, rows, grid, (K, L, *moves), tile)
        return {"status": SUCCESS, "num_act_out": active}

    def _pairs(
        self,
        tensors: Tensors,
        keys: Any,
        rows: Any,
        grid: tuple[int],
        sizes: tuple[int, ...],
        tile: tuple[int, int],
    ) -> None:
        """Fill indice_pairs and indice_num from the table of cells and rows."""
        indices: Any = tensors["indices"]
        K, L, *_ = sizes
        found = torch.empty((K, L), dtype=torch.int32, device=indices.device)
        counts = torch.empty((K, triton.cdiv(L, tile[1])), dtype=torch.int32, device=indices.device)
        _find[grid](indices, keys, rows, found, counts, len(keys) - 1, *sizes, *tile)
        ends = counts.cumsum(1, dtype=torch.int32)
        tensors["indice_num"][...] = ends[:, -1]
        tensors["indice_pairs"][...] = -1
        _write_pairs[grid](found, ends - counts, tensors["indice_pairs"], K, L, *tile)


def _number(keys: Any, rows: Any, out_indices: Any, space: list[int]) -> int:
    """Number the table's cells in their order, write as many sites as out_indices has rows; return their number."""
    slots = (keys >= 0).nonzero().squeeze(1)
    cells, order = keys[slots].sort()
    rows[slots[order]] = torch.arange(len(cells), dtype=torch.int32, device=keys.device)
    if written := min(len(cells), len(out_indices)):
        _write_sites[triton.cdiv(written, _TILE),](cells, out_indices, written, *space, _TILE)
    return len(cells)


def _moves(params: Params) -> tuple[int, ...]:
    """The parameters that lead from a site to its output cells; last whether they need 64 bits."""
    pad, dilation, filter_space = params["pad"], params["dilation"], params["filter_space"]
    reach = zip(params["input_space"], pad, dilation, filter_space, strict=True)
    wide = max(size + p + d * f for size, p, d, f in reach) >= _NARROW
    return (*pad, *params["stride"], *dilation, *params["output_space"], *filter_space[1:], wide)
