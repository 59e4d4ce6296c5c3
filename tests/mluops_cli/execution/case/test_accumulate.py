"""The key accumulate of a spec: a half accumulator is within the error bound of such cases only."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from mluops_cli.main import main
from schemas.casefiles.reading import read_case, write_case
from schemas.protos import messages as proto

KERNEL = """
import numpy as np

def pool(op, inputs, outputs, params):
    total = np.zeros(outputs["output_features"].shape, np.float16)
    outputs["pos_memo"][...] = -1
    X, Y, Z = (params[f"num_voxel_{axis}"] for axis in "xyz")
    for b, points in enumerate(inputs["geom_xyz"]):
        for n, (x, y, z) in enumerate(points):
            if 0 <= x < X and 0 <= y < Y and 0 <= z < Z:
                total[b, y, x] += inputs["input_features"][b, n].astype(np.float16)
                outputs["pos_memo"][b, n] = b, y, x
    outputs["output_features"][...] = total
"""
SPEC = """
op: voxel_pooling_forward
defaults:
  params: {batch_size: 1, num_points: 300, num_channels: 4, num_voxel_x: 2, num_voxel_y: 2, num_voxel_z: 1}
  criteria: {output_features: {diff1: 0.1}}
suites:
  general:
    - name: plain
    - name: allowed
      accumulate: half
    - name: varied
      matrix: {accumulate: [bfloat16, double]}
"""


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    (tmp_path / "half.py").write_text(KERNEL)
    return generated(tmp_path, SPEC)


def generated(tmp_path: Path, spec: str, *options: str) -> Path:
    (tmp_path / "spec.yaml").write_text(spec)
    with pytest.raises(SystemExit) as stop:
        main(["gen", "--spec", str(tmp_path / "spec.yaml"), "--out", str(tmp_path / "cases"), *options])
    assert stop.value.code == 0
    return tmp_path / "cases"


def beyond(ran: Any) -> dict[str, bool | None]:
    assert set(ran.statuses.values()) == {"pass"}
    return {case.rpartition("/")[2]: record["beyond_bound"] for case, record in ran.records.items()}


def test_a_half_accumulator_is_within_the_bound_only_where_the_case_allows_it(
    tmp_path: Path, cases: Path, run: Any
) -> None:
    ran = run(cases, "--impl", f"python:{tmp_path / 'half.py'}:pool")
    assert beyond(ran) == {"plain": True, "allowed": False, "varied_bfloat16": False, "varied_double": True}
    told = ran.records["voxel_pooling_forward/general/varied_double"]["outputs"]["output_features"]["bound_sentence"]
    assert "x what any order of double additions explains; explained by sums in half" in told


@pytest.mark.parametrize("option", ["half", "float"])
def test_the_command_line_goes_before_the_case(option: str, tmp_path: Path, cases: Path, run: Any) -> None:
    ran = run(cases, "--impl", f"python:{tmp_path / 'half.py'}:pool", "--accumulate", option)
    assert set(beyond(ran).values()) == {option == "float"}


def test_bounds_that_the_file_does_not_hold_are_those_of_the_case_too(tmp_path: Path, cases: Path, run: Any) -> None:
    shutil.rmtree(cases)
    generated(tmp_path, SPEC, "--no-bounds")
    ran = run(cases, "--impl", f"python:{tmp_path / 'half.py'}:pool")
    assert beyond(ran) == {"plain": True, "allowed": False, "varied_bfloat16": False, "varied_double": True}


def test_a_right_kernel_in_float_is_within_the_bound_of_half(cases: Path, run: Any) -> None:
    found = beyond(run(cases, "--impl", "tiled"))
    assert (found["plain"], found["allowed"], found["varied_bfloat16"]) == (False, False, False)


@pytest.mark.parametrize(("key", "message"), [
    ("      accumulate: flot", "spec.yaml:10:19: suites.general[1].accumulate: unknown accumulation dtype 'flot': "
     "did you mean 'float'?"),
    ("      accumulate: [half]", "spec.yaml:10:19: suites.general[1].accumulate: "),
    ("      matrix: {accumulate: [half, int32]}",
     "spec.yaml:10:35: suites.general[1].matrix.accumulate[1]: unknown accumulation dtype 'int32'"),
])  # fmt: skip
def test_a_wrong_value_is_told_where_it_stands(
    tmp_path: Path, key: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "spec.yaml").write_text(SPEC.replace("      accumulate: half", key))
    with pytest.raises(SystemExit) as stop:
        main(["gen", "--spec", str(tmp_path / "spec.yaml"), "--out", str(tmp_path / "none")])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_a_file_with_a_wrong_value_is_wrong(tmp_path: Path, cases: Path, run: Any) -> None:
    path = cases / "voxel_pooling_forward" / "general" / "plain.pb"
    with read_case(path) as file:
        meta = proto.get_meta(file.node)
        assert meta is not None
        meta.accumulate = "int32"
        proto.set_meta(file.node, meta)
        arrays = [record.array().copy() for record in (*file.inputs, *file.outputs)]
        write_case(tmp_path / "wrong.pb", file.node, arrays[:2], arrays[2:])
    ran = run(tmp_path / "wrong.pb")
    (record,) = ran.records.values()
    assert (ran.code, record["status"], record["blame"]) == (2, "error", "case")
    assert "accumulate is 'int32', expected one of half, bfloat16, float, double" in record["reason"]
