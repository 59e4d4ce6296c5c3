"""roi_crop on the device against loops in float64."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mluops_cli.implementations.tiled.onchip import Machine, OnChipLimitError
from schemas.tensor_descriptor import Descriptor
from tests.mluops_cli.implementations.tiled.trial import MACHINES, Trial, unwritten

Array = np.ndarray[Any, Any]
SHAPES = (  # B, H, W, C, N, OH, OW
    (1, 5, 5, 1, 1, 3, 1),
    (2, 4, 7, 3, 6, 2, 5),
    (3, 1, 6, 33, 3, 4, 4),
    (1, 6, 1, 129, 4, 1, 3),
    (2, 3, 3, 65, 2, 7, 2),
)


def corners(y: float, x: float, H: int, W: int) -> list[tuple[int, int, float]]:
    """Row, column and weight of the corners that lie in the image, from the design's formulas."""
    ay, ax = (y + 1) * (H - 1) / 2, (x + 1) * (W - 1) / 2
    y0, x0 = math.floor(ay), math.floor(ax)
    wy, wx = 1 - (ay - y0), 1 - (ax - x0)
    around = [(y0, x0, wx * wy), (y0, x0 + 1, (1 - wx) * wy)]
    around += [(y0 + 1, x0, wx * (1 - wy)), (y0 + 1, x0 + 1, (1 - wx) * (1 - wy))]
    return [(row, column, weight) for row, column, weight in around if 0 <= row < H and 0 <= column < W]


def trial(shape: tuple[int, ...], backward: bool = False, seed: int = 0) -> Trial:
    """A call with a grid that reaches a little beyond the image and holds exact corners."""
    B, H, W, C, N, OH, OW = shape
    rng = np.random.default_rng(seed)
    grid = rng.uniform(-1.3, 1.3, (N, OH, OW, 2)).astype(np.float32)
    exact = rng.random(grid.shape) < 0.2
    grid[exact] = rng.choice(np.array([-1, 0, 1], np.float32), exact.sum())
    image, crop = (B, H, W, C), (N, OH, OW, C)
    given, computed = (crop, image) if backward else (image, crop)
    names = ("grad_output", "grad_input") if backward else ("input", "output")
    values = rng.normal(size=given).astype(np.float32)
    op = "roi_crop_backward" if backward else "roi_crop_forward"
    layouts = dict.fromkeys(names, "NHWC")
    return Trial(op, {names[0]: values, "grid": grid}, {names[1]: unwritten(computed)}, {}, layouts)


def right(case: Trial) -> Array:
    """The answer in float64, a loop over the bins."""
    (computed,) = case.outputs.values()
    grid, backward = case.inputs["grid"], case.op == "roi_crop_backward"
    given = case.inputs["grad_output" if backward else "input"]
    B, H, W, _ = computed.shape if backward else given.shape
    answer = np.zeros(computed.shape, np.float64)
    for n in range(grid.shape[0]):
        image = n // (grid.shape[0] // B)
        for h in range(grid.shape[1]):
            for w in range(grid.shape[2]):
                y, x = grid[n, h, w].tolist()
                for row, column, weight in corners(y, x, H, W):
                    if backward:
                        answer[image, row, column] += weight * given[n, h, w]
                    else:
                        answer[n, h, w] += weight * given[image, row, column]
    return answer


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_against_loops(shape: tuple[int, ...], backward: bool, machine: Machine) -> None:
    case = trial(shape, backward)
    assert case.run(machine) == "SUCCESS"
    (computed,) = case.outputs.values()
    np.testing.assert_allclose(computed, right(case), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("point", "value"),
    [
        ((-1, -1), 1),
        ((-1, 1), 2),
        ((1, -1), 3),
        ((1, 1), 4),
        ((0, 0), 2.5),
        ((1, 0), 3.5),
        ((0, 1), 3.0),
        ((0, 1.5), 2.25),
        ((0, -1.5), 1.5),
        ((5, 5), 0),
        ((3e38, -3e38), 0),
        ((1e10, 0), 0),
        ((0, -6.7e7), 0),
    ],
)
def test_hand_checked(point: tuple[float, float], value: float) -> None:
    image = np.array([[1, 2], [3, 4]], np.float32).reshape(1, 2, 2, 1)
    grid = np.array(point, np.float32).reshape(1, 1, 1, 2)
    layouts = dict.fromkeys(("input", "output", "grad_output", "grad_input"), "NHWC")
    forward = Trial(
        "roi_crop_forward", {"input": image, "grid": grid}, {"output": unwritten((1, 1, 1, 1))}, {}, layouts
    )
    assert forward.run() == "SUCCESS"
    assert forward.outputs["output"].item() == value
    gradient = np.ones((1, 1, 1, 1), np.float32)
    outputs = {"grad_input": unwritten((1, 2, 2, 1))}
    backward = Trial("roi_crop_backward", {"grad_output": gradient, "grid": grid}, outputs, {}, layouts)
    assert backward.run() == "SUCCESS"
    assert (outputs["grad_input"] * image).sum() == value  # the adjoint of the forward pass


@pytest.mark.parametrize("backward", [False, True])
def test_coordinates_beyond_the_precision_reach_no_corner(backward: bool) -> None:
    """3e38 * (H-1) is infinite in float32, its weights would be NaN."""
    case = trial((2, 9, 9, 3, 2, 1, 4), backward)
    case.inputs["grid"][...] = np.array([[3e38, 0], [0, -3e38], [3e38, 3e38], [-1e30, 1]], np.float32)
    assert case.run() == "SUCCESS"
    (computed,) = case.outputs.values()
    assert (computed == 0).all()


