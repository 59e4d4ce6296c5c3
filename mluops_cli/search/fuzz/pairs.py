"""All pairs of classes of two factors, and their order: every second call starts from the next one."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import cache
from itertools import accumulate, combinations
from random import Random

from mluops_cli.search.fuzz.factors import domain_of


class Pairs:
    """All pairs of classes of two factors, numbered; factors are (name, classes)."""

    def __init__(self, factors: Sequence[tuple[str, tuple[str, ...]]]) -> None:
        self._of_two = list(combinations(factors, 2))
        self._ends = list(accumulate(len(first[1]) * len(second[1]) for first, second in self._of_two))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def at(self, number: int) -> dict[str, str]:
        """Factor -> class of the two."""
        index = bisect_right(self._ends, number)
        first, second = self._of_two[index]
        rest = number - (self._ends[index - 1] if index else 0)
        return {first[0]: first[1][rest // len(second[1])], second[0]: second[1][rest % len(second[1])]}

    def start(self, seed: int, number: int) -> dict[str, str]:
        """The pair of the number-th call that starts from one: each once, then again."""
        count = len(self)
        if not count:
            return {}
        step, first = _order(seed, count)
        return self.at((first + number * step) % count)


@cache
def _order(seed: int, count: int) -> tuple[int, int]:
    """A step that meets all of so many numbers, and where it starts."""
    rng = Random(f"{seed} pairs")
    step = rng.randrange(count)
    while math.gcd(step, count) != 1:
        step += 1
    return step, rng.randrange(count)


@cache
def pairs_of(op: str) -> Pairs:
    """The pairs of classes of an operator."""
    return Pairs(domain_of(op).factors)
