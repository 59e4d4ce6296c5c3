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
    """Some rows of samples of one row of bins, flat: rows of samples, then columns."""

    y: Line
    x: Line
    image: Array  # the number of the image of each
    shape: tuple[int, int, int]  # rows of samples, bins, columns of samples per bin

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


def sums_of_bins(images: Array, bins: BinRow, sizes: Array, rounding: Rounding) -> tuple[Array, Array]:
    """Per bin of a row the sums of V and of the samples' own bounds, to which V is added where it is doubtful.

    images are padded; sizes [samples, C] are the weighted sums V of absolute values, also of samples that don't count.
    """
    each = sample_bound(images, bins.image, bins.y.axis, bins.x.axis, sizes.astype(np.float32), rounding)
    with np.errstate(invalid="ignore", over="ignore"):
        return bins.per_bin(sizes), bins.per_bin(np.where(bins.doubtful, each + sizes, each))


def mean_bound(terms: Array, bounds: Array, n: Array, baseline: Array, rounding: Rounding) -> Array:
    """The bound of means of n samples: float32 of the baseline's shape; terms and bounds are those sums.

    (bounds + gamma(n + 3) terms)/n + (n + 8)t + the output's rounding; 0 where there are no samples.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        rest = (bounds + rounding.gamma(n + 3) * terms) / np.maximum(n, 1) + (n + 8) * rounding.smallest
        rest = np.where(n == 0, 0, rest + rounding.of_output(baseline, rest))
    return stored(rest, terms, baseline, rounding.output)


def undecided_means(images: Array, bins: BinRow, sizes: Array) -> Array:
    """Which bins sample NaN or Inf or not, as positions are rounded: bool [bins, C]; arguments as in sums_of_bins."""
    found = undecided_samples(images, bins.image, bins.y.certain, bins.x.certain)
    found |= bins.doubtful & ~np.isfinite(sizes)
    undecided: Array = bins.per_bin(found.astype(np.float64)) > 0
    return undecided
