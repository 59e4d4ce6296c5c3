"""`mluops import` of configs: into specs that load, expand, and make the same cases."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from generators.specs.loader import load_spec
from tests.mluops_cli.commands.configs import CONFIG, GRID, cases, write_config
from tests.mluops_cli.commands.test_check import PSAMASK
from tests.mluops_cli.conftest import Cli


def test_a_config_becomes_a_spec_that_makes_its_cases(cli: Cli, tmp_path: Path) -> None:
    ran = cli("import", write_config(tmp_path), "--out", tmp_path / "specs")
    assert (ran.code, ran.err) == (0, "")
    text = (tmp_path / "specs" / "roi_crop_forward.yaml").read_text()
    assert "# config.json: manual_data[0]" in text
    assert "criteria" not in text  # those of the contract
    (case,) = cases(tmp_path / "specs" / "roi_crop_forward.yaml")
    assert case.suite == "imported"
    assert [(plan.name, plan.dims, plan.dtype, plan.layout) for plan in (*case.inputs, *case.outputs)] == [
        ("input", (2, 5, 5, 1), "float", "NHWC"), ("grid", (4, 3, 1, 2), "float", "ARRAY"),
        ("output", (4, 3, 1, 1), "float", "NHWC"),
    ]  # fmt: skip
    assert case.inputs[0].values is not None
    assert (case.inputs[0].values.kind, case.inputs[0].values.args) == ("constant", (0,))


def test_equal_cases_are_one_with_a_count(cli: Cli, tmp_path: Path) -> None:
    first = CONFIG["manual_data"][0]
    write_config(tmp_path / "in", "a.json", manual_data=[first, first])
    write_config(tmp_path / "in", "b.json", manual_data=[first], evaluation_threshold=[0.5, 0.5])
    assert cli("import", tmp_path / "in", "--out", tmp_path / "specs", "--suite", "network").code == 0
    path = tmp_path / "specs" / "roi_crop_forward.yaml"
    assert "# used 2 times: a.json: manual_data[0], a.json: manual_data[1]\n" in path.read_text()
    found = cases(path)
    assert len(found) == len({case.name for case in found}) == 2
    assert {case.suite for case in found} == {"network"}
    thresholds = [[(each.name, each.threshold) for each in case.criteria["output"]] for case in found]
    assert sorted(thresholds) == [[("diff1", 0.003), ("diff2", 0.003)], [("diff1", 0.5), ("diff2", 0.5)]]


def test_importing_twice_gives_the_same_bytes_in_any_order(cli: Cli, tmp_path: Path) -> None:
    entries = [{"inputs": [{"shape": [2, 5, 5, c]}, GRID], "outputs": [{"shape": [4, 3, 1, c]}]} for c in (7, 1, 3, 3)]
    texts = []
    for order in (entries, entries[::-1]):
        path = write_config(tmp_path, manual_data=order)
        assert cli("import", path, "--out", tmp_path / "specs").code == 0
        texts.append((tmp_path / "specs" / "roi_crop_forward.yaml").read_text())
    names = [[line for line in text.splitlines() if "name:" in line or "shape" in line] for text in texts]
    assert names[0] == names[1]
    assert names[0][0] == '    - name: "2x5x5x1_4x3x1x2"'  # sorted by size


def test_what_the_operator_refuses_is_expected_to_be_refused_or_left_out(cli: Cli, tmp_path: Path) -> None:
    def entry(shape: list[int], grid: list[int], out: list[int], **more: Any) -> dict[str, Any]:
        return {"inputs": [{"shape": shape, **more}, {"shape": grid}], "outputs": [{"shape": out}]}

    entries = [
        entry([2, 5, 5, 1], [5, 3, 1, 2], [5, 3, 1, 1]),  # 5 is no multiple of 2
        entry([2, 5, 5, 1], [4, 3, 1, 2], [4, 3, 1, 1], strides=[50, 10, 2, 2]),
        entry([0, 5, 5, 1], [4, 3, 1, 2], [4, 3, 1, 1]),
        entry([2, 5, 5, 1], [4, 3, 1, 3], [4, 3, 2, 2]),  # two things at once
        {"inputs": [{"shape": [1]}], "outputs": [{"shape": [1]}]},
    ]
    ran = cli("import", write_config(tmp_path, manual_data=entries), "--out", tmp_path / "specs")
    assert ran.code == 0
    assert ran.err.count("left out") == 2
    assert "roi_crop_forward has 1 inputs, expected 2: input, grid" in ran.err
    path = tmp_path / "specs" / "roi_crop_forward.yaml"
    assert path.read_text().count("# left out: ") == 2
    assert sorted(case.expect for case in cases(path)) == [("BAD_PARAM",), ("BAD_PARAM",), ("NOT_SUPPORTED",)]


def test_an_operator_that_we_lack_is_imported_with_a_note(cli: Cli, tmp_path: Path) -> None:
    params = {"num": 2, "scale": 0.5, "mode": "x", "aligned": True, "inner": {"a": 1}}
    path = write_config(tmp_path, op_name="div", op_params=params, extra=1)
    ran = cli("import", path, "--out", tmp_path / "specs")
    assert ran.code == 0
    assert "no operator div here" in ran.out
    assert "config.json: unknown key 'extra' of the config" in ran.err
    text = (tmp_path / "specs" / "div.yaml").read_text()
    assert "There is no operator div here yet" in text
    assert "further params, which specs have no place for yet: {inner: {a: 1}}" in text
    (entry,) = load_spec(tmp_path / "specs" / "div.yaml").suites["imported"]
    assert entry["params"] == {"num": 2, "scale": 0.5, "mode": "x", "aligned": True}
    assert entry["inputs"]["input1"]["shape"] == [4, 3, 1, 2]
    assert cli("gen", "--spec", tmp_path / "specs", "--dry-run").code == 2


def test_a_spec_of_ones_own_is_not_replaced(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "roi_crop_forward.yaml").write_text("op: roi_crop_forward\n")
    ran = cli("import", write_config(tmp_path), "--out", tmp_path / "specs")
    assert ran.code == 2
    assert "not replaced" in ran.err
    assert (tmp_path / "specs" / "roi_crop_forward.yaml").read_text() == "op: roi_crop_forward\n"


def test_a_bad_file_does_not_stop_the_others(cli: Cli, tmp_path: Path) -> None:
    write_config(tmp_path / "in")
    (tmp_path / "in" / "bad.json").write_text("{")
    ran = cli("import", tmp_path / "in", "--out", tmp_path / "specs")
    assert ran.code == 2
    assert "bad.json:1:2" in ran.err
    assert (tmp_path / "specs" / "roi_crop_forward.yaml").is_file()


@pytest.mark.parametrize(("source", "code"), [("none", 2), ("empty", 5), ("x.txt", 2)])
def test_nothing_to_import(cli: Cli, tmp_path: Path, source: str, code: int) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "x.txt").write_text("")
    assert cli("import", tmp_path / source, "--out", tmp_path / "specs").code == code


def test_a6_an_operator_s_name_never_leads_out_of_the_folder(cli: Cli, tmp_path: Path) -> None:
    write_config(tmp_path / "in", op_name="../../escaped")
    (tmp_path / "in" / "dump.prototxt").write_text(PSAMASK.replace('"psamask_forward"', '"../../escaped"'))
    write_config(tmp_path / "in", "good.json")
    ran = cli("import", tmp_path / "in", "--out", tmp_path / "out" / "specs")
    assert ran.code == 2
    assert "config.json: op_name: operator '../../escaped' can't be part of a path" in ran.err
    assert "dump.prototxt: op_name is '../../escaped', expected a word" in ran.err
    assert sorted(path.name for path in tmp_path.rglob("*.yaml")) == ["roi_crop_forward.yaml"]


def test_d25_wrong_entries_are_left_out_and_the_others_imported(cli: Cli, tmp_path: Path) -> None:
    good = CONFIG["manual_data"][0]
    huge = {**good, "inputs": [{**good["inputs"][0], "random_distribution": {"uniform": [0, 1e300]}}, GRID]}
    path = write_config(tmp_path, manual_data=[good, {**good, "evaluation_threshold": [-1, 0]}, huge])
    ran = cli("import", path, "--out", tmp_path / "specs")
    assert ran.code == 2
    lines = ran.err.replace(f"{path}: ", "").splitlines()
    assert lines == [
        "manual_data[1].evaluation_threshold[0]: found -1, expected a number of 0 or more",
        "config.json: manual_data[2]: left out: inputs.input.dist: uniform: 1e+300 is outside float's range "
        "[-3.4028234663852886e+38, 3.4028234663852886e+38]",
    ]
    assert len(cases(tmp_path / "specs" / "roi_crop_forward.yaml")) == 1
    assert cli("gen", "--spec", tmp_path / "specs", "--out", tmp_path / "cases", "-j", "1").code == 0


def test_d25_a_parameter_of_a_wrong_type_is_a_wrong_entry(cli: Cli, tmp_path: Path) -> None:
    """A case that the operator can't have is left out with a warning, exit 0; so was this."""
    entries = [
        {"inputs": [{"shape": [1, 2, 3, 9]}], "outputs": [{"shape": [1, 2, 3, 6]}],
         "op_params": {"psa_type": 0, "h_mask": h_mask, "w_mask": 3}}
        for h_mask in (3, "3", None, 3.5)
    ]  # fmt: skip
    path = write_config(tmp_path, op_name="psamask_forward", manual_data=entries)
    ran = cli("import", path, "--out", tmp_path / "specs")
    assert ran.code == 2
    assert sorted(ran.err.splitlines()) == [
        f"config.json: manual_data[{number}]: left out: {told}"
        for number, told in (
            (1, "parameter h_mask is '3', expected numbers, true, false or words"),
            (2, "parameter h_mask is None, expected numbers, true, false or words"),
            (3, "params.h_mask: h_mask is 3.5, expected an integer"),
        )
    ]
    assert len(cases(tmp_path / "specs" / "psamask_forward.yaml")) == 1


