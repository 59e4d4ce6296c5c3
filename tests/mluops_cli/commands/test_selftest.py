"""`mluops selftest`: every must-see fault of the small suites is caught, and a judge that overlooks one is reported."""

from __future__ import annotations

import re
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mluops_cli.execution.case.fault_trials import selftest_case
from mluops_cli.judging import verdict
from mluops_cli.judging.explanations import explain
from mluops_cli.judging.metrics import compare
from mluops_cli.judging.patterns import Pattern
from schemas.casefiles.reading import read_case, write_case
from tests.mluops_cli.conftest import Cli
from tests.mluops_cli.execution.conftest import add_tensor, case_node, write_psamask

FAULTS = (
    "first element", "middle element", "last element", "last tile zeroed", "stale sentinel", "two rows swapped",
    "shifted by one", "scaled by 1 %", "transposed", "one ULP", "NaN for a number", "a number for NaN",
    "index off by one",
)  # fmt: skip
NAMED = (
    "factor", "swapped coordinates", "other corners", "inputs in half", "inputs in tf32", "inputs in bfloat16",
    "sums in half", "missing term", "doubled term", "mixed batch",
)  # fmt: skip


def table(out: str) -> dict[str, list[int]]:
    """The row of each fault: planted, caught, missed, can't be seen, has no place."""
    rows = re.findall(r"^(\S.*?)  +(\d+)  +(\d+)  +(\d+)  +(\d+)  +(\d+)$", out, re.MULTILINE)
    return {name: [int(number) for number in numbers] for name, *numbers in rows}


def write_alien(path: Path, outputs: np.ndarray[Any, Any], criterion: str = "DIFF3", threshold: float = 0.0) -> Path:
    """A case of an operator without contract, with its baseline."""
    node = case_node("alien_op", suite="")
    dtype = {"f": "FLOAT", "i": "INT32"}[outputs.dtype.kind]
    add_tensor(node.input, "in", (1,), layout="ARRAY")
    add_tensor(node.output, "out", outputs.shape, dtype, layout="ARRAY")
    number = node.DESCRIPTOR.fields_by_name["evaluation_criterion"].enum_type.values_by_name[criterion].number
    node.evaluation_criterion.append(number)
    node.evaluation_threshold.append(threshold)
    write_case(path, node, [np.ones(1, np.float32)], [outputs])
    return path


@pytest.mark.slow
@pytest.mark.long
def test_the_small_suites_of_every_operator(cli: Cli) -> None:
    ran = cli("selftest")
    assert ran.code == 0, ran.out[-3000:]
    rows = table(ran.out)
    assert rows["all"][2] == 0
    assert rows["all"][0] > 5000
    assert all(rows[fault][1] > 30 for fault in FAULTS), rows
    assert all(rows[f"named: {fault}"][1] > 30 for fault in NAMED), rows
    cases = re.findall(r"^\S+: \d+ of (\d+) caught", ran.out, re.MULTILINE)
    # Nothing is planted where no design demands a status: every answer passes.
    assert rows["wrong status"][:2] == [len(cases) - cases.count("0")] * 2
    assert "MISSED" not in ran.out
    assert "FALSE ALARM" not in ran.out


def test_one_file_caught_and_planted_per_case_and_fault(tmp_path: Path, cli: Cli) -> None:
    ran = cli("selftest", write_psamask(tmp_path, "case"))
    assert ran.code == 0
    assert ran.out.splitlines()[0] == "psamask_forward/general/case: 12 of 12 caught"
    rows = table(ran.out)
    assert {fault for fault in FAULTS if rows[fault][0]} == set(FAULTS) - {"a number for NaN", "index off by one"}
    # The output is too small for a kernel's fault to be named by its numbers.
    assert [rows[name] for name in rows if name.startswith("named: ")] == [[0, 0, 0, 0, 1]] * 4
    assert rows["all"] == [12, 12, 0, 0, 6]


