"""roialign_forward: hand values, mmcv's loops, borders, bounds of float32 formulations, values that are refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generators.operator_registry import operator_named
from schemas.errors import InputError

ROIALIGN = operator_named("roialign_forward")
F = np.float32


def env_of(image: Any, boxes: Any, **params: Any) -> Any:
    return ROIALIGN.contract.bind({"input": image.shape, "boxes": boxes.shape}, params)


def forward(image: Any, boxes: Any, **params: Any) -> Any:
    image, boxes = np.asarray(image, F), np.asarray(boxes, F)
    return ROIALIGN.reference({"input": image, "boxes": boxes}, env_of(image, boxes, **params))["output"]


def interpolated(image: Any, y: float, x: float, c: int) -> float:
    """bilinear_interpolate of mmcv, word by word."""
    height, width, _ = image.shape
    if y < -1.0 or y > height or x < -1.0 or x > width:
        return 0.0
    y, x = max(y, 0.0), max(x, 0.0)
    y_low, x_low = int(y), int(x)
    if y_low >= height - 1:
        y_high = y_low = height - 1
        y = float(y_low)
    else:
        y_high = y_low + 1
    if x_low >= width - 1:
        x_high = x_low = width - 1
        x = float(x_low)
    else:
        x_high = x_low + 1
    ly, lx = y - y_low, x - x_low
    hy, hx = 1.0 - ly, 1.0 - lx
    v1, v2, v3, v4 = (float(image[row, column, c]) for row in (y_low, y_high) for column in (x_low, x_high))
    return hy * hx * v1 + hy * lx * v2 + ly * hx * v3 + ly * lx * v4


def loops(images: Any, boxes: Any, *, height: int, width: int, ratio: int, scale: float, aligned: bool) -> Any:
    """roi_align_forward of mmcv with pool_mode avg, in Python floats."""
    output = np.zeros((len(boxes), height, width, images.shape[3]))
    for k, box in enumerate(boxes):
        image = images[int(box[0])]
        x1, y1, x2, y2 = (float(each) * scale - (0.5 if aligned else 0.0) for each in box[1:])
        roi_width, roi_height = x2 - x1, y2 - y1
        if not aligned:
            roi_width, roi_height = max(roi_width, 1.0), max(roi_height, 1.0)
        bin_h, bin_w = roi_height / height, roi_width / width
        grid_h = ratio if ratio > 0 else math.ceil(roi_height / height)
        grid_w = ratio if ratio > 0 else math.ceil(roi_width / width)
        for p, q, c in np.ndindex(height, width, images.shape[3]):
            total = 0.0
            for iy in range(grid_h):
                y = y1 + p * bin_h + (iy + 0.5) * bin_h / grid_h
                for ix in range(grid_w):
                    x = x1 + q * bin_w + (ix + 0.5) * bin_w / grid_w
                    total += interpolated(image, y, x, c)
            output[k, p, q, c] = total / max(grid_h * grid_w, 1)
    return output


@pytest.mark.parametrize(
    ("box", "params", "expected"),
    [
        ((0, 0, 0, 2, 2), {}, 4),  # the sample at (1, 1)
        ((0, 0, 0, 2, 2), {"aligned": True}, 2.5),  # at (1/2, 1/2)
        ((0, 0, 0, 4, 4), {"spatial_scale": 0.5}, 4),
        ((0, 0, 0, 1, 1), {}, 2.5),
        ((0, 0.5, 0.5, 0.5, 0.5), {}, 4),  # an empty box is a pixel large
        ((0, 0.5, 0.5, 0.5, 0.5), {"aligned": True}, 1),  # or it is a point
        ((0, 2, 2, 0, 0), {"aligned": True}, 2.5),  # backwards, at (1/2, 1/2)
        ((0, 2, 0, 0, 2), {"aligned": True, "sampling_ratio": 0}, 0),  # backwards: no sample
        ((0, -2, -2, 0, 0), {}, 1),  # at (-1, -1), moved into the image
        ((0, -2.5, -2, 0, 0), {}, 0),  # x = -1.25
        ((0, 1, 1, 3, 3), {}, 4),  # at (2, 2), moved into the image
        ((0, 1.5, 1, 3, 3), {}, 0),  # x = 2.25
        ((0, 0, 0, 2, 2), {"sampling_ratio": 0}, (2.5 + 3.5 + 3 + 4) / 4),  # at 1/2 and 3/2
        ((0, -2, 0, 0, 1), {"sampling_ratio": 2}, (1.5 + 2.5) / 4),  # x = -3/2, -1/2; y = 1/4, 3/4
    ],
)
def test_hand_values(box: Any, params: dict[str, Any], expected: float) -> None:
    given = {"pooled_height": 1, "pooled_width": 1, "sampling_ratio": 1, "spatial_scale": 1.0, **params}
    assert forward([[[[1], [2]], [[3], [4]]]], [box], **given).item() == expected


def test_a_box_that_ends_before_it_begins_runs_backwards() -> None:
    """As in the public case files of others."""
    image = np.random.default_rng(1).random((1, 5, 6, 2), F)
    params = {"pooled_height": 2, "pooled_width": 3, "sampling_ratio": 2, "spatial_scale": 0.5, "aligned": True}
    forwards = forward(image, [(0, 1, 2, 9, 7)], **params)
    assert np.allclose(forward(image, [(0, 9, 7, 1, 2)], **params), forwards[:, ::-1, ::-1], atol=1e-6)
    assert not np.allclose(forwards, forwards[:, ::-1, ::-1], atol=1e-2)


CALLS = st.tuples(
    st.integers(1, 2), st.integers(1, 6), st.integers(1, 6), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3),
    st.integers(0, 3), st.sampled_from([0.125, 0.14676, 1.0, 2.5]), st.booleans(), st.integers(0, 2**32),
)  # fmt: skip


def drawn(B: int, H: int, W: int, scale: float, aligned: bool, seed: int) -> tuple[Any, Any]:
    """An image, and boxes in it, on and beyond its borders, empty ones too."""
    rng = np.random.default_rng(seed)
    image = rng.uniform(-1, 1, (B, H, W, 2)).astype(F)
    ends = rng.uniform(-2, 8, (5, 4))
    ends = np.where(rng.random((5, 4)) < 0.5, np.floor(ends * 4) / 4, ends)
    if aligned:
        ends[:, 2:] = ends[:, :2] + np.abs(ends[:, 2:])
    boxes = np.concatenate([rng.integers(0, B, (5, 1)), ends / scale], axis=1)
    return image, boxes.astype(F)


@settings(max_examples=60, deadline=None)
@given(CALLS)
def test_it_equals_the_loops(call: Any) -> None:
    B, H, W, height, width, _, ratio, scale, aligned, seed = call
    scale = float(F(scale))
    image, boxes = drawn(B, H, W, scale, aligned, seed)
    params = {"sampling_ratio": ratio, "spatial_scale": scale, "aligned": aligned}
    got = forward(image, boxes, pooled_height=height, pooled_width=width, **params)
    expected = loops(image, boxes, height=height, width=width, ratio=ratio, scale=scale, aligned=aligned)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_nan_beside_a_sample_is_not_read_and_weight_0_is() -> None:
    image = np.ones((1, 3, 3, 1), F)
    image[0, 2, 2, 0] = np.nan
    whole = {"pooled_height": 1, "pooled_width": 1, "sampling_ratio": 1, "spatial_scale": 1.0}
    assert forward(image, [(0, 0, 0, 1, 1)], **whole).item() == 1
    assert np.isnan(forward(image, [(0, 0, 0, 2, 2)], **whole).item())  # at (1, 1): 0 times the NaN
    assert forward(image, [(0, 5, 5, 9, 9)], **whole).item() == 0


# ---- bounds: formulations in float32 ----


def in_float32(image: Any, boxes: Any, env: Any, variant: int) -> Any:
    """Three orders of the same operations: mmcv's, a fraction of the box first, rows before columns."""
    height, width, ratio = env["pooled_height"], env["pooled_width"], env["sampling_ratio"]
    scale, half = F(env["spatial_scale"]), F(0.5 if env["aligned"] else 0)
    output = np.zeros((len(boxes), height, width, image.shape[3]), F)
    for k, box in enumerate(boxes):
        lines = []
        for first, bins, size in ((2, height, image.shape[1]), (1, width, image.shape[2])):
            start, end = box[first] * scale - half, box[first + 2] * scale - half
            extent = end - start if env["aligned"] else max(end - start, F(1))
            share = extent / F(bins)
            number = ratio or max(0, math.ceil(share))
            p, i = np.arange(bins, dtype=F)[:, None], np.arange(number, dtype=F) + F(0.5)
            if variant == 1:
                at = start + (p + i / F(max(number, 1))) / F(bins) * extent
            else:
                at = start + p * share + i * share / F(max(number, 1))
            counted = (at >= -1) & (at <= size)
            at = np.clip(at, F(0), F(size - 1))
            low = np.floor(at).astype(int)
            lines.append((low, np.minimum(low + 1, size - 1), (at - low).astype(F), counted, number))
        (y0, y1, ly, in_y, gy), (x0, x1, lx, in_x, gx) = lines
        pixels = image[int(box[0])]
        for p, q in np.ndindex(height, width):
            total = np.zeros(image.shape[3], F)
            for iy, ix in np.ndindex(gy, gx):
                if in_y[p, iy] and in_x[q, ix]:
                    dy, dx = ly[p, iy], lx[q, ix]
                    rows = [pixels[y, [x0[q, ix], x1[q, ix]]] for y in (y0[p, iy], y1[p, iy])]
                    if variant == 2:
                        upper, lower = ((1 - dx) * left + dx * right for left, right in rows)
                        total += (1 - dy) * upper + dy * lower
                    else:
                        (v1, v2), (v3, v4) = rows
                        total += (1 - dy) * (1 - dx) * v1 + (1 - dy) * dx * v2 + dy * (1 - dx) * v3 + dy * dx * v4
            output[k, p, q] = total / F(max(gy * gx, 1))
    return output


