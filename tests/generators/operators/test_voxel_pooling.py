"""voxel_pooling: hand-checked values, brute force, preserved sums, bounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generators.operator_registry import operator_named
from generators.operators import voxel_pooling

OPERATOR = operator_named("voxel_pooling_forward")


def pool(geom: Any, features: Any, X: Any, Y: Any, Z: Any) -> Any:
    geom, features = np.asarray(geom, np.int32), np.asarray(features, np.float32)
    params = {"num_voxel_x": X, "num_voxel_y": Y, "num_voxel_z": Z}
    shapes = {"geom_xyz": geom.shape, "input_features": features.shape}
    outputs = OPERATOR.baseline({"geom_xyz": geom, "input_features": features}, shapes, params)
    return outputs["output_features"], outputs["pos_memo"]


def loops(geom: Any, features: Any, X: Any, Y: Any, Z: Any) -> Any:
    B, N, C = features.shape
    output, memo = np.zeros((B, Y, X, C)), np.full((B, N, 3), -1, np.int32)
    for b, n in np.ndindex(B, N):
        x, y, z = map(int, geom[b, n])
        if 0 <= x < X and 0 <= y < Y and 0 <= z < Z:
            memo[b, n] = (b, y, x)
            for c in range(C):
                output[b, y, x, c] += float(features[b, n, c])
    return output, memo


def test_hand_checked_bounds() -> None:
    """Rows inside, x = -1, x = X, y = Y, z = Z, inside: the four in the middle stay at -1."""
    geom = [[[0, 0, 0], [-1, 0, 0], [3, 0, 0], [0, 2, 0], [0, 0, 1], [2, 1, 0]]]
    output, memo = pool(geom, np.arange(1, 7).reshape(1, 6, 1), X=3, Y=2, Z=1)
    np.testing.assert_array_equal(memo[0], [[0, 0, 0], [-1] * 3, [-1] * 3, [-1] * 3, [-1] * 3, [0, 1, 2]])
    np.testing.assert_array_equal(output[0, :, :, 0], [[1, 0, 0], [0, 0, 6]])


def test_all_z_share_one_cell() -> None:
    output, _ = pool([[[0, 0, 0], [0, 0, 1]]], [[[1], [2]]], X=1, Y=1, Z=2)
    assert output.item() == 3


@settings(max_examples=60, deadline=None)
@given(st.tuples(*[st.integers(1, 5)] * 6), st.integers(0, 30), st.integers(0, 2**32))
def test_reference_equals_the_loops(size: Any, block: Any, seed: int) -> None:
    """block: a tiny block of work, so that segments of one cell are cut at every place."""
    B, N, C, X, Y, Z = size
    N *= 5
    rng = np.random.default_rng(seed)
    geom = rng.integers(-1, 6, (B, N, 3))
    features = rng.uniform(-1, 1, (B, N, C)).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(voxel_pooling, "_BLOCK", block)
        output, memo = pool(geom, features, X, Y, Z)
    expected, expected_memo = loops(geom, features, X, Y, Z)
    np.testing.assert_array_equal(memo, expected_memo)
    np.testing.assert_allclose(output, expected, rtol=1e-6, atol=1e-6)


def test_the_sum_of_all_inside_points_is_preserved() -> None:
    rng = np.random.default_rng(8)
    geom, features = rng.integers(-2, 9, (2, 500, 3)), rng.integers(-9, 10, (2, 500, 3)).astype(np.float32)
    output, memo = pool(geom, features, 7, 6, 5)
    np.testing.assert_array_equal(output.sum((0, 1, 2)), features[memo[..., 0] >= 0].sum(0))


def test_nan_and_inf_stay_in_their_voxel_and_channel() -> None:
    geom = [[[0, 0, 0], [0, 0, 0], [1, 0, 0], [1, 0, 0], [5, 0, 0]]]
    features = [[[math.nan, 1], [2, 3], [math.inf, 4], [-math.inf, 5], [math.nan, math.nan]]]
    output, _ = pool(geom, features, 3, 1, 1)
    np.testing.assert_array_equal(output[0, 0], [[math.nan, 4], [math.nan, 9], [0, 0]])


def test_a_sum_beyond_float32_is_inf_without_a_warning() -> None:
    output, _ = pool(np.zeros((1, 3, 3)), np.full((1, 3, 1), 3e38), 1, 1, 1)
    assert output.tolist() == [[[[np.inf]]]]


def test_no_point_inside_gives_zeros() -> None:
    output, memo = pool([[[9, 9, 9], [-1, 0, 0]]], np.ones((1, 2, 3)), 4, 4, 4)
    assert not output.any()
    assert (memo == -1).all()


def test_the_ends_of_int32_are_outside() -> None:
    _, memo = pool([[[2**31 - 1, 0, 0], [0, -(2**31), 0]]], np.ones((1, 2, 1)), 4, 4, 4)
    assert (memo == -1).all()


def test_drawn_points_lie_inside_on_and_outside_every_bound() -> None:
    env = {"batch_size": 2, "num_points": 5000, "num_voxel_x": 7, "num_voxel_y": 1, "num_voxel_z": 3}
    points = OPERATOR.draw("geom_xyz", "points", env, np.random.default_rng(9), {})
    assert points is not None
    assert points.shape == (2, 5000, 3)
    for axis, size in enumerate((7, 1, 3)):
        assert {-1, 0, size - 1, size} <= set(points[..., axis].ravel().tolist())
        inside = (points[..., axis] >= 0) & (points[..., axis] < size)
        assert 0.85 < inside.mean() < 0.95


def test_theoretical_work() -> None:
    env = {
        "batch_size": 2, "num_points": 3, "num_channels": 5, "num_voxel_x": 7, "num_voxel_y": 11, "num_voxel_z": 1,
    }  # fmt: skip
    assert OPERATOR.theory_ops(env, {}, {}) == 2 * (2 * 11 * 7 * 5) + 2 * 3 * 3
    memo = np.array([[[0, 1, 1], [-1, -1, -1], [0, 2, 2]], [[1, 0, 0], [-1, -1, -1], [-1, -1, -1]]], np.int32)
    geom = np.zeros((2, 3, 3), np.int32)
    assert OPERATOR.theory_io_bytes(env, {"geom_xyz": geom}, {"pos_memo": memo}) == 72 + 3 * (12 + 3 * 5 * 4)
