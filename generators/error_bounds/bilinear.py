"""The bounds of bilinear samples (roi_crop) and of their gradients.

A coordinate a = (g + 1)(size - 1)/2 carries an error of 3u(|g| + 1)(size - 1)/2: three roundings, in whatever order the
factors are multiplied. Where a is that close to an integer, the floor may fall on either side of it: the cell on the
other side is admissible too. The sampled function is continuous, so such a flip costs slope times distance only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from generators.error_bounds.precision import Array, Rounding, set_unknown, stored

_BLOCK = 1 << 17  # elements worked on at a time
_TERMS = 1 << 20  # of sums over rows
# Raises a bound by more than the roundings of its own computation in float32 lower it: fewer than 16, of 2^-24 each.
# This part of the term in t is more than subnormal products lose.
_CAUTION = np.float32(1 + 2.0**-20)


@dataclass(frozen=True, slots=True)
class Axis:
    """The coordinates of all grid points along one axis: floor, the other admissible floor, fraction and error."""

    low: Array  # floor(a), float64; NaN where the coordinate is not finite
    other: Array  # the floor on the other side of the nearest integer, equal to low where it can't flip
    fraction: Array  # a - floor(a)
    error: Array  # 3u(|g| + 1)(size - 1)/2

    @property
    def flips(self) -> Array:
        """Where the floor may fall on either side."""
        flips: Array = self.other != self.low
        return flips & np.isfinite(self.low)

    def part(self, block: slice) -> Axis:
        """The coordinates of some grid points."""
        return Axis(self.low[block], self.other[block], self.fraction[block], self.error[block])


def axis_of(grid: Array, size: int, unit: float) -> Axis:
    """The axis of float32 grid values in [-1, 1] (others are allowed) over `size` pixels."""
    g = grid.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        a = (g + 1) * (size - 1) / 2
        a[~np.isfinite(a)] = np.nan
        error = 3 * unit * (np.abs(g) + 1) * (size - 1) / 2
        low, nearest = np.floor(a), np.rint(a)
        beyond = np.where(nearest == low, low - 1, low + 1)  # a is right of the integer, or left of it
        other = np.where(np.abs(a - nearest) <= error, beyond, low)
    return Axis(low, other, a - low, error)


def sample_bound(images: Array, of_image: Array, y: Axis, x: Axis, baseline: Array, rounding: Rounding) -> Array:
    """The bound of every sample: float32 of the baseline's shape [samples, C].

    images is [B, H, W, C] in float32, of_image the image of every sample. Per admissible cell with corners v (0
    outside) and weights w: A = sum |v|, V = sum w |v|, and the largest slopes Ly and Lx; the maximum over the cells
    counts. B = dy Ly + dx Lx + 4u A + 6u V + the output's rounding + 8t; 0 where no admissible cell reaches the image.
    """
    C = images.shape[3]
    result = np.empty(baseline.shape, np.float32)
    step = max(1, _BLOCK // max(1, C))
    for start in range(0, len(baseline), step):
        block = slice(start, start + step)
        of_y, of_x = y.part(block), x.part(block)
        rest = result[block]
        best, reached = _largest_terms(images, of_image[block], of_y, of_x)
        A, V, Ly, Lx = best
        with np.errstate(invalid="ignore", over="ignore"):
            np.multiply(A, np.float32(4 * rounding.unit), out=rest)
            V *= np.float32(6 * rounding.unit)
            Ly *= of_y.error[:, None].astype(np.float32)
            Lx *= of_x.error[:, None].astype(np.float32)
            for term in (V, Ly, Lx):
                rest += term
            rest += np.float32(8 * rounding.smallest)
            rest += rounding.of_output(baseline[block], rest)
            rest *= _CAUTION
        rest[~reached] = 0
        set_unknown(rest, A, baseline[block], rounding.output)
    return result


def _largest_terms(images: Array, of_image: Array, y: Axis, x: Axis) -> tuple[Array, Array]:
    """A, V, Ly and Lx of every sample, [4, samples, C] in float32, and which samples an admissible cell reaches."""
    B, H, W, C = images.shape
    pixels = images.reshape(B * H * W, C)
    count = len(of_image)
    best, reached = None, np.zeros(count, bool)
    for rows, low_y, low_x, wy, wx in _cells(y, x):
        inside, values = _corners(pixels, of_image[rows], low_y, low_x, H, W)
        reached[rows] |= inside.any(0)
        found = _cell_terms(values, wy, wx)
        if best is None and len(rows) == count:
            best = found
            continue
        if best is None:
            best = np.zeros((4, count, C), np.float32)
        for most, more in zip(best, found, strict=True):
            most[rows] = np.maximum(most[rows], more)
    return np.zeros((4, count, C), np.float32) if best is None else best, reached


def _cells(y: Axis, x: Axis) -> Iterator[tuple[Array, Array, Array, Array, Array]]:
    """The admissible cells of samples: which samples, the cell's lower corner, the weights of its low side."""
    flips_y, flips_x = y.flips, x.flips
    known = np.isfinite(y.low) & np.isfinite(x.low)
    for of_y in (False, True):
        for of_x in (False, True):
            chosen = known & (flips_y if of_y else True) & (flips_x if of_x else True)
            rows = np.flatnonzero(chosen)
            if len(rows):
                low_y, wy = _side(y, rows, other=of_y)
                low_x, wx = _side(x, rows, other=of_x)
                yield rows, low_y, low_x, wy, wx


