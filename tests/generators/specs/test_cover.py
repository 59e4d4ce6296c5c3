"""cover: few combinations of a grid in which every pair (or triple) of values meets, always the same ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations as choose
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from generators.specs.combinations import combinations
from tests.generators.specs.expanded import SMALL, cases

Point = tuple[int, ...]


def points(lengths: Sequence[int], cover: int | None, exclude: Sequence[Mapping[int, int]] = ()) -> list[Point]:
    """The combinations of axes a0, a1, ... that hold 0, 1, ...; exclude: axis -> value."""
    entry: dict[str, Any] = {"matrix": {f"a{axis}": list(range(length)) for axis, length in enumerate(lengths)}}
    entry["exclude"] = [{f"a{axis}": value for axis, value in each.items()} for each in exclude]
    if cover is not None:
        entry["cover"] = cover
    found = [next(iter(attempts))[0] for _, attempts in combinations(entry, {}, "op/s/a")]
    return [tuple(each[f"a{axis}"] for axis in range(len(lengths))) for each in found]


def meetings(found: Sequence[Point], strength: int) -> set[tuple[Point, Point]]:
    """(axes, values) of every `strength` axes in the points."""
    return {
        (axes, tuple(point[axis] for axis in axes)) for point in found for axes in choose(range(len(point)), strength)
    }


@st.composite
def grids(draw: st.DrawFn) -> tuple[list[int], int, list[dict[int, int]]]:
    lengths = draw(st.lists(st.integers(1, 4), min_size=2, max_size=5))
    strength = draw(st.integers(2, min(3, len(lengths))))
    axes = st.lists(st.integers(0, len(lengths) - 1), min_size=1, max_size=3, unique=True)
    exclude = [
        {axis: draw(st.integers(0, lengths[axis] - 1)) for axis in draw(axes)} for _ in range(draw(st.integers(0, 4)))
    ]
    return lengths, strength, exclude


@settings(deadline=None, max_examples=25)
@given(grids())
def test_all_values_that_may_meet_do(grid: tuple[list[int], int, list[dict[int, int]]]) -> None:
    lengths, strength, exclude = grid
    allowed = [
        point
        for point in product(*map(range, lengths))
        if not any(all(point[axis] == value for axis, value in each.items()) for each in exclude)
    ]
    found = points(lengths, strength, exclude)
    assert meetings(found, strength) == meetings(allowed, strength)
    assert set(found) <= set(allowed)
    assert found == sorted(set(found))  # the order of the grid, none twice


@pytest.mark.parametrize(("lengths", "strength", "most"), [([5] * 5, 2, 45), ([2] * 12, 2, 12), ([3] * 6, 3, 70)])
def test_they_are_few(lengths: list[int], strength: int, most: int) -> None:
    assert len(points(lengths, strength)) <= most  # of 3125, 4096 and 729


def test_names_are_those_of_the_grid(tmp_path: Path) -> None:
    axes = (
        "matrix: {params.psa_type: [collect, distribute], sizes.H: [1, 9, 4]}, "
        "zip: [{sizes.N: [1, 2], sizes.W: [7, 5]}]"
    )
    covered = cases(tmp_path, f"    - {{name: a, {SMALL}, {axes}, cover: 2}}")
    every = [case.name for case in cases(tmp_path, f"    - {{name: a, {SMALL}, {axes}}}")]
    names = [case.name for case in covered]
    assert names == [name for name in every if name in names]
    assert (len(names), len(every)) == (6, 12)
    assert {(case.inputs[0].dims[0], case.inputs[0].dims[2]) for case in covered} == {(1, 7), (2, 5)}


def test_cover_of_as_many_axes_as_there_are_is_the_grid() -> None:
    assert points([3, 4], 2) == points([3, 4], None)


def test_exclude_sample_and_include_work_beside_it(tmp_path: Path) -> None:
    text = (
        "matrix: {params.h_mask: [1, 2, 3], params.w_mask: [1, 2, 3], sizes.N: [1, 2, 3]}, cover: 2, "
        "exclude: [{params.h_mask: 1, params.w_mask: 1}, {sizes.N: 3}], "
        "sample: {count: 2, over: {sizes.H: 1..64}}, include: [{sizes.N: 3}]"
    )
    found = cases(tmp_path, f"    - {{name: a, {SMALL}, {text}}}")
    sampled, (added,) = found[:-1], found[-1:]
    masks = {(case.params["h_mask"], case.params["w_mask"]) for case in sampled}
    assert masks == {*product((1, 2, 3), repeat=2)} - {(1, 1)}
    assert {case.inputs[0].dims[0] for case in sampled} == {1, 2}
    assert len(sampled) == 2 * len({case.name[:-5] for case in sampled})
    assert added.name == "a_n3"


def test_the_same_cases_on_every_machine() -> None:
    """A digest of the choice: Python's hashes of texts differ from process to process, and have no part in it."""
    chosen = [points([4, 7, 3, 5], 2), points([3, 3, 4, 2], 3, [{0: 1, 2: 2}])]
    assert xxhash.xxh3_64_hexdigest(repr(chosen).encode()) == "42a7e354d229b226"
