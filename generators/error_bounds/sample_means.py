"""The bound of means of bilinear samples (roialign).

A position carries an error of 8 roundings of the numbers that it is made of, in whatever order they are combined. A
sample is bilinear in the image with its position moved into it; it is 0 beyond one pixel outside. The image with its
border pixels doubled has a cell of slope 0 there, so that the bounds of samples in error_bounds.bilinear hold.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from generators.error_bounds.bilinear import Axis, sample_bound, undecided_samples
from generators.error_bounds.precision import Array, Rounding, stored

ROUNDINGS: Final = 8


class Line(NamedTuple):
    """Samples along one axis of the padded image."""

    axis: Axis
    certain: Axis  # without flips of the floor where float32 rounds nothing
    counted: Array  # whether they lie in [-1, size], or perhaps do
    doubtful: Array  # whether they perhaps do


def line_of(at: Array, reach: float, size: int, unit: float, *, exact: bool) -> Line:
    """The samples at these positions, in pixels of an axis of `size` pixels.

    reach is the sum of the sizes of the numbers that a position is made of; exact: float32 rounds none of them.
    """
    error = np.full(at.shape, ROUNDINGS * unit * reach)
    inside = np.clip(at, 0, size - 1) + 1
    low, nearest = np.floor(inside), np.rint(inside)
    other = np.where(np.abs(inside - nearest) <= error, np.where(nearest == low, low - 1, low + 1), low)
    axis, certain = (Axis(low, side, inside - low, error) for side in (other, low if exact else other))
    doubtful = (np.minimum(np.abs(at + 1), np.abs(at - size)) <= error) & (not exact)
    return Line(axis, certain, doubtful | ((at >= -1) & (at <= size)), doubtful)


class BinRow(NamedTuple):
    """The samples of one row of bins, flat: rows of samples, then columns."""

    y: Line
    x: Line
    image: Array  # the number of the image of each
    shape: tuple[int, int, int]  # rows of samples, bins, columns of samples per bin

    @property
    def number(self) -> int:
        """Samples per bin."""
        return self.shape[0] * self.shape[2]

    @property
    def counted(self) -> Array:
        """Where a sample counts, or perhaps: [samples, 1]."""
        counted: Array = (self.y.counted & self.x.counted)[:, None]
        return counted

    @property
    def doubtful(self) -> Array:
        """Where it perhaps counts: [samples, 1]."""
        doubtful: Array = (self.y.doubtful | self.x.doubtful)[:, None] & self.counted
        return doubtful

    def per_bin(self, values: Array) -> Array:
        """The sums of values [samples, C] over each bin: [bins, C]."""
        with np.errstate(invalid="ignore"):
            sums: Array = np.where(self.counted, values, 0).reshape(*self.shape, -1).sum((0, 2))
        return sums


def padded(images: Array) -> Array:
    """The images [B, H, W, C] with their border pixels doubled."""
    return np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)), "edge")


def mean_bound(images: Array, bins: BinRow, sizes: Array, baseline: Array, rounding: Rounding) -> Array:
    """The bound of each bin of a row: float32 of the baseline's shape [bins, C].

    images are padded; sizes [samples, C] are the weighted sums V of absolute values, also of samples that don't count.
    Of n samples, each with a bound b of its own, to which V is added where it is doubtful:
    (sum b + gamma(n + 3) sum V)/n + (n + 8)t + the output's rounding.
    """
    n = bins.number
    each = sample_bound(images, bins.image, bins.y.axis, bins.x.axis, sizes.astype(np.float32), rounding)
    with np.errstate(invalid="ignore", over="ignore"):
        terms, rest = bins.per_bin(sizes), bins.per_bin(np.where(bins.doubtful, each + sizes, each))
        rest = (rest + rounding.gamma(np.array(n + 3)) * terms) / n + (n + 8) * rounding.smallest
        return stored(rest + rounding.of_output(baseline, rest), terms, baseline, rounding.output)


def undecided_means(images: Array, bins: BinRow, sizes: Array) -> Array:
    """Which bins sample NaN or Inf or not, as positions are rounded: bool [bins, C]; arguments as in mean_bound."""
    found = undecided_samples(images, bins.image, bins.y.certain, bins.x.certain)
    found |= bins.doubtful & ~np.isfinite(sizes)
    undecided: Array = bins.per_bin(found.astype(np.float64)) > 0
    return undecided
