"""voxel_pooling_forward on the device against a loop over the points."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mluops_cli.implementations.tiled.onchip import Machine, OnChipLimitError
from schemas.tensor_descriptor import Descriptor
from tests.mluops_cli.implementations.tiled.trial import MACHINES, Trial, unwritten

OP = "voxel_pooling_forward"
Array = np.ndarray[Any, Any]
SIZES = ("batch_size", "num_points", "num_channels", "num_voxel_x", "num_voxel_y", "num_voxel_z")


def trial(B: int, N: int, C: int, X: int, Y: int, Z: int, seed: int = 0) -> Trial:
    """Points inside, on and outside every bound."""
    rng = np.random.default_rng(seed)
    xyz = np.stack([rng.integers(-1, bound + 1, (B, N), endpoint=True) for bound in (X, Y, Z)], axis=-1)
    inputs = {
        "geom_xyz": xyz.astype(np.int32),
        "input_features": rng.normal(size=(B, N, C)).astype(np.float32),
    }
    outputs = {"output_features": unwritten((B, Y, X, C)), "pos_memo": np.full((B, N, 3), -1, np.int32)}
    return Trial(OP, inputs, outputs, dict(zip(SIZES, (B, N, C, X, Y, Z), strict=True)))


def right(case: Trial) -> tuple[Array, Array]:
    """The sums in float64, and pos_memo."""
    xyz, features = case.inputs["geom_xyz"], case.inputs["input_features"]
    X, Y, Z = (case.params[name] for name in SIZES[3:])
    pooled = np.zeros(case.outputs["output_features"].shape, np.float64)
    memo = np.full(xyz.shape, -1, np.int32)
    for b in range(xyz.shape[0]):
        for n in range(xyz.shape[1]):
            x, y, z = xyz[b, n].tolist()
            if 0 <= x < X and 0 <= y < Y and 0 <= z < Z:
                pooled[b, y, x] += features[b, n]
                memo[b, n] = b, y, x
    return pooled, memo


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    "sizes", [(1, 1, 1, 1, 1, 1), (2, 50, 3, 4, 3, 2), (3, 7, 65, 2, 5, 1), (5, 1, 2, 3, 3, 3), (1, 900, 129, 3, 2, 2)]
)
def test_against_loops(sizes: tuple[int, ...], machine: Machine) -> None:
    case = trial(*sizes)
    assert case.run(machine) == "SUCCESS"
    pooled, memo = right(case)
    np.testing.assert_array_equal(case.outputs["pos_memo"], memo)
    np.testing.assert_allclose(case.outputs["output_features"], pooled, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("points", [1, 2, 7])
@pytest.mark.parametrize("channels", [5, 6, 7, 13])
def test_a_memory_of_few_points(points: int, channels: int) -> None:
    """9 parts of `points` words: 6 of them hold channels, of several points or a chunk of one."""
    case = trial(2, 15, channels, 3, 3, 1)
    assert case.run(Machine(nram=points * 36, clusters=1, cores=2)) == "SUCCESS"
    pooled, memo = right(case)
    np.testing.assert_array_equal(case.outputs["pos_memo"], memo)
    np.testing.assert_allclose(case.outputs["output_features"], pooled, rtol=1e-5, atol=1e-5)


def test_a_memory_of_no_point_is_an_error() -> None:
    with pytest.raises(OnChipLimitError):
        trial(1, 3, 2, 2, 2, 1).run(Machine(nram=35))


def test_bounds_by_hand() -> None:
    """X=2, Y=3, Z=2: 0 is inside, the bound itself is not, all z share a cell; extreme integers are outside."""
    least, most = -(2**31), 2**31 - 1
    points = [(0, 0, 0), (1, 2, 1), (1, 2, 0), (2, 0, 0), (0, 3, 0), (0, 0, 2), (-1, 0, 0), (0, -1, 0), (0, 0, -1)]
    points += [(least, 0, 0), (0, most, 0), (most, most, most), (least, least, least)]
    case = trial(1, len(points), 1, 2, 3, 2)
    case.inputs["geom_xyz"] = np.array([points], np.int32)
    case.inputs["input_features"] = (2.0 ** np.arange(len(points), dtype=np.float32)).reshape(1, -1, 1)
    assert case.run() == "SUCCESS"
    assert case.outputs["output_features"].ravel().tolist() == [1, 0, 0, 0, 0, 6]
    assert case.outputs["pos_memo"][0, :3].tolist() == [[0, 0, 0], [0, 2, 1], [0, 2, 1]]
    assert (case.outputs["pos_memo"][0, 3:] == -1).all()


def test_nan_and_inf_stay_in_their_cell() -> None:
    case = trial(1, 4, 1, 3, 1, 1)
    case.inputs["geom_xyz"] = np.array([[[0, 0, 0], [1, 0, 0], [1, 0, 0], [5, 0, 0]]], np.int32)
    case.inputs["input_features"] = np.array([np.nan, np.inf, 1, np.nan], np.float32).reshape(1, 4, 1)
    assert case.run() == "SUCCESS"
    np.testing.assert_array_equal(case.outputs["output_features"].ravel(), np.array([np.nan, np.inf, 0], np.float32))


def test_the_order_is_shuffled_but_the_same_in_every_run() -> None:
    results = []
    for machine in (Machine(), Machine(), Machine(nram=4096, clusters=5)):
        case = trial(1, 3000, 8, 2, 2, 1)
        assert case.run(machine) == "SUCCESS"
        results.append(case.outputs["output_features"])
    np.testing.assert_array_equal(results[0], results[1])
    assert (results[0] != results[2]).any()


@pytest.mark.parametrize("name", SIZES)
def test_parameters(name: str) -> None:
    case = trial(2, 5, 3, 4, 3, 2)
    assert case.run(params={name: 0}) == "BAD_PARAM"
    assert case.run(params={name: -case.params[name]}) == "BAD_PARAM"
    if name != "num_voxel_z":  # no tensor has it
        assert case.run(params={name: case.params[name] + 1}) == "BAD_PARAM"


@pytest.mark.parametrize("axis", range(5))
def test_zero_elements(axis: int) -> None:
    sizes = [2, 5, 3, 4, 3, 2]
    sizes[axis] = 0
    assert trial(*sizes).run() == "BAD_PARAM"


@pytest.mark.parametrize(
    ("name", "change", "status"),
    [
        ("geom_xyz", {"dtype": "float"}, "BAD_PARAM"),
        ("input_features", {"dtype": "half"}, "BAD_PARAM"),
        ("output_features", {"dtype": "half"}, "BAD_PARAM"),
        ("pos_memo", {"dtype": "int64"}, "BAD_PARAM"),
        ("geom_xyz", {"dims": (10, 3)}, "BAD_PARAM"),
        ("geom_xyz", {"dims": (2, 5, 4)}, "BAD_PARAM"),
        ("input_features", {"dims": (2, 6, 3)}, "BAD_PARAM"),
        ("output_features", {"dims": (2, 4, 3, 3)}, "BAD_PARAM"),  # Y and X exchanged
        ("pos_memo", {"dims": (2, 5, 2)}, "BAD_PARAM"),
        ("pos_memo", {"layout": "NHWC"}, "SUCCESS"),
        ("geom_xyz", {"strides": (15, 1, 5)}, "NOT_SUPPORTED"),
        ("input_features", {"strides": (30, 6, 2)}, "NOT_SUPPORTED"),
        ("output_features", {"strides": (36, 3, 9, 1)}, "NOT_SUPPORTED"),
        ("geom_xyz", None, "BAD_PARAM"),
        ("input_features", None, "BAD_PARAM"),
        ("output_features", None, "BAD_PARAM"),
        ("pos_memo", None, "BAD_PARAM"),
    ],
)
def test_descriptors(name: str, change: dict[str, Any] | None, status: str) -> None:
    case = trial(2, 5, 3, 4, 3, 2)
    described = case.descriptors()[name]
    assert described is not None
    assert case.run(describe={name: None if change is None else replace(described, **change)}) == status


def test_handle_pointers_and_large_tensors() -> None:
    case = trial(2, 5, 3, 4, 3, 2)
    assert case.run(handle=None) == "BAD_PARAM"
    for name in (*case.inputs, *case.outputs):
        assert case.run(null=(name,)) == "BAD_PARAM"
    large = Descriptor("ARRAY", "float", (2, 32768, 32768, 3))
    answer = case.run(
        describe={"output_features": large},
        null=("output_features",),
        params={"num_voxel_x": 32768, "num_voxel_y": 32768},
    )
    assert answer == "NOT_SUPPORTED"
