"""roi_crop: hand-checked values, brute force, adjointness, far coordinates, NaN that must not leak."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generators.operator_registry import operator_named
from generators.specs.expansion import expand
from generators.specs.loader import load_spec
from schemas.errors import InputError

FORWARD, BACKWARD = operator_named("roi_crop_forward"), operator_named("roi_crop_backward")


def forward(image: Any, grid: Any) -> Any:
    image, grid = np.asarray(image, np.float32), np.asarray(grid, np.float32)
    shapes = {"input": image.shape, "grid": grid.shape}
    return FORWARD.reference({"input": image, "grid": grid}, FORWARD.contract.bind(shapes, {}))["output"]


def backward(grad_output: Any, grid: Any, image_shape: Any) -> Any:
    grad_output, grid = np.asarray(grad_output, np.float32), np.asarray(grid, np.float32)
    shapes = {"grad_output": grad_output.shape, "grid": grid.shape, "grad_input": image_shape}
    inputs = {"grad_output": grad_output, "grid": grid}
    return BACKWARD.reference(inputs, BACKWARD.contract.bind(shapes, {}))["grad_input"]


def corners(y: Any, x: Any, H: Any, W: Any) -> Any:
    """The formula's four corners inside the image, with their weights, in Python floats."""
    ay, ax = (y + 1) * (H - 1) / 2, (x + 1) * (W - 1) / 2
    y0, x0 = math.floor(ay), math.floor(ax)
    wy, wx = 1 - (ay - y0), 1 - (ax - x0)
    listed = [(y0, x0, wx * wy), (y0, x0 + 1, (1 - wx) * wy), (y0 + 1, x0, wx * (1 - wy))]
    listed.append((y0 + 1, x0 + 1, (1 - wx) * (1 - wy)))
    return [(cy, cx, weight) for cy, cx, weight in listed if 0 <= cy < H and 0 <= cx < W]


