"""No right kernel is beyond its bound, and faulty ones are: random cases, many formulations of each operator."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from generators.operator_registry import operator_named
from tests.generators.error_bounds.kernels import (
    COORDINATES,
    INTERPOLATIONS,
    SCATTERS,
    Array,
    draw_grid,
    draw_values,
    sample,
    scatter,
    sums,
    terms,
    worst,
)

F = np.float32
SIZES = (1, 2, 3, 5, 7, 33, 64, 65, 257, 1000, 2000)
PIXELS = 70_000  # of an image; the coordinates of both axes are independent
SEEDS = [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 400))]
FORWARD, BACKWARD, VOXEL = map(operator_named, ("roi_crop_forward", "roi_crop_backward", "voxel_pooling_forward"))


def crop_case(rng: np.random.Generator, most: int = 5, pixels: int = PIXELS) -> tuple[dict[str, int], Array]:
    """The sizes and the grid of a random case: up to `most` bins each way, images of up to so many pixels."""
    H = int(rng.choice([size for size in SIZES if size <= pixels]))
    W = int(rng.choice([size for size in SIZES if size * H <= pixels]))
    if rng.random() < 0.5:
        H, W = W, H
    B, C = int(rng.integers(1, 3)), int(rng.integers(1, 5))
    grid = draw_grid(rng, B * int(rng.integers(1, 4)), H, W, most=most)
    sizes = {"B": B, "H": H, "W": W, "C": C, "N": len(grid), "OH": grid.shape[1], "OW": grid.shape[2]}
    return sizes, grid


def bounded(operator: Any, inputs: dict[str, Array], env: dict[str, int], output: str) -> tuple[Array, Array]:
    """The baseline and the bound of an output."""
    baseline = operator.reference(inputs, env)
    return baseline[output], operator.error_bound(inputs, env, baseline=baseline)[output]


class Largest:
    """The largest ratio of a right kernel, and what gave it: printed at the end (`pytest -s`)."""

    def __init__(self) -> None:
        self.ratio, self.origin, self.cases = 0.0, "", 0

    def add(self, ratios: dict[str, float], case: str) -> None:
        """Take in a case; AssertionError where a ratio is above 1."""
        name = max(ratios, key=lambda each: ratios[each])
        self.cases += 1
        if ratios[name] > self.ratio:
            self.ratio, self.origin = ratios[name], f"{name}; {case}"
        assert ratios[name] <= 1, f"{name} has {ratios[name]} in {case}"


@pytest.fixture(scope="module")
def largest() -> Iterator[dict[str, Largest]]:
    """The largest ratios by operator."""
    found: dict[str, Largest] = defaultdict(Largest)
    yield found
    for op, each in found.items():
        print(f"\n{op}: {each.cases} cases, largest ratio of a right kernel {each.ratio:.3f} ({each.origin})", end="")


@pytest.mark.parametrize("seed", SEEDS)
def test_samples(seed: int, largest: dict[str, Largest]) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(4):
        sizes, grid = crop_case(rng)
        images = draw_values(rng, (sizes["B"], sizes["H"], sizes["W"], sizes["C"]))
        baseline, bound = bounded(FORWARD, {"input": images, "grid": grid}, sizes, "output")
        ratios = {
            f"{coordinates}, {interpolation}": worst(sample(images, grid, coordinates, interpolation), baseline, bound)
            for coordinates in COORDINATES
            for interpolation in INTERPOLATIONS
        }
        largest["roi_crop_forward"].add(ratios, f"seed {seed}, {sizes}")


@pytest.mark.parametrize("seed", SEEDS)
def test_gradients(seed: int, largest: dict[str, Largest]) -> None:
    rng = np.random.default_rng([seed, 1])
    for most, pixels in ((5, PIXELS), (5, PIXELS), (30, PIXELS), (60, 1)):
        sizes, grid = crop_case(rng, most, pixels)
        shape = sizes["B"], sizes["H"], sizes["W"], sizes["C"]
        gradients = draw_values(rng, (*grid.shape[:3], sizes["C"]))
        baseline, bound = bounded(BACKWARD, {"grad_output": gradients, "grid": grid}, sizes, "grad_input")
        ratios = {}
        for coordinates in COORDINATES:
            found = terms(gradients, grid, shape, coordinates)
            for order in SCATTERS:
                ratios[f"{coordinates}, {order}"] = worst(scatter(found, shape, order, rng), baseline, bound)
        largest["roi_crop_backward"].add(ratios, f"seed {seed}, {sizes}")


def sum_ratios(points: int, channels: int, rng: np.random.Generator) -> dict[str, float]:
    """The ratios of float32 sums of so many points in one cell."""
    features = draw_values(rng, (1, points, channels))
    inputs = {"geom_xyz": np.zeros((1, points, 3), np.int32), "input_features": features}
    env = dict.fromkeys(("batch_size", "num_voxel_x", "num_voxel_y", "num_voxel_z"), 1)
    env |= {"num_points": points, "num_channels": channels}
    baseline, bound = bounded(VOXEL, inputs, env, "output_features")
    return {name: worst(total.reshape(baseline.shape), baseline, bound) for name, total in sums(features[0], rng)}


@pytest.mark.parametrize("seed", SEEDS)
def test_sums(seed: int, largest: dict[str, Largest]) -> None:
    rng = np.random.default_rng([seed, 2])
    for points in (1, 2, 3, 17, 300, int(10 ** rng.uniform(3, 4))):
        largest["voxel_pooling_forward"].add(sum_ratios(points, 3, rng), f"seed {seed}, {points} points")


@pytest.mark.parametrize(("name", "dtype"), [("half", np.float16), ("bfloat16", ml_dtypes.bfloat16)])
def test_sums_in_a_coarser_dtype(name: str, dtype: Any) -> None:
    rng = np.random.default_rng(6)
    for points in (1, 2, 3, 4, 17):
        features = rng.uniform(0.5, 2, (1, points, 500)).astype(F)
        inputs = {"geom_xyz": np.zeros((1, points, 3), np.int32), "input_features": features}
        env = dict.fromkeys(("batch_size", "num_voxel_x", "num_voxel_y", "num_voxel_z"), 1)
        env |= {"num_points": points, "num_channels": 500}
        baseline = VOXEL.reference(inputs, env)
        bound = VOXEL.error_bound(inputs, env, baseline=baseline, accumulate=name)["output_features"]
        converted, added = np.zeros(500, dtype), np.zeros(500, dtype)
        for row in features[0]:
            converted = converted + row.astype(dtype)  # each feature is rounded, then the sum
            added = (added.astype(np.float64) + row).astype(dtype)  # the sum is rounded
        for total in (converted, added):
            ratio = worst(total.reshape(baseline["output_features"].shape), baseline["output_features"], bound)
            assert 0.1 < ratio <= 1, points


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_a_hundred_thousand_points_in_a_cell(seed: int, largest: dict[str, Largest]) -> None:
    ratios = sum_ratios(100_000, 2, np.random.default_rng([seed, 5]))
    largest["voxel_pooling_forward"].add(ratios, f"seed {seed}, 100000 points")


def test_faulty_samples_are_beyond() -> None:
    rng = np.random.default_rng(3)
    images = rng.uniform(-1, 1, (1, 33, 32, 16)).astype(F)
    grid = rng.uniform(-1, 1, (4, 5, 5, 2)).astype(F)
    env = {"B": 1, "H": 33, "W": 32, "C": 16, "N": 4, "OH": 5, "OW": 5}
    baseline, bound = bounded(FORWARD, {"input": images, "grid": grid}, env, "output")
    right = sample(images, grid, "(g+1)*s/2", "weighted sum")
    scale = np.abs(baseline).max()
    off = right.copy()
    off[2, 3, 1, 5] += F(1e-4) * scale
    narrow = {dtype: sample(images.astype(dtype).astype(F), grid, "(g+1)*s/2", "weighted sum") for dtype in
              (ml_dtypes.bfloat16, np.float16)}  # fmt: skip
    assert worst(right, baseline, bound) < 1
    assert worst(narrow[ml_dtypes.bfloat16], baseline, bound) > 100
    assert worst(narrow[np.float16], baseline, bound) > 10
    assert worst(right * F(1.001), baseline, bound) > 100
    assert worst(off, baseline, bound) > 5


def test_faulty_sums_are_beyond() -> None:
    rng = np.random.default_rng(4)
    features = rng.uniform(-1, 1, (1, 500, 4)).astype(F)
    inputs = {"geom_xyz": np.zeros((1, 500, 3), np.int32), "input_features": features}
    env = dict.fromkeys(("batch_size", "num_voxel_x", "num_voxel_y", "num_voxel_z"), 1)
    baseline, bound = bounded(VOXEL, inputs, env | {"num_points": 500, "num_channels": 4}, "output_features")
    flat = baseline.reshape(-1)

    def ratio(output: Array) -> float:
        return worst(output.reshape(baseline.shape).astype(F), baseline, bound)

    assert ratio(features[0].sum(0, dtype=F)) < 1
    assert ratio(flat - features[0, 77]) > 100, "one lost add"
    assert ratio(flat + features[0, 77]) > 100, "one doubled add"
    assert ratio(flat * F(1.001)) > 1
    assert ratio(features[0].astype(np.float16).sum(0, dtype=np.float16)) > 1
    assert ratio(features[0].astype(ml_dtypes.bfloat16).astype(F).sum(0, dtype=F)) > 1


def test_by_hand() -> None:
    """Two points in one cell, one in another, none in a third: S = 3, |b| = 1, u = 2^-24, t = 2^-126."""
    geom = np.array([[[0, 0, 0], [0, 0, 0], [1, 0, 0]]], np.int32)
    features = np.array([[[2.0], [-1.0], [5.0]]], F)
    env = {"batch_size": 1, "num_points": 3, "num_channels": 1, "num_voxel_x": 3, "num_voxel_y": 1, "num_voxel_z": 1}
    _, bound = bounded(VOXEL, {"geom_xyz": geom, "input_features": features}, env, "output_features")
    u = 2.0**-24
    assert bound.reshape(-1)[0] == pytest.approx(u / (1 - u) * 3 + u * 1, rel=1e-6)
    assert bound.reshape(-1)[1:].tolist() == [0, 0]


def test_where_no_answer_is_given() -> None:
    geom = np.zeros((1, 2, 3), np.int32)
    env = {"batch_size": 1, "num_points": 2, "num_channels": 2, "num_voxel_x": 1, "num_voxel_y": 1, "num_voxel_z": 1}
    features = np.array([[[np.nan, 3e38], [1.0, 3e38]]], F)
    _, bound = bounded(VOXEL, {"geom_xyz": geom, "input_features": features}, env, "output_features")
    assert np.isnan(bound).all()
    images = np.array([np.nan, 1.0, 2.0, 3.0], F).reshape(1, 1, 4, 1)
    grid = np.array([[[[0, -1 / 3], [0, 1], [7, 7]]]], F)
    sizes = {"B": 1, "H": 1, "W": 4, "C": 1, "N": 1, "OH": 1, "OW": 3}
    _, bound = bounded(FORWARD, {"input": images, "grid": grid}, sizes, "output")
    near, last, outside = bound.reshape(-1)
    assert np.isnan(near), "the floor may fall on the cell with the NaN"
    assert last > 0
    assert outside == 0


def test_no_answer_where_a_partial_sum_of_a_gradient_may_overflow() -> None:
    """Two bins at the first pixel, 3e38 and -3e38, add up to 0; one at the last pixel is 1."""
    gradients = np.array([3e38, -3e38, 1], F).reshape(1, 1, 3, 1)
    grid = np.array([[[[0, -1], [0, -1], [0, 1]]]], F)
    sizes = {"B": 1, "H": 1, "W": 9, "C": 1, "N": 1, "OH": 1, "OW": 3}
    baseline, bound = bounded(BACKWARD, {"grad_output": gradients, "grid": grid}, sizes, "grad_input")
    assert baseline.reshape(-1).tolist() == [0] * 8 + [1]
    first, *others = bound.reshape(-1)
    assert np.isnan(first)
    assert [bool(other > 0) for other in others] == [True] + [False] * 5 + [True, True], (
        "a point may fall into the cell further in"
    )
    _, small = bounded(BACKWARD, {"grad_output": gradients / F(10), "grid": grid}, sizes, "grad_input")
    assert np.isfinite(small).all()


def test_copies_have_a_bound_of_zero_and_integers_none() -> None:
    psamask, pairs = operator_named("psamask_forward"), operator_named("get_indice_pairs")
    assert {name: bound.tolist() for name, bound in psamask.error_bound({}, {}).items()} == {"y": 0}
    assert pairs.error_bound({}, {}) == {}
    column = operator_named("masked_im2col_forward").error_bound({}, {})
    assert {name: bound.shape for name, bound in column.items()} == {"data_col": ()}
