"""The kind `clusters`: distinct rows inside their bounds, on surfaces rather than all over."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from generators.data.distributions import check_values, recipe_text
from generators.data.draw import draw, parse_values
from generators.data.point_clouds import draw_sites
from schemas.errors import InputError

KEY = (1, "op/suite/case", "x")


def drawn(pairs: list[list[Any]], count: int, dtype: str = "int32", key: tuple[Any, ...] = KEY) -> Any:
    values = parse_values({"clusters": pairs}, {"B": 2, "space": (11, 90, 80)}, dtype)
    return draw(values, (count, len(pairs)), dtype, key)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float", "uint16"])
@pytest.mark.parametrize(
    "pairs",
    [[[5, 60], [7, 70]], [[0, 11], [3, 50], [1, 60]], [[0, 2], [0, 9], [10, 40], [0, 30]], [[2, 2], [3, 3], [0, 2999]]],
)
def test_rows_are_distinct_and_within_their_bounds(pairs: list[list[int]], dtype: str) -> None:
    rows = drawn(pairs, 1500, dtype)
    assert rows.dtype == {"float": "float32"}.get(dtype, dtype)
    assert len(np.unique(rows, axis=0)) == 1500
    for column, (low, high) in enumerate(pairs):
        assert low <= rows[:, column].min() <= rows[:, column].max() <= high


def test_every_cell_and_none_can_be_asked_for() -> None:
    assert len(np.unique(drawn([[-1, 1], [4, 7]], 12), axis=0)) == 12
    assert drawn([[0, 1], [0, 1]], 0).shape == (0, 2)


def test_expressions_bound_the_columns() -> None:
    rows = drawn([[0, "B - 1"], [0, "space[0] - 1"], [0, "space[1] - 1"], [0, "space[2] - 1"]], 3000)
    assert (rows.max(axis=0) < (2, 11, 90, 80)).all()
    assert np.bincount(rows[:, 0]).tolist() == [1500, 1500]  # the scenes share the rows


def test_the_sites_lie_on_surfaces() -> None:
    """A site has far more neighbours than one of as many sites strewn evenly, about 26 * count / cells."""

    def neighbours(rows: Any) -> float:
        grid = np.zeros((43, 202, 202), bool)
        grid[tuple((rows + 1).T)] = True
        steps = [tuple(np.array(each) - 1) for each in np.ndindex(3, 3, 3) if each != (1, 1, 1)]
        return float(sum(grid[tuple((rows + 1 + step).T)].mean() for step in steps))

    pairs = [[0, 40], [0, 199], [0, 199]]
    even = draw(parse_values({"unique": pairs}, {}, "int32"), (20_000, 3), "int32", KEY)
    assert neighbours(even) < 0.5
    assert neighbours(drawn(pairs, 20_000)) > 2.5


def test_the_rows_depend_on_the_key_alone() -> None:
    pairs = [[0, 20], [0, 99], [0, 99]]
    assert (drawn(pairs, 500) == drawn(pairs, 500)).all()
    assert (drawn(pairs, 500) != drawn(pairs, 500, key=(2, *KEY[1:]))).any()
    assert recipe_text(parse_values({"clusters": pairs}, {}, "int32")) == "clusters [(0, 20), (0, 99), (0, 99)]"


@pytest.mark.parametrize(
    ("pairs", "dims", "message"),
    [
        ([[0, 1], [0, 1]], (5, 2), "5 unique rows are wanted, the range holds 4"),
        ([[0, 9], [0, 9]], (5, 3), r"clusters gives rows of 2, the tensor's dims are \[5, 3\]"),
        ([[0, 9], [9, 0]], (5, 2), "clusters needs low <= high"),
        ([[0, 9]], (5, 1), "clusters needs .*rows of 2 to 4 columns"),
        ([[0, 2**31], [0, 2**31], [0, 9]], (5, 3), "int32's range"),
    ],
)
def test_what_can_not_be_is_refused(pairs: list[list[int]], dims: tuple[int, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_values(parse_values({"clusters": pairs}, {}, "int32"), dims, "int32")


def test_a_huge_batch_takes_as_long_as_its_sites() -> None:
    """A scene for each image would take half a minute."""
    start = time.process_time()
    rows = draw_sites(np.random.default_rng(1), 100_003, 100_000, (2, 9, 7))
    assert time.process_time() - start < 5
    assert len(np.unique(rows, axis=0)) == 100_003
    assert (rows.min(axis=0) == 0).all()
    assert (rows.max(axis=0) < (100_000, 2, 9, 7)).all()
    counts = np.bincount(rows[:, 0])
    assert counts.tolist() == [2, 2, 2, *[1] * 99_997], "the images share the rows"
    assert len(np.unique(rows[:, 1:], axis=0)) > 50, "the scenes differ"