def test_a_diagnosis_without_a_word(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """The words for wrong kernels are verified as the verdicts are."""
    assert cli("gen", "roi_crop_backward", "--suite", "boundary", "--out", tmp_path, "-j", "1").code == 0
    ran = cli("selftest", tmp_path, "-k", "around")
    assert ran.code == 0
    rows = table(ran.out)
    assert {name: rows[f"named: {name}"] for name in NAMED} == {name: [1, 1, 0, 0, 0] for name in NAMED}
    monkeypatch.setattr(explain, "constant_factor", lambda difference: [])
    monkeypatch.setattr(explain, "wrong_terms", lambda difference, terms: [Pattern("missing term", "x[0] missing")])
    ran = cli("selftest", tmp_path, "-k", "around")
    assert ran.code == 1
    assert "  MISSED: named: factor in grad_input (" in ran.out
    assert "  MISSED: named: doubled term in grad_input (x[0] missing)" in ran.out
    assert table(ran.out)["named: factor"] == [1, 0, 1, 0, 0]


PSAMASK = "sizes: {N: 1, H: 5, W: 7}, params: {psa_type: collect, h_mask: 3, w_mask: 4}, inputs: {x: {dist: DIST}}"
POOLING = (
    "params: {batch_size: 2, num_points: 100, num_channels: 40, num_voxel_x: 3, num_voxel_y: 2, num_voxel_z: 2}, "
    "inputs: {input_features: {dist: DIST}}"
)


def self_tested(cli: Cli, folder: Path, op: str, entry: str, dist: str) -> Any:
    """The self-test of one case whose input has these values."""
    spec = folder / "spec.yaml"
    spec.write_text(f"op: {op}\nsuites: {{general: [{{name: case, {entry.replace('DIST', dist)}}}]}}\n")
    assert cli("gen", "--spec", spec, "--out", folder / "cases", "-j", "1").code == 0
    return cli("selftest", folder / "cases")


@pytest.mark.parametrize("dist", ["{constant: 0.3}", "{choice: [0, 0.3]}"])
def test_a_factor_of_one_value_is_not_applicable(dist: str, tmp_path: Path, cli: Cli) -> None:
    """An offset changes it likewise; zeros have any factor."""
    ran = self_tested(cli, tmp_path, "psamask_forward", PSAMASK, dist)
    assert ran.code == 0, ran.out
    assert table(ran.out)["named: factor"] == [0, 0, 0, 0, 1]


def test_a_factor_of_two_values_is_demanded(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = self_tested(cli, tmp_path, "psamask_forward", PSAMASK, "{choice: [0.3, 0.7]}")
    assert ran.code == 0, ran.out
    assert table(ran.out)["named: factor"] == [1, 1, 0, 0, 0]
    monkeypatch.setattr(explain, "constant_factor", lambda difference: [])
    ran = cli("selftest", tmp_path / "cases")
    assert ran.code == 1
    assert "  MISSED: named: factor in y (" in ran.out


def test_a_term_among_equal_ones_is_not_applicable(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = self_tested(cli, tmp_path, "voxel_pooling_forward", POOLING, "{constant: 0.3}")
    assert ran.code == 0, ran.out
    assert [table(ran.out)[f"named: {name} term"] for name in ("missing", "doubled")] == [[0, 0, 0, 0, 1]] * 2
    ran = self_tested(cli, tmp_path, "voxel_pooling_forward", POOLING, "{choice: [0.3, 0.7]}")
    assert ran.code == 0, ran.out
    assert [table(ran.out)[f"named: {name} term"] for name in ("missing", "doubled")] == [[1, 1, 0, 0, 0]] * 2
    monkeypatch.setattr(explain, "wrong_terms", lambda difference, terms: [])
    assert "  MISSED: named: missing term in output_features (" in cli("selftest", tmp_path / "cases").out


def test_what_the_threshold_can_not_see_is_named(tmp_path: Path, cli: Cli) -> None:
    values = np.random.default_rng(0).uniform(1, 2, (40, 50)).astype(np.float32)
    ran = cli("selftest", write_alien(tmp_path / "case.pb", values, "DIFF1", 0.02))
    assert ran.code == 0
    rows = table(ran.out)
    assert rows["scaled by 1 %"] == [1, 0, 0, 1, 0]
    assert rows["shifted by one"] == [1, 1, 0, 0, 0]
    assert re.search(r"alien_op out, scaled by 1 %: 1 case\(s\), such as external/case: diff1 = 0.01 <= 0.02", ran.out)
    assert "alien_op/external/case: " in ran.out
    assert "below the thresholds" in ran.out


@pytest.mark.parametrize("spot", ["last", "nan", "tolerant"])
def test_a_judge_with_a_blind_spot(spot: str, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    right = compare

    def blind(baseline: Any, output: Any, criteria: Any, *rest: Any, **options: Any) -> Any:
        if spot == "last":
            baseline, output = baseline.reshape(-1)[:-1], output.reshape(-1)[:-1]
        if spot == "nan":
            output = np.where(np.isnan(output), baseline, output)
        if spot == "tolerant":
            output = np.where(np.isclose(output, baseline, rtol=1e-5, atol=0), baseline, output)
        return right(baseline, output, criteria, *rest, **options)

    monkeypatch.setattr(verdict, "compare", blind)
    ran = cli("selftest", write_psamask(tmp_path, "case"))
    assert ran.code == 1
    fault = {"last": "last element", "nan": "NaN for a number", "tolerant": "one ULP"}[spot]
    assert f"  MISSED: {fault} in y (" in ran.out
    assert table(ran.out)[fault] == [1, 0, 1, 0, 0]


def test_a_judge_that_cries_wolf(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    right = compare
    monkeypatch.setattr(verdict, "compare", lambda b, m, *rest, **options: right(b, m + 1, *rest, **options))
    ran = cli("selftest", write_psamask(tmp_path, "case"))
    assert ran.code == 1
    assert "FALSE ALARM: the judge fails right outputs: y: diff3" in ran.out


def test_a_rulebook_counts_where_it_is_defined(tmp_path: Path, cli: Cli) -> None:
    assert cli("gen", "get_indice_pairs", "--suite", "demo", "--out", tmp_path / "cases", "-j", "1").code == 0
    ran = cli("selftest", tmp_path / "cases", "-k", "demo")
    assert ran.code == 0
    rows = table(ran.out)
    assert rows["first element"][0] == rows["last element"][0] == rows["middle element"][0] >= 9
    assert rows["index off by one"][1] == rows["index off by one"][0] == rows["first element"][0]
    assert rows["wrong count"][1] >= 3


def test_what_can_not_be_tested(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "bad.pb").write_bytes(b"\xff\xff\xff")
    assert cli("selftest", tmp_path / "bad.pb").code == 2
    write_psamask(tmp_path, "good")
    ran = cli("selftest", tmp_path)
    assert ran.code == 2
    assert "psamask_forward/general/good: 12 of 12 caught" in ran.out
    assert "bad" in ran.err
    assert cli("selftest", tmp_path, "-k", "nowhere").code == 5
    assert cli("selftest", tmp_path / "nowhere").code == 2


def test_memory_of_a_large_case(tmp_path: Path) -> None:
    """One copy of the output and what judging takes, however many faults are planted."""
    values = np.random.default_rng(0).uniform(1, 2, (256, 64, 256)).astype(np.float32)
    path = write_alien(tmp_path / "case.pb", values, "DIFF1", 3e-3)
    with read_case(path) as file:
        tracemalloc.start()
        tested = selftest_case(file)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert sum(trial.caught for trial in tested.trials) >= 6
    assert peak < values.nbytes + (64 << 20)
    assert peak < 1.5 * values.nbytes
