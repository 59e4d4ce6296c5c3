"""Outputs of related calls held against each other: equal bits for copies and rulebooks, within 2B for sums."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from generators.contracts.relations import Renumbering
from mluops_cli.judging.arithmetic import Array
from mluops_cli.judging.bounds import TWICE, bound_ratio


def difference(expected: Array, found: Array, bound: Array | None, *, loose_zero: bool = False) -> str:
    """Where two outputs differ by more than rounding explains; empty where they don't.

    bound holds the error bounds of both, float32; 0 in an array of shape () for copies. None for integers, and for
    floating outputs without a bound: nothing can be said of those. loose_zero: the sign of a copied zero is no matter.
    """
    if expected.shape != found.shape:
        return f"shape {list(found.shape)}, expected {list(expected.shape)}"
    if bound is None and expected.dtype.kind not in "iub":
        return ""
    if bound is None or (bound.ndim == 0 and not bound):
        return _unequal(expected, found, loose_zero=loose_zero)
    result = bound_ratio(expected, found, bound)
    if result.ratio <= TWICE or result.index is None:
        return ""
    size = "no rounding explains" if np.isinf(result.ratio) else f"{result.ratio:.3g} x the error bound,"
    return f"{list(result.index)}: {size} {found[result.index]} instead of {expected[result.index]}"


def _unequal(expected: Array, found: Array, *, loose_zero: bool) -> str:
    """The first element with other bits; NaNs are equal to each other, zeros where loose_zero says so."""
    bits = f"u{expected.dtype.itemsize}"
    unequal = np.ascontiguousarray(expected).view(bits) != np.ascontiguousarray(found).view(bits)
    with np.errstate(invalid="ignore"):
        unequal &= ~((expected != expected) & (found != found))
        if loose_zero:
            unequal &= expected != found
    if not unequal.any():
        return ""
    at = tuple(map(int, np.unravel_index(int(unequal.argmax()), unequal.shape)))
    return f"{list(at)}: {found[at]} instead of {expected[at]}"


def pairs_of(indices: Array, outputs: Mapping[str, Array]) -> Array | str:
    """A rulebook without its numbering: rows (kernel offset, input site, output site), sorted; else what is wrong.

    The sites are rows of `indices` and of out_indices, 4 integers each: pairs and rows may stand in any order.
    """
    pairs, sites = outputs["indice_pairs"], outputs["out_indices"]
    found = []
    for offset, number in enumerate(outputs["indice_num"].tolist()):
        if not 0 <= number <= len(indices):
            return f"indice_num[{offset}] is {number}, there are {len(indices)} sites"
        source, target = pairs[offset, :, :number]
        for what, rows, limit in (("site", source, len(indices)), ("output", target, len(sites))):
            if number and not (rows.min() >= 0 and rows.max() < limit):
                return f"indice_pairs[{offset}] names {what} {rows.min() if rows.min() < 0 else rows.max()} of {limit}"
        found.append(np.column_stack([np.full(number, offset, np.int32), indices[source], sites[target]]))
    return _sorted(np.concatenate(found) if found else np.empty((0, 9), np.int32))


def with_numbers(pairs: Array, column: int, numbers: Renumbering) -> Array:
    """The pairs with new numbers in a column of both sites, sorted again."""
    pairs = pairs.copy()
    for at in (1 + column, 5 + column):
        pairs[:, at] = numbers.of(pairs[:, at])
    return _sorted(pairs)


def _sorted(rows: Array) -> Array:
    return rows[np.lexsort(rows.T[::-1])]


def pairs_differ(expected: Array, found: Array) -> str:
    """The first pair that only one of two sorted rulebooks has; empty where they are equal."""
    if np.array_equal(expected, found):
        return ""
    own, other = ({*map(tuple, each.tolist())} for each in (expected, found))
    only = min(own ^ other, default=None)
    if only is None:
        return "a pair is there twice"
    offset, site, target = only[0], list(only[1:5]), list(only[5:])
    return f"offset {offset}: the pair of site {site} and output {target} is {'missing' if only in own else 'added'}"
