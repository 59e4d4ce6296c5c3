"""FOUND D22: gen refuses cases in which correct kernels disagree about NaN; run counts such elements, check tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from schemas.casefiles.reading import write_case
from tests.mluops_cli.conftest import Cli
from tests.mluops_cli.execution.conftest import add_tensor, case_node

SPEC = """op: roi_crop_forward
suites:
  odd:
    - name: nan
      sizes: {B: 2, H: 50, W: 42, C: 3, N: 4, OH: 5, OW: 5}
      inputs: {input: {dist: {uniform: [-1, 1], nan: 0.3}}%s}
"""
KERNELS = """
import numpy as np
from tests.generators.error_bounds.test_undecided import kernel

def right(op, inputs, outputs, params):
    image = inputs["input"].shape
    output = outputs["output"]
    output[...] = kernel(op, inputs["input"], inputs["grid"], image, 1).reshape(output.shape)

def without_nan(op, inputs, outputs, params):
    right(op, inputs, outputs, params)
    outputs["output"][...] = np.nan_to_num(outputs["output"])
"""


def test_d22_gen_refuses_what_correct_kernels_disagree_about(tmp_path: Path, cli: Cli) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC % "")
    made = cli("gen", "--spec", spec, "--out", tmp_path / "cases", "-j", 1)
    assert made.code == 2
    assert "may or may not be NaN or Inf in a correct kernel" in made.err
    assert "spec.yaml:4" in made.err
    spec.write_text(SPEC % ", grid: {dist: {choice: [-1, -0.5, 0.25, 1]}}")
    assert cli("gen", "--spec", spec, "--out", tmp_path / "cases", "-j", 1).code == 0


def write_theirs(path: Path) -> None:
    """A case by others without a baseline: on pixel centres of odd sizes, and beside them; some pixels are NaN."""
    rng = np.random.default_rng(0)
    image = rng.uniform(-1, 1, (1, 50, 42, 2)).astype(np.float32)
    image[rng.random(image.shape) < 0.03] = np.nan
    rows, columns = rng.integers(0, 50, (4, 8, 8)), rng.integers(0, 42, (4, 8, 8))
    grid = np.stack([2 * rows / 49 - 1, 2 * columns / 41 - 1], axis=-1).astype(np.float32)
    grid[2:] = rng.uniform(-1, 1, grid[2:].shape)
    node = case_node("roi_crop_forward", suite="")
    add_tensor(node.input, "input", image.shape)
    add_tensor(node.input, "grid", grid.shape, layout="ARRAY")
    add_tensor(node.output, "output", (4, 8, 8, 2))
    write_case(path, node, [image, grid], [None])


def test_d22_undecided_elements_are_counted_and_not_judged(tmp_path: Path, run: Any) -> None:
    write_theirs(tmp_path / "theirs.pb")
    (tmp_path / "mine.py").write_text(KERNELS)
    ran = run(tmp_path / "theirs.pb", "--impl", f"python:{tmp_path / 'mine.py'}:right")
    (record,) = ran.records.values()
    assert (ran.code, record["status"]) == (0, "pass"), record["reason"]
    assert 0 < record["outputs"]["output"]["undecided"] < 256
    ran = run(tmp_path / "theirs.pb", "--impl", f"python:{tmp_path / 'mine.py'}:without_nan")
    (record,) = ran.records.values()
    assert (ran.code, record["status"]) == (1, "fail")


def test_d22_check_tells(tmp_path: Path, cli: Cli) -> None:
    write_theirs(tmp_path / "theirs.pb")
    checked = cli("check", tmp_path / "theirs.pb")
    assert "NaN or Inf lies where a coordinate rounds to either side of a pixel" in checked.out + checked.err
