"""The comparison rule of a rulebook, the outputs of a sparse convolution that aren't compared element by element.

A rulebook has three outputs: out_indices [rows, 4], the coordinates of the active sites; indice_pairs [K, 2, L], per
kernel offset the pairs (input row, output row); indice_num [K], how many pairs of each offset are defined. The pairs
behind these are undefined by the design document of get_indice_pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from mluops_cli.judging.arithmetic import Array

OUTPUTS: Final = ("out_indices", "indice_pairs", "indice_num")
UNUSED: Final = -1  # the value of undefined pairs that strict_tail demands
UNMATCHED: Final = -2  # the number of an output row whose coordinates the baseline lacks


def rulebook(
    baseline: Mapping[str, Array], output: Mapping[str, Array], *, canonical: bool = False, strict_tail: bool = False
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return baseline and output in a form in which comparing them element by element, exactly, is right.

    Undefined pairs of the output are replaced by the baseline's, unless strict_tail demands UNUSED there. canonical:
    rows of out_indices are matched by coordinate, the pairs' output rows renumbered, pairs sorted within each offset.
    Where shapes differ both are returned as they are: comparing them fails. The given arrays are never changed.
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
    """Return a function (start, stop) -> mask of the flat elements of indice_pairs [K, 2, length] that are defined."""

    def mask(start: int, stop: int) -> Array:
        at = np.arange(start, stop)
        return np.asarray(at % length < indice_num[at // (2 * length)])

    return mask


def _matching_rows(expected: Array, found: Array) -> Array:
    """Return per found row the number of the expected row with the same coordinates, UNMATCHED where there is none.

    Of rows found twice only one is matched, so that a duplicate can't replace a missing row.
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
    """Return the found rows in the expected order; rows without a match fill the gaps, in their own order."""
    rows = np.empty_like(found)
    matched = numbers >= 0
    gaps = np.ones(len(expected), np.bool_)
    gaps[numbers[matched]] = False
    rows[numbers[matched]] = found[matched]
    rows[gaps] = found[~matched]
    return rows


def _renumbered(rows: Array, numbers: Array) -> Array:
    """Return output rows by the baseline's numbers; a number that is no row becomes UNMATCHED."""
    valid = (rows >= 0) & (rows < len(numbers))
    renumbered = np.full(len(rows), UNMATCHED, np.int64)
    renumbered[valid] = numbers[rows[valid]]
    return renumbered


def _sort_pairs(pairs: Array) -> None:
    """Sort pairs [2, n] by (input row, output row), in place."""
    keys = (pairs[0].astype(np.int64) << 32) | (pairs[1].astype(np.int64) & 0xFFFFFFFF)
    keys.sort()
    pairs[0] = keys >> 32
    pairs[1] = (keys & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
