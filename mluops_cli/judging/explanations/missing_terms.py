"""Sums of rows in which one term is missing or is added twice."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from mluops_cli.judging.arithmetic import Array
from mluops_cli.judging.explanations.evidence import BITS_ENOUGH, Difference, Elements
from mluops_cli.judging.patterns import Pattern

_ROWS: Final = 256  # wrong rows; where there are more nothing is said
_TRIED: Final = 4  # terms per row that are tried, the best ones first
_SHARES: Final = 32  # terms that are tried in all
_SHOWN: Final = 4
_ROUNDINGS: Final = 8  # half ULPs of the larger of baseline and output
_WORDS: Final = {-1: "missing term", 1: "doubled term"}


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of an output's rows: rows of an input, each times a weight.

    share(p) is what row p of the input alone adds to the output, of the output's shape.
    """

    name: str
    rows: Array
    share: Callable[[int], Array]


@dataclass(frozen=True, slots=True)
class _Found:
    """One wrong sum, explained: the sign of the additional term and the rows of the input that it may be."""

    row: int
    sign: int
    terms: tuple[int, ...]


def wrong_terms(difference: Difference, terms: Terms) -> Iterator[Pattern]:
    """Yield that each wrong sum lacks one of its terms, or has one twice, and which, where only one explains it.

    The difference of output and baseline is parallel to a row of the input then, whatever the weight; a weight that is
    not that of the reference kernel is no term.
    """
    found = difference.rows()
    with np.errstate(invalid="ignore"):
        wrong = np.flatnonzero((~(np.abs(found.output - found.baseline) <= found.limit) & _judged(found)).any(axis=1))
    given = np.asarray(terms.rows, np.float64).reshape(-1, terms.rows.shape[-1])
    if not 0 < len(wrong) <= _ROWS or given.shape[1] != found.output.shape[1]:
        return
    given = np.where(np.isfinite(given).all(axis=1, keepdims=True), given, 0)
    shares: dict[int, Array] = {}
    explained: list[_Found] = []
    bits = 0.0
    for row in wrong.tolist():
        one = found.at(row)
        bits += difference.evidence(one) if len(wrong) > 1 else _bits_of_zeros_too(difference, one)
        each = _explained(difference, one, row, given, terms, shares)
        if each is None:
            return
        explained.append(each)
    enough = (BITS_ENOUGH + math.log2(2 * len(given))) * len({each.terms for each in explained})  # one choice each
    if len({each.sign for each in explained}) == 1 and bits >= enough:
        yield _said(difference, terms, explained, shares)


def _judged(found: Elements) -> Array:
    judged: Array = np.isfinite(found.baseline) & ~np.isnan(found.limit)
    return judged


def _bits_of_zeros_too(difference: Difference, one: Elements) -> float:
    """The evidence of the only wrong row, which may be zero: the sum of one term without it."""
    offset = 1.0 + np.abs(one.baseline).max(initial=0.0)
    return difference.evidence(Elements(one.baseline + offset, one.output + offset, one.limit))


def _explained(
    difference: Difference, one: Elements, row: int, given: Array, terms: Terms, shares: dict[int, Array]
) -> _Found | None:
    """The terms that explain a row."""
    if not _judged(one).all() or not np.isfinite(one.output).all():
        return None
    excess = one.output - one.baseline
    allowed = 2 * one.limit + _ROUNDINGS * difference.half_ulp * np.maximum(np.abs(one.output), np.abs(one.baseline))
    with np.errstate(all="ignore"):
        sizes = np.einsum("pc,pc->p", given, given)
        weights = given @ excess / sizes
        rest = np.where(sizes > 0, excess @ excess - weights * weights * sizes, np.inf)
    nearest = np.argsort(rest, kind="stable")[:_TRIED].tolist()
    likely = [p for p in nearest if (np.abs(excess - weights[p] * given[p]) <= allowed).all()]
    fitting: dict[int, list[int]] = {-1: [], 1: []}
    for p in likely:
        if p not in shares:
            if len(shares) == _SHARES:
                return None
            shares[p] = np.asarray(terms.share(p), np.float64).reshape(-1, given.shape[1])
        share = shares[p][row]
        for sign in (-1, 1):
            if share.any() and (np.abs(excess - sign * share) <= allowed).all():
                fitting[sign].append(p)
    for sign, chosen in fitting.items():
        if chosen:
            return _Found(row, sign, tuple(chosen))
    return None


def _said(difference: Difference, terms: Terms, explained: list[_Found], shares: dict[int, Array]) -> Pattern:
    first = explained[0]
    word = _WORDS[first.sign]
    how = "missing" if first.sign < 0 else "added twice"
    place = f"{terms.name}{_index(first.terms[0], terms.rows.shape)}"
    rows = [each.row for each in explained]
    if all(each.terms == first.terms for each in explained) and len(first.terms) == 1:
        reached = np.flatnonzero(shares[first.terms[0]].any(axis=1)).tolist()
        whole = set(reached) <= set(rows)
        shown = ", ".join(_index(row, difference.output.shape) for row in rows[:_SHOWN])
        at = "" if whole else f" at {shown}" + (", ..." if len(rows) > _SHOWN else "")
        return Pattern(word, f"explained by the term of {place} {how}{at}")
    if len(explained) == 1:
        return Pattern(word, f"explained by one term {how}, {place} or an equal one")
    at = _index(first.row, difference.output.shape)
    return Pattern(word, f"explained by one term {how} in each of {len(rows)} sums, such as {place} at {at}")


def _index(row: int, shape: tuple[int, ...]) -> str:
    return str([int(index) for index in np.unravel_index(row, shape[:-1])])
