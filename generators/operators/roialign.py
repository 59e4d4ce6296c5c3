"""roialign_forward: the mean of bilinear samples in the bins of regions of interest (Mask R-CNN, Faster R-CNN).

Source: the public interface of mluOpRoiAlignForward and mmcv's roi_align, which states the formulas. Maximum pooling
(pool_mode 0, with two further outputs) isn't in this contract.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from generators.contracts.model import OURS, Contract, Coordinate, Env, Parameter, RowSum, Rule, TensorSpec
from generators.contracts.operator import Array, Arrays, Operator
from generators.contracts.relations import Relation
from generators.error_bounds.precision import rounding
from generators.error_bounds.sample_means import (
    ROUNDINGS,
    BinRow,
    line_of,
    mean_bound,
    padded,
    sums_of_bins,
    undecided_means,
)  # fmt: skip
from schemas.criteria import Criterion
from schemas.errors import InputError
from schemas.status import BAD_PARAM, SUCCESS

_CRITERIA = tuple(Criterion(name, 3e-3, "category composite") for name in ("diff1", "diff2"))
_ROIS = {"boxes": 0, "output": 0}
_BLOCK = 1 << 18  # samples worked on at a time in float64
_MOST_SAMPLES = 1 << 20  # of a region: a limit of this package


class _Positions(NamedTuple):
    """Where the bins of a region are sampled along one axis."""

    at: Array  # [bins, samples]; no samples where the region is empty
    reach: float  # what an error of one unit in each step may sum up to, divided by its roundings
    exact: bool  # whether float32 rounds no step
    certain: bool  # whether the number of samples is beyond doubt


def _positions(low: Any, high: Any, bins: int, env: Env, dtype: type[np.floating[Any]] = np.float64) -> _Positions:
    """The positions in pixels, in dtype, of a region from low to high; sampling_ratio 0 takes one a pixel or more."""
    scale, shift = dtype(env["spatial_scale"]), dtype(0.5 if env["aligned"] else 0)
    ends = dtype(low) * scale, dtype(high) * scale
    start, end = ends[0] - shift, ends[1] - shift
    size = end - start if env["aligned"] else max(end - start, dtype(1))
    share = size / dtype(bins)
    samples = env["sampling_ratio"] or max(math.ceil(share), 0)
    inner = (np.arange(samples, dtype=dtype) + dtype(0.5)) * share / dtype(max(samples, 1))
    outer = np.arange(bins, dtype=dtype)[:, None] * share
    reach = float(abs(ends[0]) + abs(ends[1]) + 2 * shift + abs(size))
    exact = all(np.array_equal(each, np.float32(each)) for each in (*ends, start, end, size, share, inner, outer))
    at = start + (outer + inner)
    near = abs(share - np.rint(share)) <= ROUNDINGS * 2.0**-24 * (reach / bins + abs(share))
    exact_size = all(each == np.float32(each) for each in (*ends, start, end, size))
    certain = bool(env["sampling_ratio"]) or not near or (exact_size and share == np.rint(share))
    return _Positions(at, reach, exact and np.array_equal(at, np.float32(at)), bool(certain))


def _between(position: Array, size: int) -> tuple[Array, Array, Array]:
    """The pixels on both sides of positions that are moved into the image, and how far they are from the first."""
    inside = np.clip(position, 0, size - 1)
    low = np.floor(inside).astype(np.int64)
    return low, np.minimum(low + 1, size - 1), inside - low


def _row(image: Array, y: Any, x: Array) -> Array:
    """The samples of an image [H, W, C] at one y and several x; 0 beyond one pixel outside of it."""
    H, W, C = image.shape
    samples = np.zeros((len(x), C), x.dtype)
    inside = np.flatnonzero((y >= -1) & (y <= H) & (x >= -1) & (x <= W))
    top, bottom, down = _between(y, H)
    left, right, across = _between(x[inside], W)
    across = across[:, None]
    with np.errstate(invalid="ignore"):  # Inf * 0 and Inf - Inf are NaN
        samples[inside] = (
            (1 - down) * (1 - across) * image[top, left]
            + (1 - down) * across * image[top, right]
            + down * (1 - across) * image[bottom, left]
            + down * across * image[bottom, right]
        )
    return samples


class RoialignForward(Operator):
    """The mean of bilinear samples in each bin of regions of an image."""

    contract = Contract(
        op="roialign_forward",
        message="roialign_param",
        category="composite",
        inputs=(
            TensorSpec("input", ("float",), "NHWC", "B H W C", values={"uniform": [-1, 1]}),
            TensorSpec("boxes", ("float",), "ARRAY", "K 5", values={"recipe": "boxes"}, finite=True),
        ),
        outputs=(
            TensorSpec(
                "output",
                ("float",),
                "NHWC",
                "K pooled_height pooled_width C",
                criteria=_CRITERIA,
                expected_zero_fraction=1.0,  # regions outside of the image
            ),
        ),
        parameters=(
            Parameter("pooled_height", minimum=1, default=7, origin=OURS),
            Parameter("pooled_width", minimum=1, default=7, origin=OURS),
            Parameter("sampling_ratio", minimum=0, maximum=1024, default=2, statuses=(), text="samples; 0: by size"),
            Parameter("spatial_scale", kind="float", default=0.25, text="pixels of the image per unit of a box"),
            Parameter("aligned", kind="bool", default=False, text="pixel centres at halves"),
            Parameter("pool_mode", choices={"average": 1}, default=1, statuses=()),
            Parameter("version", minimum=0, maximum=1, default=0, statuses=(), text="of the vendor's function"),
        ),
        rules=(
            Rule(
                "spatial_scale is above 0",
                "spatial_scale > 0",
                breaks=({"spatial_scale": 0.0}, {"spatial_scale": -0.5}),
                origin=OURS,
            ),
            Rule(
                "a region has at most 2^20 samples, a limit of this package",
                "pooled_height*pooled_width*sampling_ratio**2 <= 2**20",
                statuses=(),
                origin=OURS,
            ),
        ),
        zero_elements={"B": BAD_PARAM, "H": BAD_PARAM, "W": BAD_PARAM, "C": BAD_PARAM, "K": SUCCESS},
        theory_ops="K*pooled_height*pooled_width*C*8*max(sampling_ratio, 1)**2",
        network="Mask R-CNN, Faster R-CNN",
        source="public interface of mluOpRoiAlignForward; mmcv roi_align",
        relations=(
            Relation("batch of rois", "batch", size="K", axes=_ROIS),
            Relation("permutation of rois", "permutation", size="K", axes=_ROIS),
            Relation("permutation of channels", "permutation", size="C", axes={"input": 3, "output": 3}),
            Relation("scaling", "scaling", linear="input"),
            Relation("zero", "zero", linear="input"),
        ),
        coordinates=(
            Coordinate("y", parameters=("pooled_height",)),
            Coordinate("x", parameters=("pooled_width",)),
        ),
        sums=(RowSum("output", "input"),),
    )

    def reference(self, inputs: Arrays, env: Env) -> Arrays:
        """Samples and means in float64. Source: mmcv roi_align."""
        return self.reference_in(np.float64, inputs, env)

    def reference_in(self, dtype: type[np.floating[Any]], inputs: Arrays, env: Env) -> Arrays:
        """The same with positions, weights and sums in another dtype."""
        images, boxes = inputs["input"], inputs["boxes"]
        height, width = env["pooled_height"], env["pooled_width"]
        output = np.zeros((len(boxes), height, width, images.shape[3]), np.float32)
        for k, (image, x1, y1, x2, y2) in enumerate(boxes):
            y = _positions(y1, y2, height, env, dtype).at
            x = _positions(x1, x2, width, env, dtype).at
            for p, rows in enumerate(y if x.size else y[:, :0]):
                total = np.zeros((*x.shape, images.shape[3]), dtype)
                with np.errstate(invalid="ignore", over="ignore"):
                    for row in rows:
                        total += _row(images[int(image)], row, x.ravel()).reshape(total.shape)
                    output[k, p] = total.sum(1) / dtype(max(len(rows) * x.shape[1], 1))
        return {"output": output}

    def error_bound(
        self, inputs: Arrays, env: Env, *, baseline: Arrays | None = None, accumulate: str | None = None
    ) -> Arrays:
        """Samples and means rounded in any order (error_bounds.sample_means); NaN where the samples' number is open."""
        output = (baseline or self.reference(inputs, env))["output"]
        model = rounding(accumulate or self.contract.accumulate, "float")
        terms, bounds = np.zeros((2, *output.shape))
        number = np.zeros(output.shape[:2], np.int64)
        images, sizes = padded(inputs["input"]), np.abs(inputs["input"])
        for k, p, row, at in _rows_of_bins(inputs, env, model.unit):
            sums = sums_of_bins(images, row, _all_samples(sizes[row.image[0]], *at), model)
            for whole, part in zip((terms, bounds), sums, strict=True):
                whole[k, p] += part
            number[k, p] += row.shape[0] * row.shape[2]
        bound = mean_bound(terms, bounds, number[..., None, None], output, model)
        bound[_open(inputs["boxes"], env)] = np.nan
        return {"output": bound}

    def undecided(self, inputs: Arrays, env: Env) -> Arrays:
        """Bins in which NaN or Inf is sampled or not, as a position is rounded or the number of samples comes out."""
        images, boxes = inputs["input"], inputs["boxes"]
        if np.isfinite(images).all():
            return {}
        unit = rounding(self.contract.accumulate, "float").unit
        mask = np.zeros((len(boxes), env["pooled_height"], env["pooled_width"], images.shape[3]), bool)
        mask[_open(boxes, env)] = True
        doubled, sizes = padded(images), np.abs(images)
        for k, p, row, at in _rows_of_bins(inputs, env, unit):
            mask[k, p] |= undecided_means(doubled, row, _all_samples(sizes[row.image[0]], *at))
        return {"output": mask}

    def check_values(self, inputs: Arrays, env: Env) -> None:
        """Boxes name an image of the batch; samples have a limit."""
        images, boxes = inputs["input"], inputs["boxes"]
        for k, (image, *ends) in enumerate(boxes):
            if image != np.floor(image) or not 0 <= image < len(images):
                raise InputError(f"boxes[{k}, 0] is {image}, expected the number of one of {len(images)} images")
            if env["sampling_ratio"]:
                continue
            scale, bins = env["spatial_scale"], (env["pooled_width"], env["pooled_height"])
            sizes = [max(float(ends[2 + axis] - ends[axis]) * scale, 1.0) + bins[axis] for axis in (0, 1)]
            if sizes[0] * sizes[1] > _MOST_SAMPLES:
                raise InputError(f"boxes[{k}] takes more than {_MOST_SAMPLES} samples, a limit of this package")

    def draw(self, tensor: str, recipe: str, env: Env, rng: np.random.Generator, arrays: Arrays) -> Array | None:
        """Boxes from a pixel before the image to one behind it, 1/8 of them empty and 1/8 below a pixel.

        Recipes: `boxes` in eighths of pixels, `whole` in pixels, `any` in any numbers; `outside`: beyond what is read.
        """
        if recipe not in ("boxes", "whole", "any", "outside"):
            return None
        K = int(env["K"])
        boxes = np.empty((K, 5), np.float32)
        boxes[:, 0] = np.floor(rng.random(K) * env["B"])
        kind = rng.random(K)
        for first, size in ((1, env["W"]), (2, env["H"])):
            start, extent = rng.random(K), rng.random(K)
            longest = np.select([kind < 1 / 8, kind < 1 / 4], [0, 1], size + 1)
            low, length = start * (size + 1) - 1, extent * longest
            if recipe != "any":
                unit = 1 if recipe == "whole" else 8
                low, length = np.floor(low * unit) / unit, np.floor(length * unit) / unit
            if recipe == "outside":  # of its own size from the image, on either side
                low = np.where(start < 0.5, size + 2 + length, -3 - 2 * length)
            boxes[:, first] = low / env["spatial_scale"]
            boxes[:, first + 2] = (low + length) / env["spatial_scale"]
        return boxes


