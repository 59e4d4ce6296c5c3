"""The suite `exact`: every order of float additions gives the baseline's bits, coarser arithmetic doesn't."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from generators.casegen.case_data import draw_inputs, omitted_tensors
from generators.contracts.case import Case
from generators.operator_registry import operator_named
from generators.specs.expansion import expand_operator

Array = np.ndarray[Any, Any]
ORDERS = 200
COARSE = {"half": np.float16, "bfloat16": ml_dtypes.bfloat16}
SUMS = ("roi_crop_forward", "roi_crop_backward", "voxel_pooling_forward")
OUTPUTS = {"roi_crop_forward": "output", "roi_crop_backward": "grad_input", "voxel_pooling_forward": "output_features"}
CASES = [case for op in SUMS for case in expand_operator(op, {"exact"})]
# How (g + 1)(size - 1)/2 may be computed, each step rounded to float32.
FACTORINGS: tuple[Callable[[Array, np.float32], Array], ...] = (
    lambda g, last: (g + np.float32(1)) * last / np.float32(2),
    lambda g, last: (g + np.float32(1)) * (last / np.float32(2)),
    lambda g, last: g * (last / np.float32(2)) + last / np.float32(2),
)


def inputs_of(case: Case) -> dict[str, Array]:
    drawn = draw_inputs(case, operator_named(case.op), omitted_tensors(case))
    return {name: array for name, array in drawn.items() if array is not None}


def baseline_of(case: Case, inputs: dict[str, Array]) -> Array:
    operator = operator_named(case.op)
    return operator.baseline(inputs, case.shapes(operator.contract), case.params)[OUTPUTS[case.op]]


def terms_of(case: Case, inputs: dict[str, Array], factoring: int = 0) -> tuple[Array, Array, tuple[int, ...]]:
    """The terms of all sums in float32, [terms, channels], the target of each, and the output's shape."""
    shape = next(plan.dims for plan in case.outputs if plan.name == OUTPUTS[case.op])
    if case.op == "voxel_pooling_forward":
        x, y, z = np.moveaxis(inputs["geom_xyz"], 2, 0)
        sizes = [case.params[f"num_voxel_{axis}"] for axis in "xyz"]
        inside = np.all([(a >= 0) & (a < size) for a, size in zip((x, y, z), sizes, strict=True)], axis=0)
        batch = np.broadcast_to(np.arange(len(x))[:, None], x.shape)
        target = (batch * shape[1] + y) * shape[2] + x
        return inputs["input_features"][inside], target[inside], shape
    forward = case.op == "roi_crop_forward"
    image = inputs["input"].shape if forward else shape
    _, H, W, C = image
    grid = inputs["grid"]
    rois = np.arange(len(grid)) // (len(grid) // image[0])
    a, b = (FACTORINGS[factoring](grid[..., axis], np.float32(size - 1)) for axis, size in ((0, H), (1, W)))
    values, targets = [], []
    for down in (0, 1):
        for right in (0, 1):
            y, x = np.floor(a) + down, np.floor(b) + right
            weight = (1 - np.abs(a - y)) * (1 - np.abs(b - x))
            inside = (y >= 0) & (y < H) & (x >= 0) & (x < W)
            roi, i, j = np.nonzero(inside)
            pixel = (rois[roi] * H + y[inside].astype(int)) * W + x[inside].astype(int)
            place = (roi * grid.shape[1] + i) * grid.shape[2] + j
            source = inputs["input"].reshape(-1, C)[pixel] if forward else inputs["grad_output"].reshape(-1, C)[place]
            values.append(weight[inside].astype(np.float32)[:, None] * source)
            targets.append(place if forward else pixel)
    return np.concatenate(values), np.concatenate(targets), shape


def summed(terms: Array, targets: Array, shape: tuple[int, ...], dtype: Any = np.float32) -> Array:
    """The sums in the order of the terms, each addition rounded to dtype."""
    result = np.zeros((int(np.prod(shape[:-1])), shape[-1]), dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        np.add.at(result, targets, terms.astype(dtype))
    return result.reshape(shape).astype(np.float32)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_right_kernels_are_bit_identical(case: Case) -> None:
    inputs = inputs_of(case)
    baseline = baseline_of(case, inputs)
    rng = np.random.default_rng(0)
    for number in range(ORDERS):
        terms, targets, shape = terms_of(case, inputs, number % len(FACTORINGS))
        order = rng.permutation(len(terms))
        assert np.array_equal(summed(terms[order], targets[order], shape) + 0.0, baseline + 0.0)
    # What makes that so: 16 times every sum of absolute terms is an integer below 2^24.
    sizes = summed(np.abs(terms), targets, shape, np.float64)
    assert sizes.max() * (1 if "voxel" in case.op else 16) < 2**24
    assert np.abs(baseline).max() > 2**11


@pytest.mark.parametrize("coarse", COARSE)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_coarser_accumulators_and_inputs_fail(case: Case, coarse: str) -> None:
    inputs = inputs_of(case)
    baseline = baseline_of(case, inputs)
    dtype = COARSE[coarse]
    assert not np.array_equal(summed(*terms_of(case, inputs), dtype), baseline)
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = {
            name: array if array.dtype == np.int32 or name == "grid" else array.astype(dtype).astype(np.float32)
            for name, array in inputs.items()
        }
        assert not np.array_equal(summed(*terms_of(case, rounded)), baseline)


@pytest.mark.parametrize("coarse", COARSE)
@pytest.mark.parametrize("op", SUMS[:2])
def test_a_coarser_grid_fails(op: str, coarse: str) -> None:
    (case,) = (each for each in CASES if (each.op, each.name) == (op, "wide"))
    inputs = inputs_of(case)
    rounded = {**inputs, "grid": inputs["grid"].astype(COARSE[coarse]).astype(np.float32)}
    assert not np.array_equal(summed(*terms_of(case, rounded)), baseline_of(case, inputs))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_threshold_is_zero(case: Case) -> None:
    assert [(each.name, each.threshold) for each in case.criteria[OUTPUTS[case.op]]] == [("diff3", 0)]
