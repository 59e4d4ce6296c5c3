"""--repeat: the outputs of repeated calls are identical, vary as rounding allows, or vary beyond it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mluops_cli.core.case_options import CaseOptions, WorkerSettings
from mluops_cli.execution.case.case_run import run_case
from mluops_cli.execution.case.repeats import Repeats
from mluops_cli.implementations.python import Python
from mluops_cli.judging.verdict import OutputUnderTest
from schemas.casefiles.reading import write_case
from tests.mluops_cli.execution.conftest import add_tensor, case_node, write_psamask

PLUGIN = Path(__file__).parent / "varying.py"
POINTS, CHANNELS = 60, 3


@pytest.fixture
def voxels(tmp_path: Path) -> Path:
    """Sixty points in four cells; the features of the last one are small: without it the thresholds hold."""
    node = case_node("voxel_pooling_forward", suite="network")
    sizes = {"batch_size": 1, "num_points": POINTS, "num_channels": CHANNELS}
    for name, value in {**sizes, "num_voxel_x": 2, "num_voxel_y": 2, "num_voxel_z": 2}.items():
        setattr(node.voxel_pooling_forward_param, name, value)
    rng = np.random.default_rng(5)
    xyz = rng.integers(0, 2, (1, POINTS, 3)).astype(np.int32)
    features = rng.uniform(0.5, 1, (1, POINTS, CHANNELS)).astype(np.float32)
    features[0, -1] = 1e-3
    add_tensor(node.input, "geom_xyz", xyz.shape, "INT32", "ARRAY")
    add_tensor(node.input, "input_features", features.shape, "FLOAT", "ARRAY")
    add_tensor(node.output, "output_features", (1, 2, 2, CHANNELS), "FLOAT", "ARRAY")
    add_tensor(node.output, "pos_memo", (1, POINTS, 3), "INT32", "ARRAY")
    path = tmp_path / "case.pb"
    write_case(path, node, [xyz, features], [None, None])
    return path


def result_of(path: Path, name: str, **options: Any) -> dict[str, Any]:
    """What a run says of one case, in this process."""
    settings = WorkerSettings(CaseOptions("python", **options))
    return run_case({"file": str(path), "manifest_meta": None}, Python(f"{PLUGIN}:{name}"), settings)


def repeats_of(result: dict[str, Any]) -> list[Any]:
    return [output["repeat"] for output in result["outputs"].values()]


@pytest.mark.parametrize(
    ("name", "status", "expected"),
    [
        ("steady", "pass", ["identical", "identical"]),
        ("atomics", "pass", ["varies_within_bound", "identical"]),
        ("race", "pass", ["varies_beyond_bound", "identical"]),
        ("memo_race", "fail", ["identical", "varies_beyond_bound"]),
    ],
)
def test_what_repeats_say_of_sums(voxels: Path, name: str, status: str, expected: list[str]) -> None:
    result = result_of(voxels, name, repeat=3)
    assert (result["status"], repeats_of(result)) == (status, expected), result["reason"]


def test_the_call_beyond_the_bound_is_recorded_whichever_it_was(voxels: Path) -> None:
    result = result_of(voxels, "race", repeat=3)
    assert (result["beyond_bound"], result["repeats"]) == (True, 3)
    assert result["outputs"]["output_features"]["bound_ratio"] > 2


def test_one_call_says_nothing_of_repeats(voxels: Path) -> None:
    assert repeats_of(result_of(voxels, "steady")) == [None, None]


@pytest.mark.parametrize(("name", "verdict"), [("atomics", "varies_within_bound"), ("race", "varies_beyond_bound")])
def test_repeats_are_told_with_bound_off_too(voxels: Path, name: str, verdict: str) -> None:
    result = result_of(voxels, name, repeat=3, bound="off")
    assert (result["beyond_bound"], repeats_of(result)) == (None, [verdict, "identical"])


@pytest.mark.parametrize("bounds", [{}, {"y": np.array([np.nan, np.nan], np.float32)}])
def test_what_varies_without_an_error_bound_is_not_identical(bounds: dict[str, Any]) -> None:
    repeats = Repeats(lambda: bounds)
    for value in (1.0, 2.0, 1.0):
        array = np.array([1.0, value], np.float32)
        repeats.add([OutputUnderTest("y", array, array, (), "float")])
    assert repeats.verdicts == {"y": "varies"}


def test_copies_that_differ_are_beyond_even_where_only_the_sign_of_zero_does(tmp_path: Path) -> None:
    result = result_of(write_psamask(tmp_path, "case"), "copies", repeat=2, loose_zero=True)
    assert (result["status"], repeats_of(result)) == ("pass", ["varies_beyond_bound"])


def test_the_worst_repeat_counts_and_the_first_one_is_the_measure() -> None:
    def under_test(values: list[float]) -> list[OutputUnderTest]:
        array = np.array(values, np.float32)
        return [OutputUnderTest("y", array, array, (), "float")]

    repeats = Repeats(lambda: {"y": np.array([0.5, np.nan], np.float32)})
    seen = []
    for values in ([1.0, 1.0], [1.0, 1.0], [2.0, 9.0], [2.5, 1.0], [1.0, 1.0]):
        repeats.add(under_test(values))
        seen.append(repeats.verdicts["y"])
    assert seen == ["identical", "identical", "varies_within_bound", "varies_beyond_bound", "varies_beyond_bound"]
