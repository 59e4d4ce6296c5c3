"""--rotate: kernels that answer from kept results fail, others don't."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from generators.casegen.generate import generate
from generators.casegen.write_options import WriteOptions
from generators.specs.selection import select_cases
from mluops_cli.core.case_options import CaseOptions
from mluops_cli.execution.case.case_run import prepare
from mluops_cli.execution.case.output_buffers import digest
from mluops_cli.execution.kernel_process.shared_memory import SharedMemory
from mluops_cli.execution.perf.new_data import with_new_data
from mluops_cli.search.case_making import make_case
from mluops_cli.search.exploits import kept_results, right_kernels
from schemas.casefiles.reading import read_case
from tests.mluops_cli.execution.conftest import Ran

PSAMASK = {
    "name": "case",
    "sizes": {"N": 1, "H": 2, "W": 3},
    "params": {"psa_type": "distribute", "h_mask": 3, "w_mask": 3},
}
LARGE = {**PSAMASK, "sizes": {"N": 1, "H": 12, "W": 13}}
MEASURE = ("--perf", "--repeat", "8", "--peak-bandwidth", "1e15", "--peak-ops", "1e15", "-j", "1")


def distribute(x: np.ndarray) -> np.ndarray:
    """psamask_forward DISTRIBUTE of one 2 x 3 image and a 3 x 3 mask, by the formula."""
    y = np.zeros((1, 2, 3, 6), np.float32)
    for h, w, p, q in np.ndindex(2, 3, 3, 3):
        i, j = h + p - 1, w + q - 1
        if 0 <= i < 2 and 0 <= j < 3:
            y[0, i, j, h * 3 + w] = x[0, h, w, p * 3 + q]
    return y


def test_each_turn_has_its_own_values_and_their_baseline(tmp_path: Path) -> None:
    made = make_case("psamask_forward", "general", PSAMASK, tmp_path)
    with read_case(Path(made.file)) as file:
        prepared = prepare(file)
        before = prepared.call.inputs["x"]
        assert before is not None
        seen = [before]
        for turn in range(1, 7):
            data = with_new_data(prepared, turn, CaseOptions())
            assert data is not None
            new = data.prepared
            x = new.call.inputs["x"]
            assert x is not None
            assert all(not np.array_equal(x, each) for each in seen)
            assert np.array_equal(new.baseline["y"], distribute(x))
            assert float(abs(x).sum()) == pytest.approx(float(abs(before).sum()) / (1 + turn % 2))
            assert new.outputs["y"].array is new.call.outputs["y"]
            assert new.outputs["y"].array is not prepared.call.outputs["y"]
            seen.append(x)
        assert prepared.call.inputs["x"] is before


def test_error_bounds_are_those_of_the_new_values(tmp_path: Path) -> None:
    sums = {"batch_size": 1, "num_points": 50, "num_channels": 3, "num_voxel_x": 2, "num_voxel_y": 2, "num_voxel_z": 1}
    made = make_case("voxel_pooling_forward", "general", {"name": "case", "params": sums}, tmp_path)
    with read_case(Path(made.file)) as file:
        prepared = prepare(file)
        halved = with_new_data(prepared, 13, CaseOptions())
        assert halved is not None
        old, new = prepared.bounds["output_features"], halved.prepared.bounds["output_features"]
        assert not np.array_equal(old, new)
        assert 0.3 < new.sum() / old.sum() < 0.7
        unbounded = with_new_data(prepared, 13, CaseOptions(bound="off"))
        assert unbounded is not None
        assert unbounded.prepared.bounds == {}


def test_an_implementation_finds_the_new_values_no_sooner_than_they_are_shown(tmp_path: Path) -> None:
    made = make_case("psamask_forward", "general", PSAMASK, tmp_path)
    with read_case(Path(made.file)) as file:
        prepared = prepare(file, memory=SharedMemory())
        data = with_new_data(prepared, 1, CaseOptions())
        assert data is not None
        x = data.prepared.call.inputs["x"]
        assert x is not None
        assert not x.any()
        data.show()
        assert digest(x) == data.prepared.digests["x"]
        assert np.array_equal(data.prepared.baseline["y"], distribute(x))
        assert data.prepared.memory.stray(x) is None


def test_without_a_floating_input_there_is_no_new_data(tmp_path: Path) -> None:
    generate(next(iter(select_cases(("get_indice_pairs",), ("demo",), (), 1))), WriteOptions(tmp_path))
    with read_case(next(tmp_path.rglob("*.pb"))) as file:
        assert with_new_data(prepare(file), 1, CaseOptions()) is None


@pytest.mark.parametrize(
    ("kernel", "status", "reason"),
    [
        ("cached_by_content", "fail", "cached: a call on new data takes "),
        ("works_ahead", "fail", "cached: a call on new data takes "),
        pytest.param("cached_by_shape", "fail", "on new data, after right ones: y: ", marks=pytest.mark.slow),
        pytest.param("right", "pass", "", marks=pytest.mark.slow),
    ],
)
def test_a_measurement(run: Callable[..., Ran], tmp_path: Path, kernel: str, status: str, reason: str) -> None:
    make_case("psamask_forward", "general", LARGE, tmp_path / "cases")
    file = (right_kernels if kernel == "right" else kept_results).__file__
    ran = run(tmp_path / "cases", "--impl", f"python:{file}:{kernel}", *MEASURE, "--rotate")
    (record,) = ran.records.values()
    assert record["status"] == status, record["reason"]
    assert record["reason"].startswith(reason)
    if kernel != "cached_by_shape":
        assert len(record["perf"]["new_data_us"]) == 6


@pytest.mark.slow
def test_with_warm_caches_times_are_not_compared(run: Callable[..., Ran], tmp_path: Path) -> None:
    make_case("psamask_forward", "general", LARGE, tmp_path / "cases")
    impl = f"python:{kept_results.__file__}:cached_by_content"
    ran = run(tmp_path / "cases", "--impl", impl, *MEASURE, "--rotate", "--cache", "warm")
    (record,) = ran.records.values()
    assert record["status"] == "pass"
    assert len(record["perf"]["new_data_us"]) == 6


@pytest.mark.slow
def test_without_rotate_it_is_not_seen(run: Callable[..., Ran], tmp_path: Path) -> None:
    make_case("psamask_forward", "general", LARGE, tmp_path / "cases")
    ran = run(tmp_path / "cases", "--impl", f"python:{kept_results.__file__}:cached_by_content", *MEASURE)
    (record,) = ran.records.values()
    assert record["status"] == "pass"
    assert "new_data_us" not in record["perf"]


def test_it_needs_perf(run: Callable[..., Ran], tmp_path: Path) -> None:
    make_case("psamask_forward", "general", PSAMASK, tmp_path / "cases")
    alone = run(tmp_path / "cases", "--impl", "tiled", "--rotate")
    assert alone.code == 2
    assert "--rotate needs --perf" in alone.err
