"""`mluops import`: configs and dumps into specs that load, expand, and make the same cases."""

from __future__ import annotations

import copy
import json
import math
import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from generators.contracts.case import Case
from generators.importing.config_models import CaseConfig, TensorConfig
from generators.operator_registry import operators
from generators.specs.expansion import expand
from generators.specs.loader import load_spec
from schemas.casefiles.reading import read_case, write_case
from schemas.protos import messages as proto
from tests.mluops_cli.commands.test_check import PSAMASK
from tests.mluops_cli.conftest import Cli

GRID = {"shape": [4, 3, 1, 2], "random_distribution": {"uniform": [-1, 1]}, "layout": "ARRAY"}
CONFIG: dict[str, Any] = {
    "op_name": "roi_crop_forward",
    "data_type": {"input_dtype": ["float32", "float32"], "output_dtype": ["float32"]},
    "evaluation_criterion": ["diff1", "diff2"],
    "evaluation_threshold": [0.003, 0.003],
    "manual_data": [
        {
            "inputs": [{"shape": [2, 5, 5, 1], "random_distribution": {"uniform": [0, 0]}, "layout": "NHWC"}, GRID],
            "outputs": [{"shape": [4, 3, 1, 1], "layout": "NHWC"}],
        }
    ],
}


def write_config(folder: Path, name: str = "config.json", **keys: Any) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(CONFIG | keys))
    return folder / name


def cases(path: Path) -> list[Case]:
    return list(expand(load_spec(path)))


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


def test_dumps_become_one_case_per_shape(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "in" / "net").mkdir(parents=True)
    for number in range(5):
        (tmp_path / "in" / "net" / f"layer {number}.prototxt").write_text(PSAMASK.replace("seed: 3", f"seed: {number}"))
    other = PSAMASK.replace("[1, 2, 2, 9]", "[2, 2, 2, 9]").replace("[1, 2, 2, 4]", "[2, 2, 2, 4]")
    (tmp_path / "in" / "other.prototxt").write_text(other.replace("psa_type: 0", "psa_type: 1"))
    ran = cli("import", tmp_path / "in", "--out", tmp_path / "specs")
    assert (ran.code, ran.err) == (0, "")
    path = tmp_path / "specs" / "psamask_forward.yaml"
    assert (
        "# used 5 times: net/layer 0.prototxt, net/layer 1.prototxt, net/layer 2.prototxt and 2 more"
        in path.read_text()
    )
    one, two = cases(path)
    assert (one.inputs[0].dims, one.outputs[0].dims, one.params["psa_type"]) == ((1, 2, 2, 9), (1, 2, 2, 4), 0)
    assert (two.inputs[0].dims, two.params["psa_type"]) == ((2, 2, 2, 9), 1)


def test_stored_values_of_a_dump_come_along(cli: Cli, tmp_path: Path) -> None:
    assert cli("gen", "get_indice_pairs", "--suite", "demo", "--out", tmp_path / "gen", "-j", "1").code == 0
    source = next(path for path in sorted((tmp_path / "gen").rglob("*.pb")) if read_case(path).inputs[0].elements)
    with read_case(source) as case:
        node, indices = case.node, case.inputs[0].array().copy()
        outputs = [record.array().copy() for record in case.outputs]
    proto.set_meta(node, None)
    write_case(tmp_path / "dump.pb", node, [indices], outputs)
    assert cli("import", tmp_path / "dump.pb", "--out", tmp_path / "specs").code == 0
    assert cli("gen", "--spec", tmp_path / "specs", "--out", tmp_path / "again", "-j", "1").code == 0
    (made,) = (tmp_path / "again").rglob("*.pb")
    with read_case(made) as case:
        assert np.array_equal(case.inputs[0].array(), indices)
        for record, expected in zip(case.outputs, outputs, strict=True):
            assert np.array_equal(record.array(), expected)


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


def test_e8_files_of_one_shape_and_other_values_are_other_entries(cli: Cli, tmp_path: Path) -> None:
    assert cli("gen", "get_indice_pairs", "--suite", "demo", "--out", tmp_path / "gen", "-j", "1").code == 0
    source = next(path for path in sorted((tmp_path / "gen").rglob("*.pb")) if read_case(path).inputs[0].elements)
    with read_case(source) as case:
        node, indices = case.node, case.inputs[0].array().copy()
        outputs = [record.array().copy() for record in case.outputs]
    proto.set_meta(node, None)
    (tmp_path / "dumps").mkdir()
    values = [indices, np.ascontiguousarray(indices[::-1]), indices]
    for number, each in enumerate(values):
        write_case(tmp_path / "dumps" / f"{number}.pb", node, [each], outputs)
    assert cli("import", tmp_path / "dumps", "--out", tmp_path / "specs").code == 0
    assert "# used 2 times: 0.pb, 2.pb\n" in (tmp_path / "specs" / "get_indice_pairs.yaml").read_text()
    found = [np.load(path) for path in sorted((tmp_path / "specs" / "data").glob("*.npy"))]
    assert sorted(each.tobytes() for each in found) == sorted(each.tobytes() for each in values[:2])


def test_f14_the_other_json_files_of_a_folder_are_skipped(cli: Cli, tmp_path: Path) -> None:
    assert cli("gen", "psamask_forward", "--suite", "demo", "--out", tmp_path / "gen", "-j", "1").code == 0
    ran = cli("import", tmp_path / "gen", "--out", tmp_path / "specs")
    assert ran.code == 0
    assert ran.err == "warning: manifest.json: no config, skipped\n"
    ran = cli("import", tmp_path / "gen" / "manifest.json", "--out", tmp_path / "specs")
    assert ran.code == 2
    assert "no op_name: this is no config of the generator" in ran.err


