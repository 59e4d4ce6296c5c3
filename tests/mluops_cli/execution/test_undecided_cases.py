"""FOUND D22: gen refuses cases in which correct kernels disagree about NaN; run counts such elements, check tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mluops_cli.execution.case.case_run import prepare
from mluops_cli.execution.case.fault_trials import selftest_case
from schemas.casefiles.reading import read_case, write_case
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

def undecided(op, inputs):
    from generators.operator_registry import operators
    operator = operators()[op]
    env = operator.contract.bind({name: array.shape for name, array in inputs.items()}, {})
    return operator.undecided(inputs, env).get("output", False)

def varying(op, inputs, outputs, params, wrong=0):
    # Right: each undecided element is NaN or any number, another one in each call.
    global calls
    calls += 1
    right(op, inputs, outputs, params)
    output, mask = outputs["output"], undecided(op, inputs)
    output[...] = np.where(mask & (np.arange(output.size).reshape(output.shape) % 3 == calls % 3), calls, output)
    output[...] += np.where(mask | np.isnan(output), 0, np.float32(wrong * calls))

def drifting(op, inputs, outputs, params):
    # As varying, but wrong elsewhere by what the thresholds allow, more with each call.
    varying(op, inputs, outputs, params, 1e-4)

calls = 0

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


def write_theirs(path: Path, *, seed: int = 0, share: float = 0.03, beside: int = 2) -> None:
    """A case by others without a baseline: rois on pixel centres of odd sizes, the last ones beside them.

    A share of the pixels is NaN.
    """
    rng = np.random.default_rng(seed)
    image = rng.uniform(-1, 1, (1, 50, 42, 2)).astype(np.float32)
    image[rng.random(image.shape) < share] = np.nan
    rows, columns = rng.integers(0, 50, (4, 8, 8)), rng.integers(0, 42, (4, 8, 8))
    grid = np.stack([2 * rows / 49 - 1, 2 * columns / 41 - 1], axis=-1).astype(np.float32)
    grid[4 - beside :] = rng.uniform(-1, 1, grid[4 - beside :].shape)
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


@pytest.mark.slow
def test_undecided_elements_that_vary_are_no_fault(tmp_path: Path, run: Any) -> None:
    """Neither a race nor a broken relation; wrong elements elsewhere are both."""
    write_theirs(tmp_path / "theirs.pb")
    (tmp_path / "mine.py").write_text(KERNELS)
    options = ("--relations", "--repeat", "3")
    for more in ((), ("--bound", "off")):
        ran = run(tmp_path / "theirs.pb", "--impl", f"python:{tmp_path / 'mine.py'}:varying", *options, *more)
        (record,) = ran.records.values()
        assert (ran.code, record["status"]) == (0, "pass"), record["reason"]
        assert record["outputs"]["output"]["repeat"] == "identical"
        assert record["outputs"]["output"]["undecided"] > 0
        assert {*record["relations"].values()} == {"holds"}
        assert len(record["relations"]) > 5
    ran = run(tmp_path / "theirs.pb", "--impl", f"python:{tmp_path / 'mine.py'}:drifting", *options)
    (record,) = ran.records.values()
    assert (ran.code, record["status"]) == (1, "fail")
    assert record["outputs"]["output"]["repeat"] == "varies_beyond_bound"
    assert record["relations"]["scaling"].startswith("broken: ")


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_faults_are_injected_into_decided_elements(tmp_path: Path, cli: Cli, seed: int) -> None:
    """No false alarm, nothing missed, though the first or the last element may have any value."""
    write_theirs(tmp_path / "theirs.pb", seed=seed, share=0.3, beside=0)
    with read_case(tmp_path / "theirs.pb") as file:
        mask = prepare(file).undecided["output"].reshape(-1)
        tested = selftest_case(file)
    assert mask[0] or mask[-1]
    assert not tested.alarm
    trials = {each.fault: each for each in tested.trials if each.output == "output"}
    for place in ("first element", "middle element", "last element"):
        assert (trials[place].injected, trials[place].caught) == (True, True), trials[place]
    shown = cli("selftest", tmp_path / "theirs.pb")
    assert shown.code == 0, shown.out + shown.err
