"""Random tensor data: drawn block by block, each block from a bit generator of its own key.

The bytes of a tensor depend on its key (seed, case id, tensor) alone: not on the number of workers, the order of the
cases, or other tensors. All kinds but `normal` and `clusters` use nothing but raw bits of Philox and exact arithmetic,
which no NumPy release changes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import numpy as np

from generators.data.distributions import Values as Values
from generators.data.distributions import check_values, drawn_dtype, overlay_counts, unique_space
from generators.data.distributions import parse_values as parse_values
from generators.data.distributions import recipe_text as recipe_text
from generators.data.point_clouds import draw_sites
from generators.data.rng import Bits, Key, bit_generator, distinct
from generators.data.rng import keyed_generator as keyed_generator
from generators.data.samplers import CHUNK, FILLS, Array, put_whole
from schemas.errors import InputError

BIT_GENERATOR: Final = "Philox4x64-10, key xxh3_128"
BLOCK: Final = 1 << 20  # elements with a key of their own; part of the data's definition, never to be changed


def draw(values: Values, dims: tuple[int, ...], dtype: str, key: Key) -> Array:
    """An array of these dims and dtype with the values drawn for key = (seed, case id, tensor).

    InputError where a tensor of these dims can't hold them, or for a recipe (the operator draws those).
    """
    check_values(values, dims, dtype)
    known = drawn_dtype(dtype)
    out: Array = np.empty(math.prod(dims), known.storage)
    if values.kind == "unique":
        _draw_unique(values, out, bit_generator((*key, "unique")))
    elif values.kind == "clusters":
        _draw_clusters(values, out, keyed_generator((*key, "clusters")))
    elif values.kind == "file":
        out.reshape(dims)[...] = values.args[0].read(dims, known)
    elif values.kind == "recipe":
        raise InputError(f"the recipe {values.args[0]!r} is for the operator to draw")
    else:
        fill = FILLS[values.kind](values.args, known)
        for index, block in enumerate(_blocks(out, BLOCK)):
            bits = bit_generator((*key, index))
            for number, chunk in enumerate(_blocks(block, CHUNK)):
                fill(chunk, index * BLOCK + number * CHUNK, bits)
    lay_over(values, out, key)
    return out.reshape(dims)


def _blocks(array: Array, size: int) -> Iterator[Array]:
    for start in range(0, array.size, size):
        yield array[start : start + size]


def _draw_unique(values: Values, out: Array, bits: Bits) -> None:
    columns = len(values.args)
    cells = distinct(bits, out.size // columns, unique_space(values))
    rows = out.reshape(-1, columns)
    for column in reversed(range(columns)):
        low, high = values.args[column]
        span = np.uint64(high - low + 1)
        put_whole(rows[:, column], cells % span, low)
        cells //= span


def _draw_clusters(values: Values, out: Array, rng: np.random.Generator) -> None:
    """Rows of [scene,] [depth,] height, width; an axis that the tensor has no column for has size 1."""
    sizes = [high - low + 1 for low, high in values.args]
    batch, *space = [1] * (4 - len(sizes)) + sizes
    rows = draw_sites(rng, out.size // len(sizes), batch, space)[:, 4 - len(sizes) :]
    for column, (low, _) in enumerate(values.args):
        put_whole(out.reshape(rows.shape)[:, column], rows[:, column].astype(np.uint64), low)


def lay_over(values: Values, out: Array, key: Key) -> None:
    """Put exact numbers of NaNs, infinities and special values at drawn positions of a flat tensor, block by block."""
    nan, inf, special = overlay_counts(values, out.size)
    total = nan + inf + special
    if not total:
        return
    unsigned = out.view(f"<u{out.dtype.itemsize}")
    patterns = np.array(values.special, unsigned.dtype)
    seen = [0, 0, 0]  # NaNs, infinities, special values placed before this block
    for index, block in enumerate(_blocks(out, BLOCK)):
        end = index * BLOCK + block.size
        slots = total * end // out.size
        nans = nan * slots // total
        infs = inf * (slots - nans) // max(1, inf + special)
        counts = [nans - seen[0], infs - seen[1], slots - nans - infs - seen[2]]
        if sum(counts):
            at = distinct(bit_generator((*key, index, "special")), sum(counts), block.size)
            at_nan, at_inf, at_special = np.split(at, np.cumsum(counts)[:2])
            if counts[0]:
                block[at_nan] = np.nan
            if counts[1]:
                block[at_inf] = np.where((seen[1] + np.arange(counts[1])) % 2, -np.inf, np.inf)
            order = (seen[2] + np.arange(counts[2])) % max(1, patterns.size)
            unsigned[index * BLOCK :][at_special] = patterns[order] if counts[2] else 0
        seen = [nans, infs, slots - nans - infs]
