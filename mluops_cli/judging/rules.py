"""Comparison rules of outputs that aren't compared element by element: the rulebook of a sparse convolution.

A rulebook is three outputs: out_indices [rows, 4], the coordinates of the active sites; indice_pairs [K, 2, L], per
kernel offset the pairs (input row, output row); indice_num [K], how many pairs of each offset are defined. What lies
behind them is undefined (OPERATORS.md 5).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from mluops_cli.judging.arithmetic import Array

OUTPUTS: Final = ("out_indices", "indice_pairs", "indice_num")
UNUSED: Final = -1  # what strict_tail demands behind the defined pairs
UNMATCHED: Final = -2  # an output row whose coordinates the baseline lacks


def rulebook(
    baseline: Mapping[str, Array], output: Mapping[str, Array], *, canonical: bool = False, strict_tail: bool = False
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Both sides such that comparing them element by element (exactly) is right.

    Undefined pairs of the output are replaced by the baseline's, unless strict_tail demands UNUSED there. canonical:
    rows of out_indices are matched by coordinate, the pairs' output rows renumbered, pairs sorted within each offset.
    Where shapes differ the sides come back untouched: comparing them fails. The arrays given are never changed: a
    side is copied where it has to be.
    """
    expected, found = dict(baseline), dict(output)
    if any(expected[name].shape != found[name].shape for name in OUTPUTS):
        return expected, found
    pairs = found["indice_pairs"].copy()
    if canonical or strict_tail:
        expected["indice_pairs"] = expected["indice_pairs"].copy()
    if canonical:
        numbers = _matching_rows(expected["out_indices"], found["out_indices"])
        found["out_indices"] = _reordered(expected["out_indices"], found["out_indices"], numbers)
    for k, count in enumerate(np.maximum(expected["indice_num"], 0).tolist()):
        if canonical:
            defined = pairs[k, :, :count]
            defined[1] = _renumbered(defined[1], numbers)
            _sort_pairs(defined)
            _sort_pairs(expected["indice_pairs"][k, :, :count])
        tail = expected["indice_pairs"][k, :, count:]
        if strict_tail:
            tail[...] = UNUSED
        else:
            pairs[k, :, count:] = tail
    found["indice_pairs"] = pairs
    return expected, found


def defined_pairs(indice_num: Array, length: int) -> Callable[[int, int], Array]:
    """Tells which flat elements [start, stop) of indice_pairs [K, 2, length] are defined."""

    def mask(start: int, stop: int) -> Array:
        at = np.arange(start, stop)
        return np.asarray(at % length < indice_num[at // (2 * length)])

    return mask


def _matching_rows(expected: Array, found: Array) -> Array:
    """Per row of found the number of the expected row with the same coordinates, UNMATCHED where there is none.

    Of rows found twice only one is matched, so that a duplicate can't stand in for a missing row.
    """
    numbers = np.full(len(found), UNMATCHED, np.int64)
    both = np.concatenate((expected, found)).astype(np.int64)
    order = np.lexsort(both.T[::-1])  # stable: an expected row comes before its equals among the found
    ordered = both[order]
    follows = (ordered[1:] == ordered[:-1]).all(axis=1)
    left, right = order[:-1], order[1:]
    matched = follows & (left < len(expected)) & (right >= len(expected))
    numbers[right[matched] - len(expected)] = left[matched]
    return numbers


def _reordered(expected: Array, found: Array, numbers: Array) -> Array:
    """The found rows in the expected order; rows without a match fill the gaps, in their own order."""
    rows = np.empty_like(found)
    matched = numbers >= 0
    gaps = np.ones(len(expected), np.bool_)
    gaps[numbers[matched]] = False
    rows[numbers[matched]] = found[matched]
    rows[gaps] = found[~matched]
    return rows


def _renumbered(rows: Array, numbers: Array) -> Array:
    """Output rows under the baseline's numbers; what is no row at all can't equal one."""
    valid = (rows >= 0) & (rows < len(numbers))
    renumbered = np.full(len(rows), UNMATCHED, np.int64)
    renumbered[valid] = numbers[rows[valid]]
    return renumbered


def _sort_pairs(pairs: Array) -> None:
    """Sorts pairs [2, n] by (input row, output row), in place."""
    keys = (pairs[0].astype(np.int64) << 32) | (pairs[1].astype(np.int64) & 0xFFFFFFFF)
    keys.sort()
    pairs[0] = keys >> 32
    pairs[1] = (keys & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