def _side(axis: Axis, rows: Array, *, other: bool) -> tuple[Array, Array]:
    """The floor of a cell and the weight of its low side, on one side of the nearest integer."""
    low, fraction = axis.low[rows], axis.fraction[rows]
    if not other:
        return low, 1 - fraction
    across = axis.other[rows]
    return across, np.clip(1 - (fraction + (low - across)), 0, 1)


def _corners(pixels: Array, image: Array, low_y: Array, low_x: Array, H: int, W: int) -> tuple[Array, Array]:
    """Which of the four corners lie inside, and their values [4, samples, C], 0 outside."""
    ys, xs = np.stack([low_y, low_y, low_y + 1, low_y + 1]), np.stack([low_x, low_x + 1, low_x, low_x + 1])
    inside = (ys >= 0) & (ys < H) & (xs >= 0) & (xs < W)
    index = (image * H + np.where(inside, ys, 0).astype(np.int64)) * W + np.where(inside, xs, 0).astype(np.int64)
    values = pixels[index]
    if not inside.all():
        values[~inside] = 0
    return inside, values


def _cell_terms(values: Array, wy: Array, wx: Array) -> Array:
    """A, V, Ly and Lx of a cell, [4, samples, C] in float32; values is overwritten."""
    found = np.empty(values.shape, np.float32)
    A, V, Ly, Lx = list[Array](found)
    corners = values.reshape(2, 2, *values.shape[1:])
    spare = found[:2]
    with np.errstate(invalid="ignore", over="ignore"):
        for slope, low, high in ((Ly, corners[0], corners[1]), (Lx, corners[:, 0], corners[:, 1])):
            np.abs(np.subtract(high, low, out=spare), out=spare)
            np.maximum(spare[0], spare[1], out=slope)
        np.abs(values, out=values)
        np.add.reduce(values, axis=0, out=A)
        weights = np.stack([wx * wy, (1 - wx) * wy, wx * (1 - wy), (1 - wx) * (1 - wy)]).astype(np.float32)
        values *= weights[:, :, None]
        np.add.reduce(values, axis=0, out=V)
    return found


