"""Right float32 kernels in many formulations, and measures of faulty ones; no code of the package is used here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]
F = np.float32
ONE: Final = F(1)

# The pixel coordinate of a grid value: the factors in different orders.
COORDINATES: Final[dict[str, Callable[[Array, Any], Any]]] = {
    "(g+1)*s/2": lambda g, s: (g + ONE) * s / F(2),
    "(g+1)*(s/2)": lambda g, s: (g + ONE) * (s / F(2)),
    "(g+1)/2*s": lambda g, s: (g + ONE) / F(2) * s,
    "(g+1)*0.5*s": lambda g, s: (g + ONE) * F(0.5) * s,
}


def fused(a: Array, b: Array, c: Array) -> Array:
    """a*b + c with one rounding: the product of two float32 is exact in float64."""
    exact: Array = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
    return exact.astype(F)


def flushed(values: Array) -> Array:
    """The values with subnormal numbers replaced by 0."""
    result: Array = np.where(np.abs(values) < F(2.0**-126), F(0), values)
    return result


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


def _backwards_flushed(v: list[Array], y: Array, x: Array) -> Any:
    total = v[3] * ((ONE - x) * (ONE - y)) + v[2] * (x * (ONE - y))
    return flushed(total + v[1] * ((ONE - x) * y) + v[0] * (x * y))


# The sample of four corners with the weights y, x of the low sides.
INTERPOLATIONS: Final[dict[str, Callable[[list[Array], Array, Array], Any]]] = {
    "weighted sum": _weighted,
    "rows first": _rows_first,
    "columns first": _columns_first,
    "fused steps": _fused_steps,
    "fused sum": _fused_sum,
    "backwards, flushed": _backwards_flushed,
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
    corners = []
    for corner in range(4):
        y, x = y0 + corner // 2, x0 + corner % 2
        inside = np.flatnonzero((y >= 0) & (y < H) & (x >= 0) & (x < W))
        values = np.zeros((len(image), C), F)
        values[inside] = images[image[inside], y[inside].astype(int), x[inside].astype(int)]
        corners.append(values)
    with np.errstate(over="ignore", invalid="ignore"):
        result: Array = INTERPOLATIONS[interpolation](corners, wy, wx).reshape(*grid.shape[:3], C)
    return result


def scatter(
    gradients: Array, grid: Array, shape: tuple[int, int, int, int], coordinates: str, rng: np.random.Generator | None
) -> Array:
    """roi_crop_backward in float32: one atomic add after the other, in the order of the bins or at random."""
    B, H, W, C = shape
    image, a, b = _axes(grid, B, H, W, coordinates)
    y0, x0 = np.floor(a), np.floor(b)
    wy, wx = ONE - (a - y0), ONE - (b - x0)
    weights = [wx * wy, (ONE - wx) * wy, wx * (ONE - wy), (ONE - wx) * (ONE - wy)]
    result, flat = np.zeros(shape, F), gradients.reshape(-1, C)
    steps = np.arange(4 * len(image)) if rng is None else rng.permutation(4 * len(image))
    for step in steps:
        number, corner = divmod(int(step), 4)
        y, x = y0[number] + corner // 2, x0[number] + corner % 2
        if 0 <= y < H and 0 <= x < W:
            result[image[number], int(y), int(x)] += weights[corner][number] * flat[number]
    return result


def sums(terms: Array, rng: np.random.Generator) -> Iterator[tuple[str, Array]]:
    """The float32 sums of the rows of terms in many orders."""
    with np.errstate(over="ignore", invalid="ignore"):
        for name, order in (("in order", np.arange(len(terms))), ("at random", rng.permutation(len(terms)))):
            total = np.zeros(terms.shape[1], F)
            for row in terms[order]:
                total = total + row
            yield name, total
        yield "backwards", np.add.accumulate(terms[::-1], axis=0, dtype=F)[-1]
        columns = np.ascontiguousarray(terms.T)
        yield "pairwise", columns.sum(1, dtype=F)
        blocks = [block.sum(0, dtype=F) for block in np.array_split(terms, max(1, len(terms) // 16))]
        yield "in blocks", np.array(blocks).sum(0, dtype=F)
        yield "flushed", flushed(flushed(terms).sum(0, dtype=F))
        yield "in float64", terms.sum(0, dtype=np.float64).astype(F)


def worst(output: Array, baseline: Array, bound: Array) -> float:
    """The largest |output - baseline| / bound over the elements that have a bound; 0/0 is 0."""
    known = np.isfinite(baseline) & ~np.isnan(np.broadcast_to(bound, baseline.shape))
    error = np.abs(output.astype(np.float64) - baseline.astype(np.float64))[known]
    limit = np.broadcast_to(bound, baseline.shape)[known].astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(error == 0, 0.0, error / limit)
    return float(np.nan_to_num(ratios, nan=np.inf).max(initial=0.0))


def draw_grid(rng: np.random.Generator, N: int, H: int, W: int) -> Any:
    """Grid values anywhere, on pixel centres, one ulp beside them, and beyond the border."""
    shape = (N, int(rng.integers(1, 6)), int(rng.integers(1, 6)))
    steps = [2 * rng.integers(0, size, shape) / max(size - 1, 1) - 1 for size in (H, W)]
    centres = np.stack(steps, axis=-1, dtype=F, casting="same_kind")
    kind = int(rng.integers(0, 5))
    if kind == 0:
        return centres
    if kind == 1:
        return np.nextafter(centres, F(2) * np.sign(rng.standard_normal(centres.shape)).astype(F))
    anywhere: Array = rng.uniform(-1.3, 1.3, centres.shape).astype(F)
    if kind == 2:
        return np.where(rng.random(centres.shape) < 0.5, centres, anywhere)
    if kind == 3:
        edges: Array = rng.choice(np.array([-1, 1, 0, -1.0000001, 1.0000001, 1.5, -1.5], F), centres.shape)
        return edges
    return anywhere


def draw_values(rng: np.random.Generator, shape: tuple[int, ...], *, decades: int = 0) -> Any:
    """Values around one magnitude from 1e-35 to 1e30, spread over so many decades."""
    magnitude = 10.0 ** rng.uniform(-35, 30 - decades)
    spread = 10.0 ** rng.uniform(0, decades, shape) if decades else 1.0
    return (np.asarray(rng.standard_normal(shape)) * magnitude * spread).astype(F)