def _both(box: Array, env: Env) -> tuple[_Positions, _Positions]:
    """The positions of a box along y and x, in float64."""
    _, x1, y1, x2, y2 = box
    return _positions(y1, y2, env["pooled_height"], env), _positions(x1, x2, env["pooled_width"], env)


def _open(boxes: Array, env: Env) -> list[int]:
    """The boxes whose number of samples float32 may get otherwise."""
    return [k for k, box in enumerate(boxes) if not all(each.certain for each in _both(box, env))]


def _rows_of_bins(inputs: Arrays, env: Env, unit: float) -> Iterator[tuple[int, int, BinRow, tuple[Array, Array]]]:
    """Rows of samples of row p of bins of box k, as many as a block has, and their y and x; without those of _open."""
    _, H, W, C = inputs["input"].shape
    for k, box in enumerate(inputs["boxes"]):
        y, x = _both(box, env)
        if not (y.certain and x.certain and y.at.size and x.at.size):
            continue
        columns = x.at.ravel()
        step = max(1, _BLOCK // (len(columns) * C))
        for p, whole in enumerate(y.at):
            for start in range(0, len(whole), step):
                rows = whole[start : start + step]
                across = line_of(np.tile(columns, len(rows)), x.reach, W, unit, exact=x.exact)
                down = line_of(np.repeat(rows, len(columns)), y.reach, H, unit, exact=y.exact)
                image = np.full(len(rows) * len(columns), int(box[0]))
                yield k, p, BinRow(down, across, image, (len(rows), *x.at.shape)), (rows, columns)


def _all_samples(image: Array, rows: Array, columns: Array) -> Array:
    """The samples at all rows and columns, flat, with positions moved into the image."""
    H, W, _ = image.shape
    return np.concatenate([_row(image, row, np.clip(columns, 0, W - 1)) for row in np.clip(rows, 0, H - 1)])


OPERATORS = (RoialignForward(),)