def test_e10_a_case_in_both_forms_counts_once(cli: Cli, tmp_path: Path) -> None:
    gen = ("gen", "psamask_forward", "--suite", "demo", "-k", "even_mask", "--format", "both")
    assert cli(*gen, "--out", tmp_path / "gen", "-j", "1").code == 0
    assert len(list((tmp_path / "gen").rglob("*even_mask.*"))) == 2
    ran = cli("import", tmp_path / "gen", "--out", tmp_path / "specs")
    assert ran.out.splitlines()[1].split()[:3] == ["psamask_forward", "1", "1"]


def test_c3_what_only_our_contract_demands_is_expected_beyond_the_design(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.prototxt").write_text(PSAMASK.replace("psa_type: 0", "psa_type: 2"))
    assert cli("import", tmp_path / "a.prototxt", "--out", tmp_path / "specs").code == 0
    (case,) = cases(tmp_path / "specs" / "psamask_forward.yaml")
    assert (case.expect, case.beyond_design) == (("BAD_PARAM",), True)


def test_names_of_files_do_not_break_the_comments(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a\nb", "a\u2028op: x", "a\x85op: x"):
        (tmp_path / "in" / f"{name}.prototxt").write_text(PSAMASK)
    assert cli("import", tmp_path / "in", "--out", tmp_path / "specs").code == 0
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


def test_public_files_become_specs_that_load(cli: Cli, shared: Path, tmp_path: Path) -> None:
    ran = cli("import", shared / "public_cases" / "prototxt", "--out", tmp_path / "specs")
    assert ran.code == 0
    files = sorted((tmp_path / "specs").glob("*.yaml"))
    assert len(files) > 50
    for path in files:
        load_spec(path)
    for op in ("psamask_forward", "roi_crop_forward", "masked_im2col_forward"):
        assert cases(tmp_path / "specs" / f"{op}.yaml")


# ---- differential: whatever a config holds, import and gen agree on it --------------------------------------------

_CASE_KEYS = sorted(CaseConfig.model_fields | TensorConfig.model_fields)
_VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 3, 0.5, -0.0, 1e300, 2**63, 10**30, math.nan, math.inf, "", "x", "False", "0,003",
    "fp16", "uint8",
    "float32", "NHWC", "diff1", "../../x", [], [0], [1, 2], [[1, 2]], {}, {"uniform": [0, 1]}, {"x": 1}, "\u2028",
]  # fmt: skip


def _mutated(config: Any, rng: random.Random) -> Any:
    """The config with one to three values replaced, removed, doubled or renamed."""
    config = copy.deepcopy(config)
    for _ in range(rng.randint(1, 3)):
        owners = [owner for owner in _owners(config) if owner]
        if not owners:
            break
        owner = rng.choice(owners)
        key = rng.choice(list(owner) if isinstance(owner, dict) else range(len(owner)))
        what = rng.randrange(4)
        if what == 0:
            del owner[key]
        elif what == 1 and isinstance(owner, list):
            owner.append(copy.deepcopy(owner[key]))
        elif what == 1:
            owner[rng.choice([*_CASE_KEYS, "x"])] = copy.deepcopy(owner[key])
        else:
            owner[key] = copy.deepcopy(rng.choice(_VALUES))
    return config


def _owners(value: Any) -> Iterator[Any]:
    if isinstance(value, (dict, list)):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _owners(inner)


def test_d25_mutated_configs_never_end_in_our_failure(cli: Cli, shared: Path, tmp_path: Path) -> None:
    """300 mutants of the public configs: exit 0, 2 or 5, and what is imported of a known operator is taken by gen."""
    configs = [json.loads(path.read_text()) for path in sorted((shared / "public_cases" / "json").glob("*.json"))]
    for config in configs:
        config["manual_data"] = config["manual_data"][:3]
    rng = random.Random(12)
    codes: Counter[int] = Counter()
    for number in range(300):
        out = tmp_path / str(number)
        path = tmp_path / "config.json"
        path.write_text(json.dumps(_mutated(configs[number % len(configs)], rng)), encoding="utf-8")
        ran = cli("import", path, "--out", out)
        codes[ran.code] += 1
        assert ran.code in (0, 2, 5), (path.read_text(), ran.err)
        assert ran.code != 2 or str(path) in ran.err or "left out" in ran.err, ran.err
        assert not list(tmp_path.parent.glob("*.yaml"))
        for spec in out.glob("*.yaml"):
            load_spec(spec)
            if spec.stem in operators():
                cases(spec)
    assert codes[0] > 50
    assert codes[2] > 50


def test_e_what_is_wrong_with_a_case_file_is_reported_as_gen_does(cli: Cli, tmp_path: Path) -> None:
    """It silently became a case that has to be refused, or got other data."""
    file, reason = (
        tmp_path / "a.prototxt",
        "no legal case of psamask_forward: x dim 3 is 9, expected h_mask*w_mask = 12",
    )
    file.write_text(PSAMASK.replace("h_mask: 3", "h_mask: 4"))
    refused = cli("gen", "--from", file, "--out", tmp_path / "out")
    assert (refused.code, refused.err.splitlines()[0]) == (2, f"{file}: {reason}")
    ran = cli("import", file, "--out", tmp_path / "specs")
    assert (ran.code, ran.err) == (0, f"warning: a.prototxt: {reason}: it is to answer BAD_PARAM\n")
