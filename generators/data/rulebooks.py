"""Rulebooks of sparse convolutions: which site reaches which output by which kernel offset, and drawn ones.

A convolution is a mapping with batch, and per axis d, h, w: input_space, output_space, filter_space, stride, pad and
dilation; sub_m is 1 where the outputs are the input sites. Source: the design document get_indice_pairs, section 3.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final

import numpy as np

from generators.data.point_clouds import cell_numbers, cells_at, draw_sites
from generators.data.samplers import Array
from generators.expressions import parse_expression
from schemas.errors import InputError

Convolution = Mapping[str, Any]

_SIZE: Final = "(input_space[{0}] + 2*pad[{0}] - dilation[{0}]*(filter_space[{0}] - 1) - 1)//stride[{0}] + 1"
# The output_space of a convolution that isn't sub_m, as the words of an expression.
OUTPUT_SPACE: Final = ", ".join(_SIZE.format(axis) for axis in range(3))
_DEEPEST: Final = 40  # cells of a drawn scene, as deep as a detector's
_SPARSITY: Final = 4  # columns of a drawn scene per site


def rulebook(indices: Array, convolution: Convolution) -> tuple[Array, Array, Array]:
    """out_indices, indice_pairs and indice_num of these sites; sorted cell numbers in 64 bits stand for the grid."""
    reached = list(_reached(indices, convolution))
    offsets = math.prod(convolution["filter_space"])
    if convolution["sub_m"]:
        out_indices = indices.copy()
        own = cell_numbers(indices, convolution["output_space"])
        rows = np.argsort(own, kind="stable")
        active = own[rows]
    else:
        active = np.unique(_joined(cells for _, _, cells in reached))
        rows = np.arange(len(active))
        out_indices = cells_at(active, convolution["output_space"])
    pairs = np.full((offsets, 2, len(indices)), -1, np.int32)
    num = np.zeros(offsets, np.int32)
    for k, sites, cells in reached:
        at = np.searchsorted(active, cells)
        found = np.flatnonzero(active.take(at, mode="clip") == cells) if len(active) else at[:0]
        num[k] = len(found)
        pairs[k, 0, : num[k]] = sites[found]
        pairs[k, 1, : num[k]] = rows[at[found]]
    return out_indices, pairs, num


def draw_pairs(rng: np.random.Generator, sites: int, outputs: int, kernel: Sequence[int], sub_m: int) -> Array:
    """The indice_pairs of a drawn scene with so many sites, int32 [offsets, 2, sites].

    The convolution keeps the space; where there are fewer outputs than sites and it isn't sub_m, it halves it. Pairs of
    the scene's outputs beyond the wanted number, chosen at random, are left out; where the scene has fewer, the others
    are outputs that nothing reaches.
    """
    batch = min(2, max(1, sites))
    share = -(-sites // batch)
    side = math.isqrt(_SPARSITY * share) + 1
    stride = 1 if sub_m or outputs >= sites else 2
    convolution: dict[str, Any] = {
        "batch": batch,
        "input_space": (min(_DEEPEST, 1 + math.isqrt(share)), side, side + 1),
        "filter_space": tuple(kernel),
        "stride": (stride,) * 3,
        "pad": tuple((size - 1) // 2 for size in kernel),
        "dilation": (1, 1, 1),
        "sub_m": sub_m,
    }
    space = convolution["input_space"] if sub_m else parse_expression(f"({OUTPUT_SPACE})")(convolution)
    indices = draw_sites(rng, sites, batch, convolution["input_space"])
    found, pairs, _ = rulebook(indices, convolution | {"output_space": space})
    if sub_m:
        return pairs
    number = np.full(len(found) + 1, -1, np.int32)  # the last one is that of no output, -1
    kept = np.sort(rng.permutation(len(found))[:outputs])
    number[kept] = np.sort(rng.permutation(outputs)[: len(kept)])
    wanted = number[pairs[:, 1]] >= 0
    order = np.argsort(~wanted, axis=1, kind="stable")
    pairs[:, 1] = number[pairs[:, 1]]
    pairs[:, 0][~wanted] = -1
    drawn: Array = np.take_along_axis(pairs, order[:, None], axis=2)
    return drawn


def sites_reaching(rng: np.random.Generator, outputs: Array, count: int, convolution: Convolution) -> Array:
    """count unique sites that reach exactly the given output cells, each at least once; rows (n, d, h, w), int32.

    InputError where there are no such sites: an output that none reaches alone, or too few or too many sites.
    """
    wanted = np.unique(cell_numbers(outputs, convolution["output_space"]))
    candidates = _candidates(cells_at(wanted, convolution["output_space"]).astype(np.int64), convolution)
    candidates = candidates[np.argsort(rng.random(len(candidates)))]
    places = cells_at(candidates, convolution["input_space"])
    reached = list(_reached(places, convolution))
    site, cell = _joined(sites for _, sites, _ in reached), _joined(cells for _, _, cells in reached)
    output = np.searchsorted(wanted, cell).clip(0, len(wanted) - 1)
    allowed = np.ones(len(places), bool)
    allowed[site[wanted[output] != cell]] = False
    site, output = site[allowed[site]], output[allowed[site]]

    # Each output takes the site that reaches the fewest outputs (the most, where there are fewer sites than outputs).
    degree = np.bincount(site, minlength=len(places)) * (1 if count >= len(wanted) else -1)
    order = np.lexsort((degree[site], output))
    covered, first = np.unique(output[order], return_index=True)
    cover = np.unique(site[order][first])
    allowed[cover] = False
    rest = np.flatnonzero(allowed)
    if len(covered) < len(wanted) or not len(cover) <= count <= len(cover) + len(rest):
        found = f"{len(covered)} of them with {len(cover)} to {len(cover) + len(rest)} sites"
        raise InputError(f"{count} sites can't reach exactly {len(wanted)} outputs in a scene, found {found}")
    rows = places[np.concatenate([cover, rest[: count - len(cover)]])]
    rows = rows[np.argsort(rng.random(count))]
    chosen: Array = rows[np.argsort(rows[:, 0], kind="stable")]
    return chosen


def _reached(indices: Array, convolution: Convolution) -> Iterator[tuple[int, Array, Array]]:
    """Per kernel offset: its number, the sites that reach an output inside output_space, and the output's cell number.

    In linear order; offsets by which no site reaches an output are left out where one axis shows it.
    """
    columns: Array = indices.astype(np.int64).T
    n, places = columns[0], columns[1:]
    moved = [
        place + pad - dilation * np.arange(size)[:, None]  # [size, L]
        for place, pad, dilation, size in zip(
            places, convolution["pad"], convolution["dilation"], convolution["filter_space"], strict=True
        )
    ]
    d, h, w = (each // stride for each, stride in zip(moved, convolution["stride"], strict=True))
    inside_d, inside_h, inside_w = (
        (each >= 0) & (each % stride == 0) & (each // stride < size)
        for each, stride, size in zip(moved, convolution["stride"], convolution["output_space"], strict=True)
    )
    D, H, W = convolution["output_space"]
    _, height, width = convolution["filter_space"]
    some_d, some_h, some_w = (np.flatnonzero(inside.any(axis=1)).tolist() for inside in (inside_d, inside_h, inside_w))
    for kd, kh, kw in product(some_d, some_h, some_w):
        j = np.flatnonzero(inside_d[kd] & inside_h[kh] & inside_w[kw])
        yield (kd * height + kh) * width + kw, j, ((n[j] * D + d[kd, j]) * H + h[kh, j]) * W + w[kw, j]


def _joined(parts: Iterable[Array]) -> Array:
    """The parts one after the other, int64; there may be none."""
    return np.concatenate([np.empty(0, np.int64), *parts])


def _candidates(outputs: Array, convolution: Convolution) -> Array:
    """The cell numbers, in input_space, of all sites that reach one of the outputs."""
    found = []
    for offset in np.ndindex(*convolution["filter_space"]):
        places = outputs.copy()
        places[:, 1:] = (
            outputs[:, 1:] * convolution["stride"] - convolution["pad"] + np.multiply(offset, convolution["dilation"])
        )
        inside = ((places[:, 1:] >= 0) & (places[:, 1:] < convolution["input_space"])).all(axis=1)
        found.append(cell_numbers(places[inside], convolution["input_space"]))
    cells: Array = np.unique(np.concatenate(found))
    return cells