def test_a_corner_outside_is_not_read_and_one_of_weight_zero_is() -> None:
    image = np.array([[np.nan, 2], [3, 4]], np.float32).reshape(1, 2, 2, 1)
    grid = np.array([[1, 1], [1, 1.5], [0, 0], [-1, 1], [1, -1], [7, 7]], np.float32).reshape(1, 1, 6, 2)
    case = Trial(
        "roi_crop_forward",
        {"input": image, "grid": grid},
        {"output": unwritten((1, 1, 6, 1))},
        {},
        {"input": "NHWC", "output": "NHWC"},
    )
    assert case.run() == "SUCCESS"
    np.testing.assert_array_equal(case.outputs["output"].ravel(), np.array([4, 3, np.nan, 2, 3, 0], np.float32))
    image[0, 0, 0, 0], image[0, 1, 0, 0] = 1, np.nan  # below (-1, -1): in range, weight 0
    grid[0, 0, 0] = -1
    assert case.run() == "SUCCESS"
    assert np.isnan(case.outputs["output"][0, 0, 0, 0])


@pytest.mark.parametrize("backward", [False, True])
def test_channels_beyond_a_part_are_looped_over(backward: bool) -> None:
    """A part of 128 bytes holds 32 channels, of 1 core."""
    machine = Machine(nram=1280 if backward else 1024, clusters=1, cores=1)
    for C in (31, 32, 33, 64, 65):
        case = trial((2, 3, 4, C, 4, 2, 2), backward)
        assert case.run(machine) == "SUCCESS"
        (computed,) = case.outputs.values()
        np.testing.assert_allclose(computed, right(case), rtol=1e-4, atol=1e-5)
    with pytest.raises(OnChipLimitError):
        case.run(Machine(nram=machine.nram - 1))


def test_backward_is_reproducible_and_depends_on_the_machine() -> None:
    results = []
    for machine in (Machine(), Machine(), Machine(nram=4096, clusters=5)):
        case = trial((1, 2, 2, 16, 40, 5, 5), backward=True)
        assert case.run(machine) == "SUCCESS"
        results.append(case.outputs["grad_input"])
    np.testing.assert_array_equal(results[0], results[1])
    assert (results[0] != results[2]).any()


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("axis", range(7))
def test_zero_elements(axis: int, backward: bool) -> None:
    shape = [2, 3, 4, 5, 4, 2, 2]
    shape[axis] = 0
    assert trial(tuple(shape), backward).run() == "BAD_PARAM"


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize(
    ("name", "change", "status"),
    [
        ("image", {"dtype": "half"}, "BAD_PARAM"),
        ("crop", {"dtype": "double"}, "BAD_PARAM"),
        ("grid", {"dtype": "half"}, "BAD_PARAM"),
        ("image", {"layout": "NCHW"}, "BAD_PARAM"),
        ("crop", {"layout": "ARRAY"}, "BAD_PARAM"),
        ("grid", {"layout": "NCHW"}, "SUCCESS"),
        ("image", {"dims": (2, 3, 20)}, "BAD_PARAM"),
        ("crop", {"dims": (4, 2, 10)}, "BAD_PARAM"),
        ("grid", {"dims": (4, 2, 4)}, "BAD_PARAM"),
        ("grid", {"dims": (4, 2, 2, 3)}, "BAD_PARAM"),
        ("grid", {"dims": (6, 2, 2, 2)}, "BAD_PARAM"),
        ("grid", {"dims": (4, 3, 2, 2)}, "BAD_PARAM"),
        ("grid", {"dims": (4, 2, 3, 2)}, "BAD_PARAM"),
        ("image", {"dims": (2, 3, 4, 6)}, "BAD_PARAM"),
        ("image", {"dims": (3, 3, 4, 5)}, "BAD_PARAM"),  # 4 crops of 3 images
        ("image", {"strides": (60, 1, 15, 3)}, "NOT_SUPPORTED"),
        ("grid", {"strides": (8, 4, 2, 2)}, "NOT_SUPPORTED"),
        ("crop", {"strides": (40, 20, 10, 2)}, "NOT_SUPPORTED"),
        ("image", None, "BAD_PARAM"),
        ("grid", None, "BAD_PARAM"),
        ("crop", None, "BAD_PARAM"),
    ],
)
def test_descriptors(name: str, change: dict[str, Any] | None, status: str, backward: bool) -> None:
    case = trial((2, 3, 4, 5, 4, 2, 2), backward)
    names = {"grid": "grid", "image": "input", "crop": "output"}
    if backward:
        names |= {"image": "grad_input", "crop": "grad_output"}
    described = case.descriptors()[names[name]]
    assert described is not None
    assert case.run(describe={names[name]: None if change is None else replace(described, **change)}) == status


@pytest.mark.parametrize("backward", [False, True])
def test_handle_pointers_and_large_tensors(backward: bool) -> None:
    case = trial((2, 3, 4, 5, 4, 2, 2), backward)
    assert case.run(handle=None) == "BAD_PARAM"
    for name in (*case.inputs, *case.outputs):
        assert case.run(null=(name,)) == "BAD_PARAM"
    image = "grad_input" if backward else "input"
    large = Descriptor("NHWC", "float", (1, 32768, 32768, 5))
    assert case.run(describe={image: large}, null=(image,)) == "NOT_SUPPORTED"
