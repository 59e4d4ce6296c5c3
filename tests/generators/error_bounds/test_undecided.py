"""FOUND D22: NaN beside a coordinate whose floor may fall on either side of a pixel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from generators.operator_registry import operator_named
from tests.generators.test_exact_suites import FACTORINGS

Array = np.ndarray[Any, Any]


def kernel(op: str, data: Array, grid: Array, image: tuple[int, ...], factoring: int) -> Array:
    """Either direction in float32; one factoring of the coordinates gives the cells."""
    _, H, W, C = image
    rois = np.arange(len(grid)) // (len(grid) // image[0])
    a, b = (FACTORINGS[factoring](grid[..., i], np.float32(size - 1)) for i, size in ((0, H), (1, W)))
    result = np.zeros((grid.size // 2 if op == "roi_crop_forward" else image[0] * H * W, C), np.float32)
    flat = data.reshape(-1, C)
    for down in (0, 1):
        for right in (0, 1):
            y, x = np.floor(a) + down, np.floor(b) + right
            wy = a - np.floor(a) if down else 1 - (a - np.floor(a))
            wx = b - np.floor(b) if right else 1 - (b - np.floor(b))
            inside = (y >= 0) & (y < H) & (x >= 0) & (x < W)
            roi, i, j = np.nonzero(inside)
            pixel = (rois[roi] * H + y[inside].astype(int)) * W + x[inside].astype(int)
            sample = (roi * grid.shape[1] + i) * grid.shape[2] + j
            source, target = (pixel, sample) if op == "roi_crop_forward" else (sample, pixel)
            with np.errstate(invalid="ignore"):
                np.add.at(result, target, (wy * wx)[inside][:, None] * flat[source])
    return result


@pytest.mark.parametrize("op", ["roi_crop_forward", "roi_crop_backward"])
def test_d22_right_kernels_agree_outside_of_undecided_elements(op: str) -> None:
    operator = operator_named(op)
    inside = outside = undecided = total = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        B, H, W, C, per, OH, OW = (int(size) for size in rng.integers(1, (3, 60, 60, 4, 3, 5, 5), endpoint=True))
        image, bins = (B, H, W, C), (B * per, OH, OW, C)
        env = dict(zip(("B", "H", "W", "C", "N", "OH", "OW"), (*image, *bins[:3]), strict=True))
        grid = operator.draw("grid", "grid", env, rng, {})
        assert grid is not None
        data = rng.uniform(-1, 1, image if op == "roi_crop_forward" else bins).astype(np.float32)
        data[rng.random(data.shape) < 0.1] = np.nan
        name, output = ("input", "output") if op == "roi_crop_forward" else ("grad_output", "grad_input")
        inputs = {name: data, "grid": grid}
        expected = operator.reference(inputs, env)[output]
        mask = operator.undecided(inputs, env).get(output, np.zeros(expected.shape, bool))
        undecided, total = undecided + int(mask.sum()), total + mask.size
        for factoring in range(len(FACTORINGS)):
            found = kernel(op, data, grid, image, factoring).reshape(expected.shape)
            wrong = np.isnan(found) != np.isnan(expected)
            inside, outside = inside + int(wrong[mask].sum()), outside + int(wrong[~mask].sum())
    assert outside == 0
    assert inside > 0  # without the mask right kernels fail
    assert undecided < total / 4
