"""get_indice_pairs on the device; source: design document get_indice_pairs, sections 3.1 to 3.4.

Cells (places of an output site over batch and output space) are numbered in 64 bits. Keys carry a cell number above and
a payload below, so that sorting them keeps the payload beside the cell and needs no memory of its own. The design's
grid over all cells would exceed any memory for large spaces: it is visited in segments that fit on chip, and only where
there are sites.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mluops_cli.implementations.base import Array
from mluops_cli.implementations.preconditions import get_indice_pairs as checks
from mluops_cli.implementations.preconditions.base import Params, Result, Tensors, require
from mluops_cli.implementations.preconditions.get_indice_pairs import AXES
from mluops_cli.implementations.tiled.base import WorkspaceKernel, regions
from mluops_cli.implementations.tiled.onchip import Machine, shaped, span, split, tiles
from schemas.status import NOT_SUPPORTED, SUCCESS


@dataclass(frozen=True, slots=True)
class _Rulebook:
    """The convolution's parameters and the sizes that follow from them."""

    params: Params
    sites_in: int  # L
    offsets: int  # K
    bits: int  # of a key's payload: a pair's number k*L + j, or an output row

    @property
    def cells(self) -> int:
        return math.prod((self.params["batch"], *self.params["output_space"]))

    @property
    def pairs(self) -> int:
        return self.offsets * self.sites_in

    @property
    def most_sites_out(self) -> int:
        return self.sites_in if self.params["sub_m"] else min(self.pairs, self.cells)


def _rulebook(params: Params, sites_in: int) -> _Rulebook:
    offsets = math.prod(params["filter_space"])
    return _Rulebook(params, sites_in, offsets, (offsets * sites_in).bit_length())


class GetIndicePairs(WorkspaceKernel, checks.GetIndicePairs):
    """Expand to K offsets, sort and number the reached cells, look the numbers up, collect the pairs per offset."""

    def workspace_bytes(self, tensors: Tensors, params: Params) -> int:
        """Keys of all pairs, keys of all output sites, and the pairs' output rows (3.4)."""
        return sum(elements * np.dtype(dtype).itemsize for elements, dtype in _regions(_book(tensors, params)))

    def run(self, tensors: Tensors, params: Params) -> Result:
        """The design's steps 1 to 13; NOT_SUPPORTED where cell and payload exceed the 63 bits of a key."""
        book = _book(tensors, params)
        require(book.cells.bit_length() + book.bits <= 63, NOT_SUPPORTED)
        indices, out_indices = tensors["indices"], tensors["out_indices"]
        keys, sites, rows = regions(params["workspace"], *_regions(book))

        keys = keys[: _expand(self.machine, book, indices, keys)]
        keys.sort()
        if params["sub_m"]:
            sites = sites[: _number_inputs(self.machine, book, indices, sites)]
            sites.sort()
            found = book.sites_in
            out_indices[: book.sites_in] = indices
        else:
            sites = sites[: _number_reached(self.machine, book, keys, sites)]
            found = sites.size
            _decode(self.machine, book, sites[: len(out_indices)], out_indices)
        rows[...] = -1
        _look_up(self.machine, book, keys, sites, rows)
        _collect(self.machine, rows.reshape(book.offsets, -1), tensors["indice_pairs"], tensors["indice_num"])
        return {"status": SUCCESS, "num_act_out": found}


def _book(tensors: Tensors, params: Params) -> _Rulebook:
    return _rulebook(params, tensors["indices"].shape[0])


def _regions(book: _Rulebook) -> tuple[tuple[int, Any], ...]:
    return (book.pairs, np.int64), (book.most_sites_out, np.int64), (book.pairs, np.int32)


