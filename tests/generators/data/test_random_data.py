"""random_data of foreign case files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from generators.data.random_data import draw_random_data
from schemas.casefiles.reading import read_case
from schemas.errors import InputError

KEY = ("case",)


def record(
    folder: Path, random: str, dtype: str = "FLOAT", dims: str = "dims: 1000", ids: tuple[str, ...] = ("input",)
) -> Any:
    """The records of tensors whose text form holds this random_data."""
    tensors = "".join(
        f'input {{ id: "{each}" shape {{ {dims} }} layout: LAYOUT_ARRAY dtype: DTYPE_{dtype} '
        f"random_data {{ {random} }} }}\n"
        for each in ids
    )
    path = folder / "a.prototxt"
    path.write_text(f'op_name: "x"\n{tensors}')
    return read_case(path).inputs


def test_uniform_gaussian_and_discrete(tmp_path: Path) -> None:
    (tensor,) = record(tmp_path, "seed: 5 lower_bound: 2 upper_bound: 4 distribution: UNIFORM")
    values = draw_random_data(tensor, KEY)
    assert values.dtype == np.float32
    assert (values.min(), values.max()) == pytest.approx((2, 4), abs=0.02)
    assert values.max() < 4
    (tensor,) = record(tmp_path, "mu: 10 sigma: 2 distribution: GAUSSIAN", dims="dims: 100 dims: 300")
    values = draw_random_data(tensor, KEY)
    assert values.shape == (100, 300)
    assert (values.mean(), values.std()) == pytest.approx((10, 2), abs=0.1)
    (tensor,) = record(tmp_path, "lower_bound: 0 upper_bound: 3 distribution: DISCRETE_UNIFORM", "INT32")
    assert sorted(set(draw_random_data(tensor, KEY).tolist())) == [0, 1, 2, 3]


def test_absent_fields_have_their_defaults(tmp_path: Path) -> None:
    (bare,) = record(tmp_path, "")
    (full,) = record(tmp_path, "seed: 23 lower_bound: -1 upper_bound: 1 distribution: UNIFORM")
    assert (draw_random_data(bare, KEY) == draw_random_data(full, KEY)).all()


def test_doubles_win(tmp_path: Path) -> None:
    (tensor,) = record(tmp_path, "lower_bound: -9 upper_bound: 9 lower_bound_double: 5 upper_bound_double: 6", "DOUBLE")
    values = draw_random_data(tensor, KEY)
    assert values.min() >= 5
    assert values.max() < 6


def test_inverted_bounds_are_swapped_with_a_warning(tmp_path: Path) -> None:
    (tensor,) = record(tmp_path, "lower_bound: 5 upper_bound: -5")
    told: list[str] = []
    values = draw_random_data(tensor, KEY, told.append)
    assert values.min() >= -5
    assert values.max() < 5
    assert len(told) == 1
    assert 'a.prototxt: input[0] "input": lower_bound is above upper_bound, read as [-5.0, 5.0)' in told[0]


def test_equal_bounds_are_a_constant(tmp_path: Path) -> None:
    (tensor,) = record(tmp_path, "lower_bound: 1.5 upper_bound: 1.5")
    assert set(draw_random_data(tensor, KEY).tolist()) == {1.5}
    (tensor,) = record(tmp_path, "lower_bound: -1.5 upper_bound: -1.5", "INT8")
    assert set(draw_random_data(tensor, KEY).tolist()) == {-2}


def test_two_tensors_of_one_seed_differ(tmp_path: Path) -> None:
    first, second = record(tmp_path, "seed: 7", ids=("input", "input"))
    assert (draw_random_data(first, (*KEY, 0)) != draw_random_data(second, (*KEY, 1))).any()
    assert (draw_random_data(first, KEY) == draw_random_data(first, KEY)).all()
    assert (draw_random_data(first, KEY) != draw_random_data(first, ("other",))).any()


def test_integers_take_the_floor(tmp_path: Path) -> None:
    (tensor,) = record(tmp_path, "lower_bound: -2 upper_bound: 2", "INT16")
    assert sorted(set(draw_random_data(tensor, KEY).tolist())) == [-2, -1, 0, 1]


@pytest.mark.parametrize(
    ("dtype", "storage", "shape"), [("COMPLEX_FLOAT", "<c8", (1000,)), ("COMPLEX_HALF", "<f2", (1000, 2))]
)
def test_complex_parts_are_drawn_apart(tmp_path: Path, dtype: str, storage: str, shape: tuple[int, ...]) -> None:
    (tensor,) = record(tmp_path, "lower_bound: 0 upper_bound: 1", dtype)
    values = draw_random_data(tensor, KEY)
    assert values.dtype == np.dtype(storage)
    assert values.shape == shape
    parts = values.view("<f4").reshape(-1, 2) if dtype == "COMPLEX_FLOAT" else values
    assert (parts[:, 0] != parts[:, 1]).any()


def test_other_distributions_and_dtypes_are_refused(tmp_path: Path) -> None:
    (tensor,) = record(tmp_path, "distribution: BINOMIAL")
    with pytest.raises(InputError, match="random_data of BINOMIAL: expected UNIFORM"):
        draw_random_data(tensor, KEY)
    (tensor,) = record(tmp_path, "", "INT31")
    with pytest.raises(InputError, match=r"input\[0\].*no values can be drawn for dtype int31"):
        draw_random_data(tensor, KEY)


def test_every_public_tensor_with_random_data_can_be_drawn(shared: Path) -> None:
    """Small ones in full; of large ones what is asked for is only read."""
    drawn = inverted = 0
    for path in sorted((shared / "public_cases" / "prototxt").rglob("*.prototxt")):
        for index, tensor in enumerate(read_case(path).inputs):
            if tensor.source == "random_data" and tensor.span <= 1 << 20:
                told: list[str] = []
                values = draw_random_data(tensor, (path.stem, index), told.append)
                drawn += 1
                inverted += len(told)
                assert np.isfinite(values.astype(np.complex128)).all()
    assert drawn > 100
    assert inverted > 0


def test_a7_equal_bounds_of_a_complex_tensor_are_a_constant(tmp_path: Path) -> None:
    """FOUND A7: the floor of 0.5 was taken."""
    (tensor,) = record(tmp_path, "lower_bound: 0.5 upper_bound: 0.5", "COMPLEX_FLOAT")
    assert set(draw_random_data(tensor, KEY).tolist()) == {0.5 + 0.5j}


@pytest.mark.parametrize("random", ["lower_bound: 0 upper_bound: 70000", "distribution: GAUSSIAN mu: 0 sigma: 30000"])
def test_e6_numbers_beyond_half_are_refused(tmp_path: Path, random: str) -> None:
    (tensor,) = record(tmp_path, random, "HALF")
    with pytest.raises(InputError, match=r"input\[0\].*random_data: .* half's range"):
        draw_random_data(tensor, KEY)
