"""roi_crop_forward and roi_crop_backward: bilinear sampling of feature maps at grid points (Faster R-CNN, CoupleNet).

Source: the design document roi_crop, sections 1.3 (interface), 1.4 (limits), 3.1 (formulas).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from generators.contracts.model import OURS, Contract, Coordinate, Env, RowSum, Rule, TensorSpec
from generators.contracts.operator import Array, Arrays, Operator
from generators.contracts.relations import Relation
from generators.error_bounds.bilinear import (
    Axis,
    axis_of,
    certain_axis,
    gradient_bound,
    sample_bound,
    undecided_gradients,
    undecided_samples,
)
from generators.error_bounds.precision import rounding
from schemas.criteria import Criterion
from schemas.status import BAD_PARAM

_CRITERIA = tuple(Criterion(name, 3e-3, "category composite") for name in ("diff1", "diff2"))
_TRANSPOSED = {"roi_crop_forward": "roi_crop_backward", "roi_crop_backward": "roi_crop_forward"}
_IMAGE, _GRID, _BINS = "B H W C", "N OH OW 2", "N OH OW C"
_BLOCK = 1 << 20  # elements worked on at a time in float64


def _contract(op: str, first: TensorSpec, computed: TensorSpec, theory_ops: str) -> Contract:
    images, of_rois = (
        {first.name: 0, "grid": 0, computed.name: 0},
        first.name if first.shape == _BINS else computed.name,
    )
    rois_alone = Relation("batch of rois", "batch", size="N", within="B", axes={"grid": 0, of_rois: 0})
    return Contract(
        op=op,
        category="composite",
        inputs=(first, TensorSpec("grid", ("float",), "ARRAY", _GRID, values={"recipe": "grid"}, finite=True)),
        outputs=(computed,),
        rules=(Rule("N is a multiple of B", "N % B == 0", breaks=({"N": 5}, {"N": 3}), origin=OURS),),
        zero_elements=dict.fromkeys(("B", "H", "W", "C", "N", "OH", "OW"), BAD_PARAM),
        theory_ops=theory_ops,
        network="Faster R-CNN, CoupleNet",
        source="design document roi_crop; BilinearSamplerBHWD",
        relations=(
            Relation("batch", "batch", size="B", axes=images),
            *((rois_alone,) if of_rois == computed.name else ()),  # gradients of all rois meet in a pixel
            Relation("permutation of images", "permutation", size="B", axes=images),
            Relation("permutation of channels", "permutation", size="C", axes={first.name: 3, computed.name: 3}),
            Relation("permutation of rois", "permutation", size="N", within="B", axes={"grid": 0, of_rois: 0}),
            Relation("scaling", "scaling", linear=first.name),
            Relation("zero", "zero", linear=first.name),
            Relation("outside", "outside", constants={"grid": "3"}, where="H > 1 or W > 1"),
            Relation("adjoint", "adjoint", linear=first.name, adjoint=_TRANSPOSED[op]),
        ),
        coordinates=(
            Coordinate("y", "grid", 0, ends="centres", size="H"),
            Coordinate("x", "grid", 1, ends="centres", size="W"),
        ),
        sums=(RowSum(computed.name, first.name),),
    )


def _tensor(name: str, shape: str) -> TensorSpec:
    """A float NHWC tensor; bins outside the image, and pixels that no bin touches, are naturally zero."""
    values = {"uniform": [-1, 1]}
    return TensorSpec(name, ("float",), "NHWC", shape, values=values, criteria=_CRITERIA, expected_zero_fraction=1.0)


def _corners(
    grid: Array, B: int, H: int, W: int, dtype: type[np.floating[Any]] = np.float64
) -> tuple[Array, Array, Array]:
    """The four corners of every grid point: flat pixel number, weight, and whether the corner lies inside the image.

    Each is [4, N*OH*OW], computed in dtype from the float32 grid. Corner pixels sit at -1 and 1; a coordinate that
    isn't finite reaches no corner.
    """
    bins = grid.reshape(-1, 2).astype(dtype)
    image = np.arange(len(bins)) // (len(bins) // grid.shape[0]) // (grid.shape[0] // B)
    with np.errstate(invalid="ignore"):
        ay, ax = (bins[:, 0] + 1) * (H - 1) / 2, (bins[:, 1] + 1) * (W - 1) / 2
        y0, x0 = np.floor(ay), np.floor(ax)
        wy, wx = 1 - (ay - y0), 1 - (ax - x0)
    y, x = np.stack([y0, y0, y0 + 1, y0 + 1]), np.stack([x0, x0 + 1, x0, x0 + 1])
    weight = np.stack([wx * wy, (1 - wx) * wy, wx * (1 - wy), (1 - wx) * (1 - wy)])
    inside = (y >= 0) & (y < H) & (x >= 0) & (x < W)  # as floats: a huge coordinate has no integer
    pixel = (image * H + np.where(inside, y, 0).astype(np.int64)) * W + np.where(inside, x, 0).astype(np.int64)
    return pixel, weight, inside


def _axes(
    grid: Array, B: int, H: int, W: int, unit: float, make: Callable[[Array, int, float], Axis] = axis_of
) -> tuple[Axis, Axis, Array]:
    """The y axis and the x axis of all grid points, and the image that each reads."""
    bins = grid.reshape(-1, 2)
    image = np.arange(len(bins)) // (len(bins) // grid.shape[0]) // (grid.shape[0] // B)
    return make(bins[:, 0], H, unit), make(bins[:, 1], W, unit), image


def _all_finite(values: Array) -> bool:
    """Whether no value is NaN or Inf: the float64 sum of float32 values can't overflow. Takes no memory."""
    with np.errstate(invalid="ignore"):
        return bool(np.isfinite(np.sum(values, dtype=np.float64)))


