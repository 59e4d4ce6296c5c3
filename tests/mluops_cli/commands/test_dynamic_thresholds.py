"""`gen --dynamic-thresholds`: stored with every output, with their source, and met by right kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schemas.casefiles.reading import read_case
from schemas.casefiles.requested_criteria import criteria_of
from tests.mluops_cli.conftest import Cli

SPEC = """\
op: voxel_pooling_forward
suites:
  general:
    - name: many_points
      params: {num_points: 20000, batch_size: 1, num_channels: 3, num_voxel_x: 2, num_voxel_y: 2, num_voxel_z: 2}
      inputs: {geom_xyz: {dist: {integers: [1, 1]}}}
    - name: wrong
      params: {num_points: 0, batch_size: 1, num_channels: 3, num_voxel_x: 2, num_voxel_y: 1, num_voxel_z: 1}
      expect: BAD_PARAM
"""


def sums(features: Any, dtype: Any) -> Any:
    """Channel sums in the order of the points, one addition at a time in that dtype."""
    total = np.zeros(3, dtype)
    for row in features.reshape(-1, 3).astype(dtype):
        total = total + row
    return total.astype(np.float32)


def test_gen_stores_them_with_every_output(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "spec.yaml").write_text(SPEC)
    ran = cli("gen", "--spec", tmp_path / "spec.yaml", "--dynamic-thresholds", "--out", tmp_path / "out", "-j", "1")
    assert ran.code == 0, ran.err
    folder = tmp_path / "out" / "voxel_pooling_forward" / "general"
    with read_case(folder / "many_points.pb") as file:
        features, memo = criteria_of(file)
        assert [(each.name, each.source) for each in features] == [("diff1", "dynamic"), ("diff2", "dynamic")]
        assert [(each.threshold, each.source) for each in memo] == [(0.0, "integer output")] * 2
        # Where other readers look: in each output's thresholds, and not in test_param, which would win.
        stored = [list(tensor.thresholds.evaluation_threshold) for tensor in file.node.output]
        assert stored[0] == pytest.approx([each.threshold for each in features])
        assert stored[1] == [0.0, 0.0]
        assert len(file.node.evaluation_criterion) == 2
        assert not file.node.test_param.error_func
        values = file.inputs[1].array()
        baseline = file.outputs[0].array()
        # Sequential float32 sums are the crudest of computations: the reference's adds in pairs, so is nearer.
        crude, right = sums(values, np.float32), sums(values, np.float64)
        assert np.array_equal(baseline[0, 1, 1], right)
        error = float(np.abs(crude.astype("f8") - right).sum() / np.abs(right.astype("f8")).sum())
        assert 1.2e-7 <= features[0].threshold <= 10 * error
    run = cli("run", tmp_path / "out", "--impl", "tiled", "--out", tmp_path / "results", "-j", "1")
    assert run.code == 0, run.out
    assert "2 pass" in run.out


def test_existing_files_get_them_too(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "spec.yaml").write_text(SPEC)
    cli("gen", "--spec", tmp_path / "spec.yaml", "--out", tmp_path / "fixed", "--format", "both", "-j", "1")
    arguments = ("--dynamic-thresholds", "-j", "1", "--out")
    assert cli("gen", "--spec", tmp_path / "spec.yaml", *arguments, tmp_path / "direct").code == 0
    name = Path("voxel_pooling_forward/general/many_points")
    for suffix in (".pb", ".prototxt"):
        source = (tmp_path / "fixed" / name).with_suffix(suffix)
        out = tmp_path / suffix.strip(".")
        assert cli("gen", "--from", source, *arguments, out).code == 0
        (made,) = out.rglob("many_points.pb")
        with read_case(made) as file, read_case((tmp_path / "direct" / name).with_suffix(".pb")) as direct:
            assert criteria_of(file)[0] == criteria_of(direct)[0]
            assert not file.node.test_param.error_func
            assert file.node.output[0].thresholds == direct.node.output[0].thresholds
