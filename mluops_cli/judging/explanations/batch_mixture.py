"""Mixed items of a batch: the output of an item is that of another one, or the sum of several."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from mluops_cli.judging.arithmetic import Array
from mluops_cli.judging.explanations.evidence import BITS_ENOUGH, LOOKED_AT, Difference, Elements, fits
from mluops_cli.judging.patterns import Pattern

_ITEMS: Final = 64  # of larger batches nothing is said
_SHOWN: Final = 4
_CLOSE: Final = 0.01  # a coefficient is 0 or 1 where it is this near
_ROUNDINGS: Final = 16  # half ULPs per item of a sum


def mixed_batch(difference: Difference, axis: int, count: int) -> Iterator[Pattern]:
    """Yield which items of the baseline each item of the output is the sum of, where that is not itself.

    The items lie along the axis, an equal part of it each. The items are compared with each other; where that finds no
    equal ones, coefficients are found by least squares and must be 0 or 1. The sums must explain every element.
    """
    if not 2 <= count <= _ITEMS or not difference.half_ulp:
        return
    if difference.baseline.size > LOOKED_AT and (axis or not difference.output.flags.c_contiguous):
        return  # each item would be copied
    b, m = (_items(array, axis, count) for array in (difference.baseline, difference.output))
    bound = difference.bound
    limit = difference.limit(b, bound if bound is None or not bound.ndim else _items(bound, axis, count))
    usable = np.isfinite(b).all(0) & np.isfinite(m).all(0) & ~np.isnan(limit).any(0)
    b, m, limit = b[:, usable], m[:, usable], limit[:, usable]
    if b.shape[1] < count:
        return
    live = np.asarray(b.any(axis=1))  # the coefficient of an item of zeros is of no account
    own = np.diag(live.astype(np.float64))
    whole = _matched(b, m, limit, own)
    if whole is None:
        whole = _solved(b, m, live)
    if whole is None or (whole == own).all():
        return
    terms = whole.sum(axis=1, keepdims=True)
    rounding = _ROUNDINGS * terms * difference.half_ulp * (whole @ np.abs(b))
    allowed = np.maximum(terms, 1) * (whole @ limit) + rounding
    enough = BITS_ENOUGH + count * count  # one bit for each coefficient
    if fits(whole @ b, m, allowed) and difference.evidence(Elements(b, m, np.maximum(allowed, limit))) >= enough:
        yield Pattern("mixed batch", f"explained by mixed items of the batch: {_told(whole, own)}")


def _matched(b: Array, m: Array, limit: Array, own: Array) -> Array | None:
    """The coefficients where every item of the output is one of the baseline's, its own if that fits; else None."""
    whole: Array = own.copy()
    for item, values in enumerate(m):
        fitting = (np.abs(values - b) <= limit).all(axis=1)
        if not fitting.any():
            return None
        if not fitting[item]:
            whole[item] = 0
            whole[item, int(np.argmax(fitting))] = 1
    return whole


def _solved(b: Array, m: Array, live: Array) -> Array | None:
    """The coefficients by least squares, where they are 0 and 1; else None."""
    with np.errstate(all="ignore"):
        solved, _, rank, _ = np.linalg.lstsq(b[live].T, m.T, rcond=None)
    nearest = np.rint(solved.T)
    if rank < live.sum() or np.abs(solved.T - nearest).max(initial=0.0) > _CLOSE or not np.isin(nearest, (0, 1)).all():
        return None
    whole = np.zeros((len(m), len(b)))
    whole[:, live] = nearest
    return whole


def _items(array: Array, axis: int, count: int) -> Array:
    """A row per item, float64, thinned to LOOKED_AT elements in all."""
    rows = np.moveaxis(array, axis, 0).reshape(count, -1)
    step = -(-rows.size // LOOKED_AT) | 1 if rows.size > LOOKED_AT else 1
    return np.asarray(rows[:, ::step], np.float64)


def _told(whole: Array, own: Array) -> str:
    if (whole == whole[0]).all():
        return f"every item holds {_sum(whole[0])}"
    changed = np.flatnonzero((whole != own).any(axis=1))
    shown = [f"item {item} holds {_sum(whole[item])}" for item in changed[:_SHOWN]]
    more = len(changed) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _sum(row: Array) -> str:
    chosen = np.flatnonzero(row).tolist()
    shown = " + ".join(f"item {item}" for item in chosen[:_SHOWN]) + (" + ..." if len(chosen) > _SHOWN else "")
    return shown or "zeros"
