"""Faults that a right kernel shows on changed inputs: swapped coordinates, rounded inputs, items of another image."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from mluops_cli.judging.arithmetic import Array
from mluops_cli.judging.explanations.evidence import BITS_ENOUGH, Difference, Elements, fits
from mluops_cli.judging.patterns import Pattern

_NEARER: Final = 0.5  # an explanation lowers the mean error to less than this fraction of it


@dataclass(frozen=True, slots=True)
class Suspect:
    """What a kernel with one fault computes.

    word and text name the fault; variant, which ends the sentence, tells suspects of one text apart. compute returns
    the output, and a function for its error bound (None where there is none); None where nothing can be computed.
    """

    word: str
    text: str
    variant: str
    compute: Callable[[], tuple[Array, Callable[[], Array | None]] | None]


def recomputed(difference: Difference, suspects: Iterable[Suspect]) -> Iterator[Pattern]:
    """Yield the faults that explain every element, of each word the first, with its variants in one sentence."""
    found: dict[str, tuple[str, list[str]]] = {}
    for suspect in suspects:
        text, variants = found.get(suspect.word, (suspect.text, []))
        if text == suspect.text and _explains(difference, suspect):
            found[suspect.word] = text, [*variants, suspect.variant]
    for word, (text, variants) in found.items():
        yield Pattern(word, f"explained by {text}{' or '.join(variants)}")


def _explains(difference: Difference, suspect: Suspect) -> bool:
    computed = suspect.compute()
    if computed is None or computed[0].shape != difference.output.shape:
        return False
    b, m, expected = (
        np.asarray(array, np.float64).reshape(-1) for array in (difference.baseline, difference.output, computed[0])
    )
    with np.errstate(invalid="ignore", over="ignore"):
        before, after = np.abs(m - b), np.abs(m - expected)
        finite = np.isfinite(before) & np.isfinite(after)
        if not after[finite].sum() < _NEARER * before[finite].sum():
            return False
    bound = computed[1]()
    limit = difference.limit(expected, bound if bound is None or not bound.ndim else bound.reshape(-1))
    if not fits(expected, m, limit):
        return False
    return difference.evidence(Elements(b, m, limit)) >= BITS_ENOUGH
