"""voxel_pooling_forward: sums the features of the points that fall into each voxel column (BEVDepth).

Source: the design document voxel_pooling_forward, sections 1.3 (interface), 1.4 (limits), 3.1 (formulas).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from generators.contracts.model import VENDOR, Contract, Coordinate, Env, Parameter, RowSum, TensorSpec
from generators.contracts.operator import Array, Arrays, Operator
from generators.contracts.relations import Relation
from generators.error_bounds.precision import rounding
from generators.error_bounds.sums import sum_bound
from schemas.criteria import Criterion

_SUM = tuple(Criterion(name, 3e-3, "category atomic_add") for name in ("diff1", "diff2"))
_EXACT = tuple(Criterion(name, 0.0, "integer output") for name in ("diff1", "diff2"))
_POINTS = "batch_size num_points"
_IMAGES = dict.fromkeys(("geom_xyz", "input_features", "output_features", "pos_memo"), 0)
_BLOCK = 1 << 20  # elements worked on at a time in float64


def _same(rows: Array) -> Array:
    return rows


def _sizes(rows: Array) -> Array:
    sizes: Array = np.abs(rows, out=rows)
    return sizes


class VoxelPoolingForward(Operator):
    """Adds up the features of the points in each column of voxels, and tells where each point lies."""

    contract = Contract(
        op="voxel_pooling_forward",
        category="atomic_add",
        inputs=(
            TensorSpec("geom_xyz", ("int32",), "ARRAY", f"{_POINTS} 3", values={"recipe": "points"}),
            TensorSpec("input_features", ("float",), "ARRAY", f"{_POINTS} num_channels", values={"uniform": [-1, 1]}),
        ),
        outputs=(
            TensorSpec(
                "output_features",
                ("float",),
                "ARRAY",
                "batch_size num_voxel_y num_voxel_x num_channels",
                criteria=_SUM,
                expected_zero_fraction=1.0,  # voxels without a point
            ),
            TensorSpec(
                "pos_memo", ("int32",), "ARRAY", f"{_POINTS} 3", criteria=_EXACT, fill=-1, expected_zero_fraction=1.0
            ),
        ),
        parameters=tuple(
            Parameter(name, minimum=1, origin=VENDOR if name == "num_voxel_z" else "design 1.4")
            for name in ("batch_size", "num_points", "num_channels", "num_voxel_x", "num_voxel_y", "num_voxel_z")
        ),
        theory_ops="2*batch_size*num_voxel_y*num_voxel_x*num_channels + 3*batch_size*num_points",
        network="BEVDepth",
        source="design document voxel_pooling_forward; BEVDepth voxel_pooling",
        relations=(
            Relation("batch", "batch", size="batch_size", axes=_IMAGES, columns={"pos_memo": 0}),
            Relation("permutation of images", "permutation", size="batch_size", axes=_IMAGES, columns={"pos_memo": 0}),
            Relation(
                "permutation of channels",
                "permutation",
                size="num_channels",
                axes={"input_features": 2, "output_features": 3},
            ),
            Relation(
                "permutation of points",
                "permutation",
                size="num_points",
                axes={"geom_xyz": 1, "input_features": 1, "pos_memo": 1},
            ),
            Relation("scaling", "scaling", linear="input_features"),
            Relation("zero", "zero", linear="input_features"),
            Relation("outside", "outside", constants={"geom_xyz": "-1"}),
        ),
        coordinates=tuple(
            Coordinate(name, "geom_xyz", column, (f"num_voxel_{name}",)) for column, name in enumerate("xyz")
        ),
        sums=(RowSum("output_features", "input_features"),),
    )

    def reference(self, inputs: Arrays, env: Env) -> Arrays:
        """Sums in float64, cell by cell in the order of the points. Source: the design document, 3.1."""
        return self.reference_in(np.float64, inputs, env)

    def reference_in(self, dtype: type[np.floating[Any]], inputs: Arrays, env: Env) -> Arrays:
        """The same with sums in another dtype."""
        B, N, C = inputs["input_features"].shape
        X, Y = env["num_voxel_x"], env["num_voxel_y"]
        points, place = _inside(inputs["geom_xyz"], env)
        pos_memo = np.full((B * N, 3), -1, np.int32)
        pos_memo[points] = np.stack(place, axis=1)

        output = np.zeros((B * Y * X, C), np.float32)
        features = inputs["input_features"].reshape(B * N, C)
        points, cells, starts = _by_cell(points, place, env)
        with np.errstate(over="ignore"):  # a sum beyond float32 is Inf
            output[cells] = _segment_sums(features, points, starts, dtype)
        return {"output_features": output.reshape(B, Y, X, C), "pos_memo": pos_memo.reshape(B, N, 3)}

    def error_bound(
        self, inputs: Arrays, env: Env, *, baseline: Arrays | None = None, accumulate: str | None = None
    ) -> Arrays:
        """Sums of a cell's features in any order (error_bounds.sums); pos_memo holds integers and has none."""
        output = (baseline or self.reference(inputs, env))["output_features"]
        flat = output.reshape(-1, output.shape[-1])
        points, cells, starts = _by_cell(*_inside(inputs["geom_xyz"], env), env)
        counts = np.diff(starts, append=len(points))
        features = inputs["input_features"].reshape(-1, flat.shape[1])
        sizes = _segment_sums(features, points, starts, np.float64, _sizes)
        model = rounding(accumulate or self.contract.accumulate, "float")
        bound = np.zeros(flat.shape, np.float32)
        step = max(1, _BLOCK // max(1, flat.shape[1]))
        for start in range(0, len(cells), step):
            part = slice(start, start + step)
            bound[cells[part]] = sum_bound(sizes[part], counts[part, None], flat[cells[part]], model)
        return {"output_features": bound.reshape(output.shape)}

    def draw(self, tensor: str, recipe: str, env: Env, rng: np.random.Generator, arrays: Arrays) -> Array | None:
        """The recipe `points`: coordinates 4/5 inside, 1/20 each at 0, at the last, below 0, at or beyond the end."""
        if recipe != "points":
            return None
        shape = (int(env["batch_size"]), int(env["num_points"]))
        points = np.empty((*shape, 3), np.int32)
        for axis, name in enumerate(("num_voxel_x", "num_voxel_y", "num_voxel_z")):
            size, kind, where = int(env[name]), rng.random(shape), rng.random(shape)
            values = np.floor(where * size)
            for fraction, value in (
                (0.2, size + np.floor(where * 5)),
                (0.175, size),
                (0.15, -1 - np.floor(where * 3)),
                (0.1, size - 1),
                (0.05, 0),
            ):
                values = np.where(kind < fraction, value, values)
            points[..., axis] = values
        return points

    def theory_io_bytes(self, env: Env, inputs: Arrays, outputs: Arrays) -> float:
        """geom_xyz once, and per inside point 3 ints and 3*C floats."""
        inside = int(np.count_nonzero(outputs["pos_memo"][..., 0] >= 0))
        return float(inputs["geom_xyz"].nbytes + 4 * inside * (3 + 3 * int(env["num_channels"])))


def _inside(geom_xyz: Array, env: Env) -> tuple[Array, tuple[Array, Array, Array]]:
    """The flat numbers of the points inside, in order, and where they fall: batch, y, x."""
    X, Y, Z = (env[name] for name in ("num_voxel_x", "num_voxel_y", "num_voxel_z"))
    x, y, z = np.moveaxis(geom_xyz.reshape(-1, 3), 1, 0)
    points = np.flatnonzero((x >= 0) & (x < X) & (y >= 0) & (y < Y) & (z >= 0) & (z < Z))
    return points, (points // geom_xyz.shape[1], y[points].astype(np.int64), x[points].astype(np.int64))


def _by_cell(points: Array, place: tuple[Array, Array, Array], env: Env) -> tuple[Array, Array, Array]:
    """The points sorted by cell and by number, the cells that have points, and where each cell's points start."""
    batch, y, x = place
    cell = (batch * env["num_voxel_y"] + y) * env["num_voxel_x"] + x
    order = np.argsort(cell, kind="stable")
    cells, starts = np.unique(cell[order], return_index=True)
    return points[order], cells, starts


def _segment_sums(
    features: Array, points: Array, starts: Array, dtype: type[np.floating[Any]], term: Callable[[Array], Array] = _same
) -> Array:
    """Per segment points[starts[i]:starts[i + 1]] the sum of its rows of features (of term(rows)), in dtype.

    term may overwrite the rows, which are a copy.
    """
    sums = np.zeros((len(starts), features.shape[1]), dtype)
    step = max(1, _BLOCK // max(1, features.shape[1]))
    for begin in range(0, len(points), step):
        end = min(begin + step, len(points))
        first = int(np.searchsorted(starts, begin, side="right")) - 1  # the segment that `begin` lies in
        last = int(np.searchsorted(starts, end, side="left"))
        inner = np.maximum(starts[first:last], begin) - begin
        with np.errstate(invalid="ignore"):  # Inf - Inf is NaN
            sums[first:last] += np.add.reduceat(term(features[points[begin:end]]).astype(dtype), inner, axis=0)
    return sums


OPERATORS = (VoxelPoolingForward(),)
