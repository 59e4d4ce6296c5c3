"""Sites such as a lidar scan leaves in a voxel grid: unique cells on the surfaces of a scene, dense near the sensor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from generators.data.samplers import Array

_GROWTH: Final = 1.02  # a draw that adds fewer points ends the search; the missing points are uniform
_RINGS: Final = 64  # laser beams, each a ring on the ground
_BOXES: Final = 24  # cars, walls, poles per scene
_SCENES: Final = 256  # of a larger batch, images share so many scenes: one takes as long as thousands of sites


def cell_numbers(rows: Array, space: Sequence[int]) -> Array:
    """((n*D + d)*H + h)*W + w of rows (n, d, h, w), in 64 bits: batch*volume may pass 2^31."""
    n, d, h, w = rows.astype(np.int64).T
    cells: Array = ((n * space[0] + d) * space[1] + h) * space[2] + w
    return cells


def cells_at(cells: Array, space: Sequence[int]) -> Array:
    """The rows (n, d, h, w) of cell numbers, int32."""
    volume, plane = space[0] * space[1] * space[2], space[1] * space[2]
    axes = (cells // volume, cells % volume // plane, cells % plane // space[2], cells % space[2])
    return np.stack(axes, axis=-1).astype(np.int32)


def draw_sites(rng: np.random.Generator, count: int, batch: int, space: Sequence[int], compact: bool = False) -> Array:
    """count unique rows (n, d, h, w), int32, spread over the batch, in no order within one n.

    compact takes the cells nearest to the sensor, which leaves few holes in the surfaces. Where there are more sites
    than cells (an invalid case) rows repeat.
    """
    volume = math.prod(space)
    if count > batch * volume:
        return cells_at(np.arange(count) % (batch * volume), space)
    shares = [count // batch + (n < count % batch) for n in range(min(batch, count))]  # what lies beyond is empty
    scenes = [_scene(rng, share, space, compact) for share in shares[:_SCENES]]  # shares don't grow
    images = (n * volume + scenes[n % _SCENES][:share] for n, share in enumerate(shares))
    return cells_at(np.concatenate([np.empty(0, np.int64), *images]), space)


def _scene(rng: np.random.Generator, count: int, space: Sequence[int], compact: bool) -> Array:
    """count distinct cell numbers of one scene."""
    volume = math.prod(space)
    if 2 * count >= volume:
        return np.argsort(rng.random(volume))[:count]
    boxes = rng.random((_BOXES, 5))
    waves = rng.random((4, 4))
    seen: Array = np.empty(0, np.int64)
    wanted, before = (2 * count, 0) if compact else (count, 0)
    while len(seen) < wanted and len(seen) >= _GROWTH * before:
        before = len(seen)
        seen = np.unique(np.concatenate([seen, _surface(rng, 2 * count + 64, boxes, waves, space, compact)]))
    while len(seen) < count:  # a space too small for surfaces alone
        anywhere = np.floor(rng.random(count) * volume).astype(np.int64)
        seen = np.unique(np.concatenate([seen, anywhere]))
    rank = _range(seen, space) if compact else rng.random(len(seen))
    chosen = seen[np.argsort(rank, kind="stable")[:count]]
    return chosen[np.argsort(rng.random(count))]


def _range(cells: Array, space: Sequence[int]) -> Array:
    """Distance from the sensor above the middle, by which a scan thins out; equal for the cells of one column."""
    rows = cells_at(cells, space)
    return np.hypot(rows[:, 2] - (space[1] - 1) / 2, rows[:, 3] - (space[2] - 1) / 2)


def _surface(
    rng: np.random.Generator, count: int, boxes: Array, waves: Array, space: Sequence[int], dense: bool
) -> Array:
    """Cell numbers hit by count rays: a wavy ground, and boxes whose sides and tops catch what falls on them.

    The rays lie on rings, or dense, all over; either way their density falls with 1/radius.
    """
    depth, height, width = space
    angle, radius = 2 * np.pi * rng.random(count), np.sqrt(2) * rng.random(count)
    if not dense:
        radius = np.sqrt(2) * (np.floor(rng.random(count) * _RINGS) + 0.5) / _RINGS
    h, w = 0.5 + radius * np.sin(angle) / 2, 0.5 + radius * np.cos(angle) / 2  # in units of the space
    ground = 0.2 + sum(0.04 * np.sin(2 * np.pi * (3 * a * h + 3 * b * w + c)) for a, b, c, _ in waves)
    d = np.array(ground)
    lift = rng.random(count)
    for centre_h, centre_w, size_h, size_w, top in boxes:
        beside = np.maximum(
            np.abs(h - centre_h) / (0.01 + 0.05 * size_h), np.abs(w - centre_w) / (0.01 + 0.05 * size_w)
        )
        roof = ground + 0.1 + 0.6 * top
        d = np.where(beside < 0.8, roof, np.where(beside < 1, ground + lift * (roof - ground), d))
    inside = (h >= 0) & (h < 1) & (w >= 0) & (w < 1)
    rows = [np.floor(part[inside] * size).clip(0, size - 1) for part, size in ((d, depth), (h, height), (w, width))]
    return cell_numbers(np.stack([np.zeros(len(rows[0])), *rows], axis=-1), space)
