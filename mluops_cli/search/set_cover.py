"""Greedy set cover with costs: cases that together kill what all of them kill, cheap ones first."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeVar

T = TypeVar("T")


def greedy_cover(
    sets: Mapping[str, Collection[T]], costs: Mapping[str, float], budget: float | None = None
) -> list[str]:
    """The names of sets in the order of their choice: each adds the most new elements per cost.

    Without a budget all elements are covered, and a set whose elements the later ones cover is left out again; with
    one, sets are taken as long as their costs fit. The same sets always give the same names.
    """
    left = {name: set(elements) for name, elements in sorted(sets.items())}
    chosen: list[str] = []
    spent = 0.0
    while left:
        fits = {name: new for name, new in left.items() if new and (budget is None or spent + costs[name] <= budget)}
        if not fits:
            break
        best = max(fits, key=lambda name: (len(fits[name]) / max(costs[name], 1e-9), len(fits[name])))
        chosen.append(best)
        spent += costs[best]
        new = left.pop(best)
        for each in left.values():
            each -= new
    return _without_idle(chosen, sets, costs)


def _without_idle(chosen: list[str], sets: Mapping[str, Collection[T]], costs: Mapping[str, float]) -> list[str]:
    """Leave out what the others cover, the most expensive first."""
    kept = list(chosen)
    for name in sorted(chosen, key=lambda name: -costs[name]):
        others: set[T] = set().union(*(sets[each] for each in kept if each != name))
        if others >= set(sets[name]):
            kept.remove(name)
    return kept