def loops_forward(image: Any, grid: Any) -> Any:
    output = np.zeros((*grid.shape[:3], image.shape[3]))
    rois_per_image = len(grid) // len(image)
    for n, i, j in np.ndindex(*grid.shape[:3]):
        for y, x, weight in corners(*map(float, grid[n, i, j]), *image.shape[1:3]):
            for c in range(image.shape[3]):
                output[n, i, j, c] += weight * float(image[n // rois_per_image, y, x, c])
    return output


def loops_backward(grad_output: Any, grid: Any, shape: Any) -> Any:
    grad_input = np.zeros(shape)
    for n, i, j in np.ndindex(*grid.shape[:3]):
        for y, x, weight in corners(*map(float, grid[n, i, j]), *shape[1:3]):
            for c in range(shape[3]):
                grad_input[n // (len(grid) // shape[0]), y, x, c] += weight * float(grad_output[n, i, j, c])
    return grad_input


def one(image: Any, y: Any, x: Any) -> Any:
    return forward(np.asarray(image)[None, :, :, None], [[[[y, x]]]]).item()


@pytest.mark.parametrize(
    ("y", "x", "expected"),
    [
        (-1, -1, 1),
        (-1, 1, 2),
        (1, -1, 3),
        (1, 1, 4),
        (0, 0, 2.5),
        (1, 0, 3.5),
        (0, 1, 3),
        (0, 1.5, 2.25),
        (0, -1.5, 1.5),
    ],
)
def test_hand_checked_values(y: float, x: float, expected: Any) -> None:
    """(1, 0) and (0, 1) lie on an edge, where a public baseline that interchanges two corner checks is wrong."""
    assert one([[1, 2], [3, 4]], y, x) == expected


def test_the_grid_of_all_pixels_reproduces_the_image() -> None:
    image = np.random.default_rng(1).random((1, 5, 7, 2), np.float32)
    y, x = np.meshgrid(np.linspace(-1, 1, 5), np.linspace(-1, 1, 7), indexing="ij")
    np.testing.assert_allclose(forward(image, np.stack([y, x], -1)[None])[0], image[0], atol=1e-6)


shapes = st.tuples(
    st.integers(1, 3), st.integers(1, 6), st.integers(1, 6), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3),
    st.integers(1, 4), st.integers(0, 2**32),
)  # fmt: skip


def drawn(shape: Any) -> Any:
    """An image and a grid with points inside, on edges, on pixel centres and outside."""
    B, H, W, C, per_image, OH, OW, seed = shape
    rng = np.random.default_rng(seed)
    image = rng.uniform(-1, 1, (B, H, W, C)).astype(np.float32)
    grid = rng.uniform(-1.6, 1.6, (B * per_image, OH, OW, 2)).astype(np.float32)
    special = rng.choice(np.array([-1, -0.5, 0, 0.5, 1, 2], np.float32), grid.shape)
    return image, np.where(rng.random(grid.shape) < 0.4, special, grid)


@settings(max_examples=60, deadline=None)
@given(shapes)
def test_forward_equals_the_loops(shape: Any) -> None:
    image, grid = drawn(shape)
    np.testing.assert_array_equal(forward(image, grid), loops_forward(image, grid).astype(np.float32))


@settings(max_examples=60, deadline=None)
@given(shapes)
def test_backward_equals_the_loops(shape: Any) -> None:
    image, grid = drawn(shape)
    grad_output = np.random.default_rng(2).uniform(-1, 1, (*grid.shape[:3], image.shape[3])).astype(np.float32)
    expected = loops_backward(grad_output, grid, image.shape)
    np.testing.assert_allclose(backward(grad_output, grid, image.shape), expected, rtol=1e-6, atol=1e-7)


@settings(max_examples=60, deadline=None)
@given(shapes)
def test_backward_is_the_adjoint_of_forward(shape: Any) -> None:
    """<g, F x> = <F' g, x> up to the rounding of the float32 outputs."""
    image, grid = drawn(shape)
    grad_output = np.random.default_rng(3).uniform(-1, 1, (*grid.shape[:3], image.shape[3])).astype(np.float32)
    left = np.vdot(grad_output.astype(float), forward(image, grid).astype(float))
    right = np.vdot(backward(grad_output, grid, image.shape).astype(float), image.astype(float))
    assert left == pytest.approx(right, rel=1e-5, abs=1e-4)


@pytest.mark.parametrize("far", [5, 1e10, -6.7e7, 3e38, -3.4e38, math.nan, math.inf, -math.inf])
def test_coordinates_beyond_the_image_give_zero_and_take_nothing(far: float) -> None:
    """Warnings are errors in these tests: no cast of a huge or non-finite coordinate may show."""
    grid = np.array([[[[far, 0], [0, far]]]], np.float32)
    assert not forward(np.ones((1, 3, 4, 2)), grid).any()
    assert not backward(np.ones((1, 1, 2, 2)), grid, (1, 3, 4, 2)).any()


def test_a_nan_outside_the_corners_does_not_leak_and_one_of_weight_zero_counts() -> None:
    image = np.array([[1, 2, np.nan], [3, 4, np.nan], [np.nan] * 3], np.float32)[None, :, :, None]
    # The point lies on pixel (0, 0): its other corners (0, 1), (1, 0), (1, 1) have weight 0, all are finite.
    assert forward(image, [[[[-1, -1]]]]).item() == 1
    # On pixel (1, 1) the corners of weight 0 are NaN, and 0 * NaN is NaN.
    assert np.isnan(forward(image, [[[[0, 0]]]]).item())
    # On the last pixel the other corners are outside and not read.
    assert forward(np.nan_to_num(image, nan=7.0), [[[[1, 1]]]]).item() == 7


def test_infinities_take_the_sign_of_their_weight_and_cancel_to_nan() -> None:
    assert forward(np.array([[np.inf, np.inf]], np.float32)[None, :, :, None], [[[[-1, 0]]]]).item() == math.inf
    assert np.isnan(forward(np.array([[np.inf, -np.inf]], np.float32)[None, :, :, None], [[[[-1, 0]]]]).item())


def test_roi_n_reads_image_n_divided_by_rois_per_image() -> None:
    image = np.arange(1, 4, dtype=np.float32).reshape(3, 1, 1, 1)
    grid = np.zeros((6, 1, 1, 2))
    np.testing.assert_array_equal(forward(image, grid).ravel(), [1, 1, 2, 2, 3, 3])


@pytest.mark.parametrize("size", [(1, 1), (2, 5), (33, 4)])
def test_drawn_grids_have_corners_pixel_centres_and_a_rest(size: Any) -> None:
    H, W = size
    env = {"N": 40, "OH": 10, "OW": 10, "H": H, "W": W}
    grid = FORWARD.draw("grid", "grid", env, np.random.default_rng(4), {})
    assert grid is not None
    assert grid.dtype == np.float32
    assert grid.shape == (40, 10, 10, 2)
    assert grid.min() == -1
    assert grid.max() == (1 if max(H, W) > 1 else grid.max())
    pixels = (grid[..., 1].astype(float) + 1) * (W - 1) / 2
    on_centre = np.abs(pixels - pixels.round()) < 1e-5
    assert on_centre.mean() > 0.3
    assert W == 1 or on_centre.mean() < 0.5


def test_theoretical_work() -> None:
    env = {"B": 2, "H": 3, "W": 4, "C": 5, "N": 6, "OH": 7, "OW": 8}
    assert FORWARD.theory_ops(env, {}, {}) == 7 * 2 * 3 * 4 * 5
    assert BACKWARD.theory_ops(env, {}, {}) == 8 * 6 * 7 * 8 * 5


@pytest.mark.parametrize(
    "dist",
    ["uniform: [-1, 1], nan: 0.1", "uniform: [-1, 1], inf: 0.1", "constant: .inf", "choice: [0, .nan]",
     "uniform: [-1, 1], special: [-inf]", "uniform: [-1, 1], special: ['0x7fc00001']"],
)  # fmt: skip
def test_a8_a_spec_puts_no_nan_and_inf_into_a_grid(tmp_path: Path, dist: str) -> None:
    """FOUND A8: there was a switch per operator that no operator set; images may hold them."""
    path = tmp_path / "a.yaml"
    for tensor, refused in (("grid", True), ("input", False)):
        path.write_text(
            "op: roi_crop_forward\nsuites:\n  s:\n    - name: a\n"
            "      sizes: {B: 1, H: 3, W: 3, C: 2, N: 1, OH: 2, OW: 2}\n"
            f"      inputs: {{{tensor}: {{dist: {{{dist}}}}}}}\n"
        )
        if not refused:
            assert len(list(expand(load_spec(path)))) == 1
            continue
        with pytest.raises(InputError, match=r"a\.yaml:6.*dist: grid of roi_crop_forward takes no NaN and Inf"):
            list(expand(load_spec(path)))


def test_a8_inputs_of_files_are_checked_too() -> None:
    image, grid = np.ones((1, 3, 3, 2), np.float32), np.zeros((1, 2, 2, 2), np.float32)
    shapes = {"input": image.shape, "grid": grid.shape, "output": (1, 2, 2, 2)}
    image[0, 0, 0, 0] = np.nan
    FORWARD.baseline({"input": image, "grid": grid}, shapes, {})
    grid[0, 1, 0, 1] = -np.inf
    with pytest.raises(InputError, match=r"grid\[0, 1, 0, 1\] is -inf, roi_crop_forward takes no NaN and Inf there"):
        FORWARD.baseline({"input": image, "grid": grid}, shapes, {})