def ratios(seed: int, fault: Any = None) -> Any:
    """The largest error over bound of each formulation, for one drawn call."""
    rng = np.random.default_rng(seed)
    scale, aligned = float(F(rng.choice([0.0625, 0.14676, 1.0, 3.3]))), bool(rng.integers(2))
    image, boxes = drawn(2, int(rng.integers(1, 9)), int(rng.integers(1, 9)), scale, aligned, seed)
    if rng.random() < 0.3:
        image *= F(10) ** rng.integers(-20, 20, image.shape).astype(F)
    params = {"pooled_height": int(rng.integers(1, 4)), "pooled_width": int(rng.integers(1, 4)),
              "sampling_ratio": int(rng.integers(0, 4)), "spatial_scale": scale, "aligned": aligned}  # fmt: skip
    env = env_of(image, boxes, **params)
    inputs = {"input": image, "boxes": boxes}
    baseline = ROIALIGN.reference(inputs, env)["output"]
    bound = ROIALIGN.error_bound(inputs, env)["output"].astype(np.float64)
    worst = []
    for variant in range(3):
        got = in_float32(image if fault is None else fault(image), boxes, env, variant)
        error = np.abs(got.astype(np.float64) - baseline)
        with np.errstate(invalid="ignore", divide="ignore"):
            worst.append(float(np.nanmax(np.where(error == 0, 0, error / bound), initial=0)))
    return worst