def test_f12_pipes_are_not_opened(cli: Cli, tmp_path: Path) -> None:
    write_config(tmp_path / "in")
    for name in ("a.json", "a.pb"):
        os.mkfifo(tmp_path / "in" / name)
    assert cli("import", tmp_path / "in", "--out", tmp_path / "specs").code == 0
    for name in ("a.json", "a.pb"):
        assert cli("import", tmp_path / "in" / name, "--out", tmp_path / "specs").code == 2


def test_public_configs_make_their_cases_and_a_small_one_passes(cli: Cli, shared: Path, tmp_path: Path) -> None:
    folder = shared / "public_cases" / "json"
    assert cli("import", folder, "--out", tmp_path / "specs").code == 0
    for op in ("roi_crop_forward", "roi_crop_backward"):
        wanted = [
            [tuple(each["shape"]) for each in (*entry["inputs"], *entry["outputs"])]
            for path in sorted(folder.glob(f"{op}*.json"))
            for entry in json.loads(path.read_text())["manual_data"]
        ]
        found = [
            [plan.dims for plan in (*case.inputs, *case.outputs)] for case in cases(tmp_path / "specs" / f"{op}.yaml")
        ]
        assert sorted(found) == sorted(wanted)
    assert len(load_spec(tmp_path / "specs" / "psroipool_forward.yaml").suites["imported"]) == 29
    assert len(load_spec(tmp_path / "specs" / "div.yaml").suites["imported"]) == 1
    small = write_config(tmp_path / "small", **json.loads((folder / "roi_crop_forward_special_0.json").read_text()))
    assert cli("import", small, "--out", tmp_path / "few").code == 0
    assert cli("gen", "--spec", tmp_path / "few", "--out", tmp_path / "cases", "-j", "1").code == 0
    ran = cli("run", tmp_path / "cases", "--out", tmp_path / "results", "-j", "1")
    assert ran.code == 0, ran.out
