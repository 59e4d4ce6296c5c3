"""The greedy cover against all subsets of small families."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from mluops_cli.search.set_cover import greedy_cover


def test_a_cheap_pair_before_an_expensive_whole() -> None:
    sets = {"whole": "abcd", "left": "ab", "right": "cd", "idle": ""}
    assert sorted(greedy_cover(sets, {"whole": 10.0, "left": 1.0, "right": 1.0, "idle": 0.1})) == ["left", "right"]
    assert greedy_cover(sets, {"whole": 1.5, "left": 1.0, "right": 1.0, "idle": 0.1}) == ["whole"]


def test_what_later_sets_cover_is_left_out() -> None:
    # By kills per cost "middle" is first; the two others are needed anyway and cover it.
    sets = {"middle": "bcd", "left": "abc", "right": "def"}
    assert sorted(greedy_cover(sets, {"middle": 1.0, "left": 2.0, "right": 2.0})) == ["left", "right"]


def test_within_a_budget() -> None:
    sets = {"large": "abcdef", "small": "ab", "other": "c"}
    costs = {"large": 5.0, "small": 1.0, "other": 1.0}
    assert sorted(greedy_cover(sets, costs, budget=2.0)) == ["other", "small"]
    assert greedy_cover(sets, costs, budget=1.0) == ["small"]
    assert greedy_cover(sets, costs, budget=0.5) == []


@pytest.mark.parametrize("seed", range(30))
def test_covers_all_and_is_near_the_best(seed: int) -> None:
    rng = random.Random(seed)
    sets = {str(i): {e for e in range(8) if rng.random() < 0.35} for i in range(7)}
    costs = {name: rng.choice([1.0, 2.0, 5.0]) for name in sets}
    everything = set().union(*sets.values())
    chosen = greedy_cover(sets, costs)
    assert set().union(*(sets[name] for name in chosen)) == everything
    for name in chosen:  # none can be left out
        assert set().union(*(sets[other] for other in chosen if other != name)) != everything
    best = min(
        sum(costs[name] for name in some)
        for size in range(len(sets) + 1)
        for some in combinations(sets, size)
        if set().union(*(sets[name] for name in some)) == everything
    )
    assert sum(costs[name] for name in chosen) <= 2.72 * best  # H(8): the bound of the greedy cover