def gradient_bound(
    gradients: Array,
    of_image: Array,
    y: Axis,
    x: Axis,
    shape: tuple[int, int, int],
    baseline: Array,
    rounding: Rounding,
) -> Array:
    """The bound of every element of the gradient: float32 of the baseline's shape [B*H*W, C].

    gradients is [samples, C], shape (B, H, W). Per target over its n terms: S = sum w |g|, D = sum (dy + dx + 4u) |g|,
    which counts at the corners of every admissible cell. B = D + gamma(n + 2) S + the output's rounding + (n + 4)t;
    0 where no admissible term reaches.
    """
    target, sample, weight = _scattered(of_image, y, x, shape)
    result = np.zeros(baseline.shape, np.float32)
    if not len(target):
        return result
    starts = np.flatnonzero(np.diff(target, prepend=-1))
    pixels, counts = target[starts], np.diff(starts, append=len(target))
    gamma = rounding.gamma(counts + 2)
    factor = (y.error + x.error + 4 * rounding.unit)[sample]
    factor += np.repeat(gamma, counts) * weight
    C = gradients.shape[1]
    # No sum of absolute values is larger than roof; the sums themselves are needed near an overflow only.
    roof = float(counts.max()) * float(np.max(np.abs(gradients), initial=0))
    far_from_overflow = roof < rounding.output.largest * 2.0**-20
    step = max(1, _TERMS // len(sample))  # channels at a time
    for start in range(0, C, step):
        block = slice(start, start + step)
        with np.errstate(invalid="ignore", over="ignore"):
            # A row per channel: a sum over a row is many times faster than one over a column.
            sizes = np.abs(gradients[:, block].T, dtype=np.float64, order="C").take(sample, axis=1)
            terms: Any = roof if far_from_overflow else np.add.reduceat(weight * sizes, starts, axis=1).T
            sizes *= factor
            rest = np.ascontiguousarray(np.add.reduceat(sizes, starts, axis=1).T)
            rest += ((counts + 4) * rounding.smallest)[:, None]
            own = baseline[pixels, block]
            rest += rounding.of_output(own, rest)
        result[pixels, block] = stored(rest, terms, own, rounding.output)
    return result


def _scattered(of_image: Array, y: Axis, x: Axis, shape: tuple[int, int, int]) -> tuple[Array, Array, Array]:
    """The terms of a gradient, sorted by target: the flat pixel number, the sample, the weight.

    The corners of all admissible cells of a sample; one that two cells share is one term.
    """
    _, H, W = shape
    targets, samples, weights = [], [], []
    for inside_y, ty, wy in _touched(y, H):
        for inside_x, tx, wx in _touched(x, W):
            kept = np.flatnonzero(inside_y & inside_x)
            targets.append((of_image[kept] * H + ty[kept].astype(np.int64)) * W + tx[kept].astype(np.int64))
            samples.append(kept)
            weights.append(wy[kept] * wx[kept])
    target = np.concatenate(targets)
    order = np.argsort(target, kind="stable")
    return target[order], np.concatenate(samples)[order], np.concatenate(weights)[order]


def _touched(axis: Axis, size: int) -> Iterator[tuple[Array, Array, Array]]:
    """The pixels along an axis that samples may add to: where there is one inside, its number, its weight.

    The third is the far side of the other admissible cell; its weight is 0, since D covers a flip.
    """
    near, far = 1 - axis.fraction, np.where(axis.other < axis.low, axis.other, axis.other + 1)
    for there, pixel, weight in (
        (True, axis.low, near),
        (True, axis.low + 1, 1 - near),
        (axis.flips, far, np.zeros_like(near)),
    ):
        yield there & (pixel >= 0) & (pixel < size), pixel, weight


def certain_axis(grid: Array, size: int, unit: float) -> Axis:
    """axis_of, without flips where every step of every factoring of the coordinate is exact in float32."""
    axis = axis_of(grid, size, unit)
    g = grid.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        steps = (g + 1, g * (size - 1), (g + 1) * (size - 1))  # halving is exact
        exact = np.logical_and.reduce([step == step.astype(np.float32) for step in steps])
    return replace(axis, other=np.where(exact, axis.low, axis.other))


def undecided_samples(images: Array, of_image: Array, y: Axis, x: Axis) -> Array:
    """Where NaN or Inf is in a cell that a sample reads or not, as its floor falls: bool [samples, C].

    images is [B, H, W, C], y and x are certain axes. Both outcomes are right there: a finite number, and NaN or Inf.
    """
    B, H, W, C = images.shape
    odd = ~np.isfinite(images.reshape(B * H * W, C))
    result = np.zeros((len(of_image), C), bool)
    flips = y.flips | x.flips
    if odd.any() and flips.any():
        for rows, low_y, low_x, _, _ in _cells(y, x):
            open_rows = flips[rows]
            rows, low_y, low_x = rows[open_rows], low_y[open_rows], low_x[open_rows]
            _, values = _corners(odd, of_image[rows], low_y, low_x, H, W)
            result[rows] |= values.any(0)
    return result


def undecided_gradients(gradients: Array, of_image: Array, y: Axis, x: Axis, shape: tuple[int, int, int]) -> Array:
    """Where a gradient of NaN or Inf goes or not, as the floor of its sample falls: bool [B*H*W, C].

    gradients is [samples, C], shape (B, H, W), y and x are certain axes.
    """
    B, H, W = shape
    odd = ~np.isfinite(gradients)
    result = np.zeros((B * H * W, gradients.shape[1]), bool)
    chosen = (y.flips | x.flips) & odd.any(1)
    if chosen.any():
        for rows, low_y, low_x, _, _ in _cells(y, x):
            for corner in range(4):
                ty, tx = low_y + corner // 2, low_x + corner % 2
                inside = chosen[rows] & (ty >= 0) & (ty < H) & (tx >= 0) & (tx < W)
                target = (of_image[rows[inside]] * H + ty[inside].astype(np.int64)) * W + tx[inside].astype(np.int64)
                np.logical_or.at(result, target, odd[rows[inside]])
    return result
