"""The bounds of bilinear samples (roi_crop) and of their gradients.

A coordinate a = (g + 1)(size - 1)/2 carries an error of 3u(|g| + 1)(size - 1)/2: three roundings, in whatever order the
factors are multiplied. Where a is that close to an integer, the floor may fall on either side of it: the cell on the
other side is admissible too. The sampled function is continuous, so such a flip costs slope times distance only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from generators.error_bounds.precision import Array, Rounding, stored

_BLOCK = 1 << 16  # elements worked on at a time


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

    images is [B, H, W, C], of_image the image of every sample. Per admissible cell with corners v (0 outside) and
    weights w: A = sum |v|, V = sum w |v|, and the largest slopes Ly and Lx; the maximum over the cells counts.
    B = dy Ly + dx Lx + 4u A + 6u V + the output's rounding + 8t; 0 where no admissible cell reaches the image.
    """
    B, H, W, C = images.shape
    pixels = images.reshape(B * H * W, C)
    result = np.empty(baseline.shape, np.float32)
    step = max(1, _BLOCK // max(1, C))
    for start in range(0, len(baseline), step):
        block = slice(start, start + step)
        cells = _cells(y, x, block)
        count = len(baseline[block])
        best = np.zeros((4, count, C))  # A, V, Ly, Lx
        reached = np.zeros(count, bool)
        for rows, low_y, low_x, wy, wx in cells:
            inside, values = _corners(pixels, of_image[block][rows], low_y, low_x, H, W)
            reached[rows] |= inside.any(0)
            found = _cell_terms(values, wy, wx)
            if len(rows) == count:
                np.maximum(best, found, out=best)
            else:
                best[:, rows] = np.maximum(best[:, rows], found)
        A, V, Ly, Lx = best
        with np.errstate(invalid="ignore", over="ignore"):
            rest = A
            terms = A.copy()
            rest = 4 * rounding.unit * A
            rest += 6 * rounding.unit * V
            rest += y.error[block, None] * Ly
            rest += x.error[block, None] * Lx
            rest += 8 * rounding.smallest
            rest += rounding.of_output(baseline[block], rest)
        rest[~reached] = 0
        result[block] = stored(rest, terms, baseline[block], rounding.output)
    return result


def _cells(y: Axis, x: Axis, block: slice) -> Iterator[tuple[Array, Array, Array, Array, Array]]:
    """The admissible cells of a block's samples: which samples, the cell's floors, the weights of its low side."""
    flips_y, flips_x = y.flips[block], x.flips[block]
    known = np.isfinite(y.low[block]) & np.isfinite(x.low[block])
    for of_y in (False, True):
        for of_x in (False, True):
            chosen = known & (flips_y if of_y else True) & (flips_x if of_x else True)
            rows = np.flatnonzero(chosen)
            if len(rows):
                low_y, wy = _side(y, block, rows, other=of_y)
                low_x, wx = _side(x, block, rows, other=of_x)
                yield rows, low_y, low_x, wy, wx


def _side(axis: Axis, block: slice, rows: Array, *, other: bool) -> tuple[Array, Array]:
    """The floor of a cell and the weight of its low side, on one side of the nearest integer."""
    low, fraction = axis.low[block][rows], axis.fraction[block][rows]
    if not other:
        return low, 1 - fraction
    across = axis.other[block][rows]
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
    """A, V, Ly and Lx of a cell, [4, samples, C]; float32 inside, rounded up by a part in a million."""
    v0, v1, v2, v3 = values
    found = np.empty((4, *v0.shape), np.float32)
    A, V, Ly, Lx = found
    with np.errstate(invalid="ignore", over="ignore"):
        np.maximum(np.abs(v2 - v0), np.abs(v3 - v1), out=Ly)
        np.maximum(np.abs(v1 - v0), np.abs(v3 - v2), out=Lx)
        sizes = np.abs(values)
        np.add(sizes[0], sizes[1], out=A)
        A += sizes[2]
        A += sizes[3]
        weights = np.stack([wx * wy, (1 - wx) * wy, wx * (1 - wy), (1 - wx) * (1 - wy)]).astype(np.float32)
        sizes *= weights[:, :, None]
        np.add(sizes[0], sizes[1], out=V)
        V += sizes[2]
        V += sizes[3]
        found *= np.float32(1 + 2.0**-20)
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
    _, H, W = shape
    everything = slice(None)
    targets, samples, weights, shares = [], [], [], []
    error = y.error + x.error + 4 * rounding.unit
    for number, (rows, low_y, low_x, wy, wx) in enumerate(_cells(y, x, everything)):
        for corner in range(4):
            ty, tx = low_y + corner // 2, low_x + corner % 2
            inside = (ty >= 0) & (ty < H) & (tx >= 0) & (tx < W)
            kept = rows[inside]
            target = (of_image[kept] * H + ty[inside].astype(np.int64)) * W + tx[inside].astype(np.int64)
            side_y, side_x = (wy, 1 - wy)[corner // 2], (wx, 1 - wx)[corner % 2]
            targets.append(target)
            samples.append(kept)
            weights.append((side_y * side_x)[inside] if number == 0 else np.zeros(len(kept)))  # D covers a flip
            shares.append(error[kept])
    if not targets or not sum(map(len, targets)):
        return np.zeros(baseline.shape, np.float32)
    target, sample = np.concatenate(targets), np.concatenate(samples)
    weight, share = np.concatenate(weights), np.concatenate(shares)
    # A corner that two admissible cells of a sample share is one term.
    order = np.lexsort((-weight, sample, target))
    target, sample, weight, share = target[order], sample[order], weight[order], share[order]
    once = np.ones(len(target), bool)
    once[1:] = (target[1:] != target[:-1]) | (sample[1:] != sample[:-1])
    target, sample, weight, share = target[once], sample[once], weight[once], share[once]
    pixels, starts, counts = np.unique(target, return_index=True, return_counts=True)
    gamma = rounding.gamma(counts + 2)
    factor = share + np.repeat(gamma, counts) * weight
    result = np.zeros(baseline.shape, np.float32)
    C = gradients.shape[1]
    step = max(1, (1 << 20) // max(1, len(sample)))  # channels at a time
    for start in range(0, C, step):
        block = slice(start, start + step)
        with np.errstate(invalid="ignore", over="ignore"):
            sizes = np.abs(gradients[sample, block])
            terms = np.add.reduceat(weight[:, None] * sizes, starts, axis=0)
            rest = np.add.reduceat(factor[:, None] * sizes, starts, axis=0)
            rest += ((counts + 4) * rounding.smallest)[:, None]
            own = baseline[pixels, block]
            rest += rounding.of_output(own, rest)
        result[pixels, block] = stored(rest, terms, own, rounding.output)
    return result


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
        for rows, low_y, low_x, _, _ in _cells(y, x, slice(None)):
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
        for rows, low_y, low_x, _, _ in _cells(y, x, slice(None)):
            for corner in range(4):
                ty, tx = low_y + corner // 2, low_x + corner % 2
                inside = chosen[rows] & (ty >= 0) & (ty < H) & (tx >= 0) & (tx < W)
                target = (of_image[rows[inside]] * H + ty[inside].astype(np.int64)) * W + tx[inside].astype(np.int64)
                np.logical_or.at(result, target, odd[rows[inside]])
    return result