@pytest.mark.parametrize("seed", [*range(10), *(pytest.param(s, marks=pytest.mark.slow) for s in range(10, 300))])
def test_no_right_kernel_is_beyond_its_bound(seed: int) -> None:
    assert max(ratios(seed)) <= 1


def test_a_faulty_one_is_beyond_it() -> None:
    """Inputs in half, and a factor of 1.001, which the thresholds of 3e-3 let pass."""
    for fault in (lambda image: image.clip(-1, 1).astype(np.float16).astype(F), lambda image: image * F(1.001)):
        assert max(max(ratios(seed, fault)) for seed in range(3)) > 20


def test_where_float32_may_find_another_number_of_samples_there_is_no_bound() -> None:
    image, boxes = np.ones((1, 40, 40, 1), F), np.array([(0, 0, 0, 30.000001, 30), (0, 0, 0, 29, 30)], F)
    params = {"pooled_height": 1, "pooled_width": 1, "sampling_ratio": 0, "spatial_scale": float(F(0.1))}
    env = env_of(image, boxes, **params)
    bound = ROIALIGN.error_bound({"input": image, "boxes": boxes}, env)["output"]
    assert np.isnan(bound[0]).all()  # 30 * 0.1: 3 or 4 samples
    image[0, 0, 0, 0] = np.nan
    assert ROIALIGN.undecided({"input": image, "boxes": boxes}, env)["output"][0].all()


# ---- values ----


@pytest.mark.parametrize(
    ("box", "params", "told"),
    [
        ((2, 0, 0, 1, 1), {}, "boxes[0, 0] is 2.0, expected the number of one of 2 images"),
        ((-1, 0, 0, 1, 1), {}, "boxes[0, 0] is -1.0"),
        ((0.5, 0, 0, 1, 1), {}, "boxes[0, 0] is 0.5"),
        ((0, 0, 0, 1e6, 1e6), {"sampling_ratio": 0}, "takes more than 1048576 samples"),
        ((0, 0, np.nan, 1, 1), {}, "boxes[0, 2] is nan, roialign_forward takes no NaN and Inf there"),
    ],
)
def test_boxes_that_mean_nothing_are_refused(box: Any, params: dict[str, Any], told: str) -> None:
    inputs = {"input": np.zeros((2, 3, 3, 1), F), "boxes": np.array([box], F)}
    with pytest.raises(InputError) as raised:
        ROIALIGN.check_inputs(inputs, {name: array.shape for name, array in inputs.items()}, params)
    assert told in str(raised.value).replace("boxes[0][2]", "boxes[0, 2]")


@pytest.mark.parametrize("recipe", ["boxes", "whole", "any", "outside"])
@pytest.mark.parametrize("aligned", [False, True])
def test_drawn_boxes_are_legal(recipe: str, aligned: bool) -> None:
    image = np.ones((3, 9, 7, 1), F)
    env = {**env_of(image, np.zeros((200, 5)), aligned=aligned, spatial_scale=0.25), "K": 200}
    boxes = ROIALIGN.draw("boxes", recipe, env, np.random.default_rng(1), {})
    assert boxes is not None
    ROIALIGN.check_values({"input": image, "boxes": boxes}, env)
    assert set(boxes[:, 0]) == {0, 1, 2}
    output = ROIALIGN.reference({"input": image, "boxes": boxes}, env)["output"]
    assert (output.max() == 0) == (recipe == "outside")
    assert ROIALIGN.draw("boxes", "alien", env, np.random.default_rng(1), {}) is None
