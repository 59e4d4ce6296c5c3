"""Right float32 kernels in many formulations, and what they are held against; no code of the package is used here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
F = np.float32
ONE: Final = F(1)


def fused(a: Array, b: Array, c: Array) -> Array:
    """a*b + c with one rounding: the product of two float32 is exact in float64."""
    exact: Array = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
    return exact.astype(F)


def flushed(values: Array) -> Array:
    """The values with subnormal numbers replaced by 0."""
    result: Array = np.where(np.abs(values) < F(2.0**-126), F(0), values)
    return result


# The pixel coordinate of a grid value, s = size - 1: the factors in different orders, multiplied out, fused.
COORDINATES: Final[dict[str, Callable[[Array, Any], Any]]] = {
    "(g+1)*s/2": lambda g, s: (g + ONE) * s / F(2),
    "(g+1)*(s/2)": lambda g, s: (g + ONE) * (s / F(2)),
    "(g+1)/2*s": lambda g, s: (g + ONE) / F(2) * s,
    "(g+1)*0.5*s": lambda g, s: (g + ONE) * F(0.5) * s,
    "g*(s/2)+s/2": lambda g, s: g * (s / F(2)) + s / F(2),
    "fused": lambda g, s: fused(g, s / F(2), s / F(2)),
}


def _weighted(v: list[Array], y: Array, x: Array) -> Any:
    return x * y * v[0] + (ONE - x) * y * v[1] + x * (ONE - y) * v[2] + (ONE - x) * (ONE - y) * v[3]


def _rows_first(v: list[Array], y: Array, x: Array) -> Any:
    return y * (x * v[0] + (ONE - x) * v[1]) + (ONE - y) * (x * v[2] + (ONE - x) * v[3])


def _columns_first(v: list[Array], y: Array, x: Array) -> Any:
    return (v[0] * y + v[2] * (ONE - y)) * x + (v[1] * y + v[3] * (ONE - y)) * (ONE - x)


def _fused_steps(v: list[Array], y: Array, x: Array) -> Any:
    top, bottom = fused(v[1] - v[0], ONE - x, v[0]), fused(v[3] - v[2], ONE - x, v[2])
    return fused(bottom - top, ONE - y, top)


def _fused_sum(v: list[Array], y: Array, x: Array) -> Any:
    first = fused(v[1], (ONE - x) * y, x * y * v[0])
    return fused(v[3], (ONE - x) * (ONE - y), fused(v[2], x * (ONE - y), first))


def _steps(v: list[Array], y: Array, x: Array) -> Any:
    left, right = v[0] + (ONE - y) * (v[2] - v[0]), v[1] + (ONE - y) * (v[3] - v[1])
    return left + (ONE - x) * (right - left)


def _all_flushed(v: list[Array], y: Array, x: Array) -> Any:
    total: Any = F(0)
    for corner, weight in zip(v, (x * y, (ONE - x) * y, x * (ONE - y), (ONE - x) * (ONE - y)), strict=True):
        total = flushed(total + flushed(flushed(corner) * weight))
    return total


def _backwards_flushed(v: list[Array], y: Array, x: Array) -> Any:
    total = v[3] * ((ONE - x) * (ONE - y)) + v[2] * (x * (ONE - y))
    return flushed(total + v[1] * ((ONE - x) * y) + v[0] * (x * y))


# The sample of four corners with the weights y, x of the low sides.
INTERPOLATIONS: Final[dict[str, Callable[[list[Array], Array, Array], Any]]] = {
    "weighted sum": _weighted,
    "rows first": _rows_first,
    "columns first": _columns_first,
    "steps": _steps,
    "fused steps": _fused_steps,
    "fused sum": _fused_sum,
    "backwards, flushed": _backwards_flushed,
    "all flushed": _all_flushed,
}


def _axes(grid: Array, B: int, H: int, W: int, coordinates: str) -> tuple[Array, Array, Array]:
    """The image, and the float32 coordinates y and x, of every grid point."""
    bins = grid.reshape(-1, 2)
    image = np.repeat(np.arange(len(grid)) // (len(grid) // B), len(bins) // len(grid))
    y, x = (COORDINATES[coordinates](bins[:, axis], F(size - 1)) for axis, size in ((0, H), (1, W)))
    return image, y, x


def sample(images: Array, grid: Array, coordinates: str, interpolation: str) -> Array:
    """roi_crop_forward in float32."""
    B, H, W, C = images.shape
    image, a, b = _axes(grid, B, H, W, coordinates)
    y0, x0 = np.floor(a), np.floor(b)
    wy, wx = (ONE - (a - y0))[:, None], (ONE - (b - x0))[:, None]
    corners, reached = [], np.zeros(len(image), bool)
    for corner in range(4):
        y, x = y0 + corner // 2, x0 + corner % 2
        inside = np.flatnonzero((y >= 0) & (y < H) & (x >= 0) & (x < W))
        values = np.zeros((len(image), C), F)
        values[inside] = images[image[inside], y[inside].astype(int), x[inside].astype(int)]
        reached[inside] = True
        corners.append(values)
    with np.errstate(over="ignore", invalid="ignore"):
        result: Array = INTERPOLATIONS[interpolation](corners, wy, wx)
    return np.where(reached[:, None], result, F(0)).reshape(*grid.shape[:3], C)


class Terms(NamedTuple):
    """The terms y * x * g of a gradient: the flat number of the pixel that each adds to, two weights, a row of g."""

    pixel: Array
    y: Array
    x: Array
    g: Array

    def products(self) -> Array:
        """The rounded terms."""
        result: Array = self.y * self.x * self.g
        return result

    def at(self, rows: Array) -> Terms:
        """Some of the terms, in this order."""
        return Terms(*(each[rows] for each in self))


def terms(gradients: Array, grid: Array, shape: tuple[int, int, int, int], coordinates: str) -> Terms:
    """The terms that roi_crop_backward sums up, in the order of the bins."""
    B, H, W, C = shape
    image, a, b = _axes(grid, B, H, W, coordinates)
    y0, x0 = np.floor(a), np.floor(b)
    wy, wx = ONE - (a - y0), ONE - (b - x0)
    y, x = np.stack([y0, y0, y0 + 1, y0 + 1], axis=1), np.stack([x0, x0 + 1, x0, x0 + 1], axis=1)
    bins, corner = np.nonzero((y >= 0) & (y < H) & (x >= 0) & (x < W))
    pixel = (image[bins] * H + y[bins, corner].astype(int)) * W + x[bins, corner].astype(int)
    sides_y, sides_x = np.stack([wy, wy, ONE - wy, ONE - wy], axis=1), np.stack([wx, ONE - wx, wx, ONE - wx], axis=1)
    return Terms(pixel, sides_y[bins, corner, None], sides_x[bins, corner, None], gradients.reshape(-1, C)[bins])


def _added(pixel: Array, products: Array, total: Array) -> None:
    np.add.at(total, pixel, products)  # one add after the other


def _at_random(found: Terms, total: Array, rng: np.random.Generator) -> None:
    mixed = found.at(rng.permutation(len(found.pixel)))
    _added(mixed.pixel, mixed.products(), total)


def _backwards(found: Terms, total: Array, rng: np.random.Generator) -> None:
    found = found.at(np.arange(len(found.pixel))[::-1])
    _added(found.pixel, found.y * (found.x * found.g), total)


def _scattered_in_blocks(found: Terms, total: Array, rng: np.random.Generator) -> None:
    products, parts = found.products(), int(rng.integers(2, 9))
    for rows in np.array_split(rng.permutation(len(products)), parts):
        partial = np.zeros_like(total)
        _added(found.pixel[rows], products[rows], partial)
        total += partial


def _fused_in_order(found: Terms, total: Array, rng: np.random.Generator) -> None:
    found = found.at(np.argsort(found.pixel, kind="stable"))
    pixels, starts, counts = np.unique(found.pixel, return_index=True, return_counts=True)
    for turn in range(counts.max(initial=0)):
        rows = starts[counts > turn] + turn
        y, x, g = found.y[rows], found.x[rows], found.g[rows]
        total[pixels[counts > turn]] = fused(y * x, g, total[pixels[counts > turn]])


def _pairwise(found: Terms, total: Array, rng: np.random.Generator) -> None:
    products = found.products()
    for pixel in np.unique(found.pixel):
        total[pixel] = np.ascontiguousarray(products[found.pixel == pixel].T).sum(1, dtype=F)


def _scattered_flushed(found: Terms, total: Array, rng: np.random.Generator) -> None:
    _added(found.pixel, flushed(flushed(found.y * found.x) * flushed(found.g)), total)
    total[:] = flushed(total)


def _in_float64(found: Terms, total: Array, rng: np.random.Generator) -> None:
    wide = np.zeros(total.shape)
    np.add.at(wide, found.pixel, found.products().astype(np.float64))
    total[:] = wide


# How the terms of a gradient are added up.
SCATTERS: Final[dict[str, Callable[[Terms, Array, np.random.Generator], None]]] = {
    "in order": lambda found, total, rng: _added(found.pixel, found.products(), total),
    "at random": _at_random,
    "backwards": _backwards,
    "in blocks": _scattered_in_blocks,
    "fused": _fused_in_order,
    "pairwise": _pairwise,
    "flushed": _scattered_flushed,
    "in float64": _in_float64,
}


def scatter(found: Terms, shape: tuple[int, int, int, int], order: str, rng: np.random.Generator) -> Array:
    """roi_crop_backward in float32."""
    B, H, W, C = shape
    total = np.zeros((B * H * W, C), F)
    SCATTERS[order](found, total, rng)
    return total.reshape(shape)


def sums(terms: Array, rng: np.random.Generator) -> Iterator[tuple[str, Array]]:
    """The float32 sums of the rows of terms in many orders."""

    def sequential(rows: Array) -> Any:
        return np.add.accumulate(rows, axis=0, dtype=F)[-1]

    size = int(rng.integers(2, 100))
    blocks = [sequential(block) for block in np.array_split(rng.permuted(terms, axis=0), max(1, len(terms) // size))]
    sizes = np.abs(terms).max(1)
    yield "in order", sequential(terms)
    yield "backwards", sequential(terms[::-1])
    yield "at random", sequential(rng.permutation(terms))
    yield "ascending", sequential(terms[np.argsort(sizes)])
    yield "descending", sequential(terms[np.argsort(-sizes)])
    yield "pairwise", np.ascontiguousarray(terms.T).sum(1, dtype=F)
    yield "in blocks", sequential(np.array(blocks))
    yield "flushed", flushed(sequential(flushed(terms)))
    yield "in float64", terms.sum(0, dtype=np.float64).astype(F)


def worst(output: Array, baseline: Array, bound: Array) -> float:
    """The largest |output - baseline| / bound over the elements that have a bound; 0/0 is 0."""
    known = np.isfinite(baseline) & ~np.isnan(np.broadcast_to(bound, baseline.shape))
    error = np.abs(output.astype(np.float64) - baseline.astype(np.float64))[known]
    limit = np.broadcast_to(bound, baseline.shape)[known].astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(error == 0, 0.0, error / limit)
    return float(np.nan_to_num(ratios, nan=np.inf).max(initial=0.0))


def draw_grid(rng: np.random.Generator, N: int, H: int, W: int, *, most: int = 5) -> Any:
    """Grid values anywhere, on pixel centres, an ulp or a few beside them, beyond the border, all in one cell."""
    shape = (N, *(int(side) for side in rng.integers(1, most, 2, endpoint=True)))
    steps = [2 * rng.integers(0, size, shape) / max(size - 1, 1) - 1 for size in (H, W)]
    centres = np.stack(steps, axis=-1, dtype=F, casting="same_kind")
    kind = int(rng.integers(0, 6))
    if kind == 0:
        return centres
    if kind == 1:
        return np.nextafter(centres, F(2) * np.sign(rng.standard_normal(centres.shape)).astype(F))
    anywhere: Array = rng.uniform(-1.3, 1.3, centres.shape).astype(F)
    if kind == 2:
        return np.where(rng.random(centres.shape) < 0.5, centres, anywhere)
    if kind == 3:
        edges = np.array([-1, 1, 0, -1.0000001, 1.0000001, 1.5, -1.5, 1e10, -1e30], F)
        return rng.choice(edges, centres.shape)
    if kind == 4:
        one, apart = centres[:1, :1, :1], rng.integers(-9, 10, centres.shape)
        return (one + apart * np.spacing(one)).astype(F)
    return anywhere


def draw_values(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Values around one magnitude from 1e-38 to 1e30, mostly, spread over up to eight decades, or all equal.

    Sums of equal values are where roundings go the same way.
    """
    decades = float(rng.choice([0, 0, 8]))
    magnitude = 10.0 ** rng.uniform(-38, 30 - decades)
    spread = 10.0 ** rng.uniform(0, decades, shape)
    drawn = np.asarray(rng.standard_normal(shape)) * spread
    return (np.broadcast_to(drawn.flat[0] if rng.random() < 0.25 else drawn, shape) * magnitude).astype(F)