class _RoiCrop(Operator):
    """The part that both directions share: the values of the grid."""

    def draw(self, tensor: str, recipe: str, env: Env, rng: np.random.Generator, arrays: Arrays) -> Array | None:
        """The recipe `grid`: coordinates 1/8 exactly -1 or 1, 1/4 on pixel centres, the others uniform in [-1, 1)."""
        if recipe != "grid":
            return None
        shape = tuple(int(env[name]) for name in ("N", "OH", "OW"))
        values = np.empty((*shape, 2), np.float32)
        for axis, size in enumerate((env["H"], env["W"])):
            kind, where = rng.random(shape), rng.random(shape)
            centre = np.floor(where * size) / max(size - 1, 1)
            unit = np.select([kind < 1 / 8, kind < 3 / 8], [np.round(where), centre], where)
            values[..., axis] = 2 * unit - 1
        return values


class RoiCropForward(_RoiCrop):
    """Bilinear samples of images at the points of a grid."""

    contract = _contract("roi_crop_forward", _tensor("input", _IMAGE), _tensor("output", _BINS), "7*B*H*W*C")

    def reference(self, inputs: Arrays, env: Env) -> Arrays:
        """Weighted corners in float64; a corner outside is not read. Source: design document roi_crop, 3.1."""
        return self.reference_in(np.float64, inputs, env)

    def reference_in(self, dtype: type[np.floating[Any]], inputs: Arrays, env: Env) -> Arrays:
        """The same with coordinates, weights and sums in another dtype."""
        B, H, W, C = inputs["input"].shape
        pixels = inputs["input"].reshape(B * H * W, C)
        pixel, weight, inside = _corners(inputs["grid"], B, H, W, dtype)
        bins = pixel.shape[1]
        output = np.empty((bins, C), np.float32)
        step = max(1, _BLOCK // C)
        for start in range(0, bins, step):
            block = slice(start, start + step)
            total = np.zeros((min(step, bins - start), C), dtype)
            for corner in range(4):
                hit = np.flatnonzero(inside[corner, block])
                with np.errstate(invalid="ignore"):  # Inf * 0 and Inf - Inf are NaN
                    total[hit] += weight[corner, block][hit, None] * pixels[pixel[corner, block][hit]]
            output[block] = total
        return {"output": output.reshape(*inputs["grid"].shape[:3], C)}

    def error_bound(
        self, inputs: Arrays, env: Env, *, baseline: Arrays | None = None, accumulate: str | None = None
    ) -> Arrays:
        """Coordinates, weights and sums rounded in any order (error_bounds.bilinear)."""
        image, grid = inputs["input"], inputs["grid"]
        output = (baseline or self.reference(inputs, env))["output"]
        model = rounding(accumulate or self.contract.accumulate, "float")
        B, H, W, _ = image.shape
        y, x, of_image = _axes(grid, B, H, W, model.unit)
        bound = sample_bound(image, of_image, y, x, output.reshape(-1, image.shape[3]), model)
        return {"output": bound.reshape(output.shape)}

    def undecided(self, inputs: Arrays, env: Env) -> Arrays:
        """Samples whose floor may fall on either side of a pixel, with NaN or Inf in a cell that they may read."""
        image, grid = inputs["input"], inputs["grid"]
        if not grid.size or _all_finite(image):
            return {}
        B, H, W, C = image.shape
        y, x, of_image = _axes(grid, B, H, W, rounding(self.contract.accumulate, "float").unit, certain_axis)
        return {"output": undecided_samples(image, of_image, y, x).reshape(*grid.shape[:3], C)}


class RoiCropBackward(_RoiCrop):
    """Adds the gradient at each point of a grid to the four pixels around it, by their bilinear weights."""

    contract = _contract(
        "roi_crop_backward", _tensor("grad_output", _BINS), _tensor("grad_input", _IMAGE), "8*N*OH*OW*C"
    )

    def reference(self, inputs: Arrays, env: Env) -> Arrays:
        """Sums in float64, pixel by pixel in the order of the bins. Source: design document roi_crop, 3.1."""
        return self.reference_in(np.float64, inputs, env)

    def reference_in(self, dtype: type[np.floating[Any]], inputs: Arrays, env: Env) -> Arrays:
        """The same with coordinates, weights and sums in another dtype."""
        B, H, W, C = (env[name] for name in ("B", "H", "W", "C"))
        grad_output = inputs["grad_output"].reshape(-1, C)
        pixel, weight, inside = _corners(inputs["grid"], B, H, W, dtype)
        corner, bins = np.nonzero(inside)
        order = np.argsort(pixel[corner, bins], kind="stable")
        corner, bins = corner[order], bins[order]
        pixels, starts = np.unique(pixel[corner, bins], return_index=True)
        grad_input = np.zeros((B * H * W, C), np.float32)
        step = max(1, _BLOCK // max(1, len(bins)))  # channels at a time
        for start in range(0, C if len(bins) else 0, step):
            block = slice(start, start + step)
            with np.errstate(invalid="ignore", over="ignore"):  # Inf * 0, Inf - Inf, sums beyond float
                parts = weight[corner, bins][:, None] * grad_output[bins, block]
                grad_input[pixels, block] = np.add.reduceat(parts, starts, axis=0)
        return {"grad_input": grad_input.reshape(B, H, W, C)}

    def error_bound(
        self, inputs: Arrays, env: Env, *, baseline: Arrays | None = None, accumulate: str | None = None
    ) -> Arrays:
        """Coordinates, weights and sums rounded in any order (error_bounds.bilinear)."""
        gradients, grid = inputs["grad_output"], inputs["grid"]
        output = (baseline or self.reference(inputs, env))["grad_input"]
        B, H, W, C = output.shape
        model = rounding(accumulate or self.contract.accumulate, "float")
        y, x, of_image = _axes(grid, B, H, W, model.unit)
        flat = gradients.reshape(-1, C), output.reshape(-1, C)
        bound = gradient_bound(flat[0], of_image, y, x, (B, H, W), flat[1], model)
        return {"grad_input": bound.reshape(output.shape)}

    def undecided(self, inputs: Arrays, env: Env) -> Arrays:
        """Pixels that a gradient of NaN or Inf reaches or not, as the floor of its bin falls."""
        gradients, grid = inputs["grad_output"], inputs["grid"]
        if _all_finite(gradients):
            return {}
        B, H, W, C = (env[name] for name in ("B", "H", "W", "C"))
        y, x, of_image = _axes(grid, B, H, W, rounding(self.contract.accumulate, "float").unit, certain_axis)
        mask = undecided_gradients(gradients.reshape(-1, C), of_image, y, x, (B, H, W))
        return {"grad_input": mask.reshape(B, H, W, C)}


OPERATORS = (RoiCropForward(), RoiCropBackward())
