"""Callables for `--impl python:` whose outputs vary between calls: voxel pooling, and the copies of psamask."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np

_number = count(1)


def _pool(inputs: Any, outputs: Any, params: Any, order: Any, lost: int | None = None) -> None:
    """Add the features in this order, in float32; the point `lost` is left out."""
    xyz, features = inputs["geom_xyz"], inputs["input_features"]
    sums, memo = outputs["output_features"], outputs["pos_memo"]
    sums[...], memo[...] = 0, -1
    limits = [params[f"num_voxel_{axis}"] for axis in "xyz"]
    for point in order:
        for b in range(len(xyz)):
            x, y, _ = xyz[b, point]
            if (xyz[b, point] < 0).any() or (xyz[b, point] >= limits).any():
                continue
            memo[b, point] = b, y, x
            if point != lost:
                sums[b, y, x] += features[b, point]


def steady(op: str, inputs: Any, outputs: Any, params: Any) -> Any:
    """The same order in each call."""
    _pool(inputs, outputs, params, range(inputs["geom_xyz"].shape[1]))


def atomics(op: str, inputs: Any, outputs: Any, params: Any) -> Any:
    """Another order in each call."""
    _pool(inputs, outputs, params, np.random.default_rng(next(_number)).permutation(inputs["geom_xyz"].shape[1]))


def race(op: str, inputs: Any, outputs: Any, params: Any) -> Any:
    """The second of three calls loses an add, which the thresholds don't notice."""
    small = int(np.abs(inputs["input_features"]).max(axis=(0, 2)).argmin())
    lost = small if next(_number) % 3 == 2 else None
    _pool(inputs, outputs, params, range(inputs["geom_xyz"].shape[1]), lost)


def memo_race(op: str, inputs: Any, outputs: Any, params: Any) -> Any:
    """The memo of the last call differs, which its criteria notice."""
    steady(op, inputs, outputs, params)
    if next(_number) % 3 == 0:
        outputs["pos_memo"][0, 0, 0] += 1


def copies(op: str, inputs: Any, outputs: Any, params: Any) -> Any:
    """Copies whose zeros have another sign in the second call."""
    x, y = inputs["x"], outputs["y"]
    _, H, W, _ = x.shape
    h_mask, w_mask = params["h_mask"], params["w_mask"]
    y[...] = 0.0
    for h, w, p, q in np.ndindex(H, W, h_mask, w_mask):
        i, j = h + p - (h_mask - 1) // 2, w + q - (w_mask - 1) // 2
        if 0 <= i < H and 0 <= j < W:
            y[:, h, w, i * W + j] = x[:, h, w, p * w_mask + q]
    if next(_number) % 2 == 0:
        y[y == 0] = -0.0