def _expand(machine: Machine, book: _Rulebook, indices: Array, keys: Array) -> int:
    """Steps 1 to 8: keys of (cell, k*L + j) of all reached outputs in bounds, in any order; how many there are.

    Tiles of sites and offsets: a site takes 4 int32 and, transposed, 4 int64, an offset 3 int64, a pair of both 3 int64
    and 2 masks.
    """
    of_site, of_offset, of_pair = 48, 24, 26
    width = min(book.offsets, max(1, (machine.nram - of_site) // (of_offset + of_pair)))
    length = max(1, (machine.nram - width * of_offset) // (of_site + width * of_pair))
    chip = machine.core()
    turned, shifts, *numbers = (chip.alloc(n, np.int64) for n in (4 * length, 3 * width, *(3 * [width * length])))
    loaded = chip.alloc(4 * length, np.int32)
    masks = [chip.alloc(width * length, bool) for _ in range(2)]
    count = 0
    for core in split(range(book.sites_in), machine.tasks):
        for load in tiles(core, length):
            shaped(loaded, len(load), 4)[...] = indices[span(load)]
            columns = shaped(turned, 4, len(load))
            columns[...] = shaped(loaded, len(load), 4).T
            for offsets in tiles(range(book.offsets), width):
                cell, at, quotient = (shaped(each, len(offsets), len(load)) for each in numbers)
                valid, test = (shaped(each, len(offsets), len(load)) for each in masks)
                shift = shaped(shifts, 3, len(offsets), 1)
                _shift(book.params, offsets, shift)
                _output_cells(book.params, columns, shift, cell, at, quotient, valid, test)
                pair = np.arange(*_of(offsets))[:, None] * book.sites_in
                np.add(pair, np.arange(*_of(load)), out=at)
                cell <<= book.bits
                cell |= at
                reached = cell[valid]
                keys[count : count + reached.size] = reached
                count += reached.size
    return count


def _of(units: range) -> tuple[int, int]:
    return units.start, units.stop


def _shift(params: Params, offsets: range, shift: Array) -> None:
    """pad - k*dilation per axis of some kernel offsets, [3, offsets, 1]."""
    k = np.arange(*_of(offsets))[:, None]
    for axis in reversed(AXES):
        k, of_axis = np.divmod(k, params["filter_space"][axis])
        np.multiply(of_axis, -params["dilation"][axis], out=shift[axis])
        shift[axis] += params["pad"][axis]


def _output_cells(
    params: Params, columns: Array, shift: Array, cell: Array, at: Array, quotient: Array, valid: Array, test: Array
) -> None:
    """Cell numbers that sites (n, d, h, w in rows) reach by some offsets, and which are valid (steps 5, 6 and 8)."""
    cell[...] = columns[0]
    np.greater_equal(cell, 0, out=valid)
    valid &= np.less(cell, params["batch"], out=test)
    for axis in AXES:
        stride, space = params["stride"][axis], params["output_space"][axis]
        np.add(columns[1 + axis], shift[axis], out=at)
        valid &= np.greater_equal(at, 0, out=test)
        valid &= np.less_equal(at, (space - 1) * stride, out=test)
        np.floor_divide(at, stride, out=quotient)
        cell *= space
        cell += quotient
        quotient *= stride
        valid &= np.equal(quotient, at, out=test)


def _number_inputs(machine: Machine, book: _Rulebook, indices: Array, sites: Array) -> int:
    """Subm: keys of (cell, input row) of the input sites, which are the output sites; how many there are."""
    chip = machine.core()
    length = max(1, machine.nram // 32)
    buffer = chip.alloc(4 * length, np.int64)
    count = 0
    for core in split(range(book.sites_in), machine.tasks):
        for load in tiles(core, length):
            columns = shaped(buffer, 4, len(load))
            columns[...] = indices[span(load)].T
            inside = (columns[0] >= 0) & (columns[0] < book.params["batch"])
            for axis in AXES:
                space = book.params["output_space"][axis]
                inside &= (columns[1 + axis] >= 0) & (columns[1 + axis] < space)
                columns[0] *= space
                columns[0] += columns[1 + axis]
            columns[0] <<= book.bits
            columns[0] |= np.arange(*_of(load))
            numbered = columns[0][inside]
            sites[count : count + numbered.size] = numbered
            count += numbered.size
    return count


def _number_reached(machine: Machine, book: _Rulebook, keys: Array, sites: Array) -> int:
    """Default (steps 8 and 9): keys of (cell, row) of the distinct cells in sorted keys; how many there are."""
    chip = machine.core()
    length = max(1, machine.nram // 9)
    cells, firsts = chip.alloc(length, np.int64), chip.alloc(length, bool)
    count, last = 0, -1
    for load in tiles(range(keys.size), length):
        cell, first = cells[: len(load)], firsts[: len(load)]
        np.right_shift(keys[span(load)], book.bits, out=cell)
        first[0] = cell[0] != last
        np.not_equal(cell[1:], cell[:-1], out=first[1:])
        last = cell[-1]
        distinct = cell[first]
        distinct <<= book.bits
        distinct |= np.arange(count, count + distinct.size)
        sites[count : count + distinct.size] = distinct
        count += distinct.size
    return count


def _decode(machine: Machine, book: _Rulebook, sites: Array, out_indices: Array) -> None:
    """Step 11: the (n, d, h, w) of the output sites."""
    chip = machine.core()
    length = max(1, machine.nram // 24)
    cells, places = chip.alloc(length, np.int64), chip.alloc(4 * length, np.int32)
    for core in split(range(sites.size), machine.tasks):
        for load in tiles(core, length):
            cell, place = cells[: len(load)], shaped(places, len(load), 4)
            np.right_shift(sites[span(load)], book.bits, out=cell)
            for axis in reversed(AXES):
                cell[...], place[:, 1 + axis] = np.divmod(cell, book.params["output_space"][axis])
            place[:, 0] = cell
            out_indices[span(load)] = place


def _look_up(machine: Machine, book: _Rulebook, keys: Array, sites: Array, rows: Array) -> None:
    """Steps 10 and 12: scatter the sites' rows into the grid, gather them for the pairs; rows of the others stay.

    Half of the memory holds a segment of the grid, the other half tiles of keys with their cells, payloads and rows.
    """
    chip = machine.core()
    grid = chip.alloc(max(1, machine.nram // 2 // 4), np.int32)
    length = max(1, machine.nram // 2 // 28)
    loaded, cells, payloads = (chip.alloc(length, np.int64) for _ in range(3))
    values = chip.alloc(length, np.int32)
    payload_mask = (1 << book.bits) - 1
    visited = 0
    while visited < sites.size:
        base = int(sites[visited]) >> book.bits
        stop = min(base + grid.size, book.cells) << book.bits
        here = range(visited, int(np.searchsorted(sites, stop)))
        asked = range(*(int(each) for each in np.searchsorted(keys, (base << book.bits, stop))))
        grid[...] = -1
        for units, source in ((here, sites), (asked, keys)):
            for load in tiles(units, length):
                key, cell, payload, value = (each[: len(load)] for each in (loaded, cells, payloads, values))
                key[...] = source[span(load)]
                np.right_shift(key, book.bits, out=cell)
                cell -= base
                np.bitwise_and(key, payload_mask, out=payload)
                if source is sites:
                    grid[cell] = payload
                else:
                    np.take(grid, cell, out=value, mode="clip")
                    rows[payload] = value
        visited = here.stop


def _collect(machine: Machine, rows: Array, indice_pairs: Array, indice_num: Array) -> None:
    """Steps 7 and 13: per offset the pairs (input row, output row) in the order of the input, then -1; their number."""
    chip = machine.core()
    length = max(1, machine.nram // 5)
    buffer, masks = chip.alloc(length, np.int32), chip.alloc(length, bool)
    for core in split(range(len(rows)), machine.tasks):
        for k in core:
            count = 0
            for load in tiles(range(rows.shape[1]), length):
                row, mask = buffer[: len(load)], masks[: len(load)]
                row[...] = rows[k, span(load)]
                inputs = np.flatnonzero(np.greater_equal(row, 0, out=mask))
                stop = count + inputs.size
                indice_pairs[k, 0, count:stop] = inputs + load.start
                indice_pairs[k, 1, count:stop] = row[inputs]
                count = stop
            indice_pairs[k, :, count:] = -1
            indice_num[k] = count


KERNELS = {"get_indice_pairs": GetIndicePairs}
