"""`mluops import` of case files: into specs that load, expand, and make the same cases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from generators.contracts.operator import Array
from generators.specs.loader import load_spec
from schemas.casefiles.reading import read_case, write_case
from schemas.protos import messages as proto
from tests.mluops_cli.commands.configs import cases
from tests.mluops_cli.commands.test_check import PSAMASK
from tests.mluops_cli.conftest import Cli


def rulebook_dump(cli: Cli, folder: Path) -> tuple[Any, Array, list[Array]]:
    """Node, input and outputs of a case of get_indice_pairs without metadata of ours."""
    assert cli("gen", "get_indice_pairs", "--suite", "demo", "--out", folder, "-j", "1").code == 0
    source = next(path for path in sorted(folder.rglob("*.pb")) if read_case(path).inputs[0].elements)
    with read_case(source) as case:
        node, indices = case.node, case.inputs[0].array().copy()
        outputs = [record.array().copy() for record in case.outputs]
    proto.set_meta(node, None)
    return node, indices, outputs


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
    node, indices, outputs = rulebook_dump(cli, tmp_path / "gen")
    write_case(tmp_path / "dump.pb", node, [indices], outputs)
    assert cli("import", tmp_path / "dump.pb", "--out", tmp_path / "specs").code == 0
    assert cli("gen", "--spec", tmp_path / "specs", "--out", tmp_path / "again", "-j", "1").code == 0
    (made,) = (tmp_path / "again").rglob("*.pb")
    with read_case(made) as case:
        assert np.array_equal(case.inputs[0].array(), indices)
        for record, expected in zip(case.outputs, outputs, strict=True):
            assert np.array_equal(record.array(), expected)


def test_e8_files_of_one_shape_and_other_values_are_other_entries(cli: Cli, tmp_path: Path) -> None:
    node, indices, outputs = rulebook_dump(cli, tmp_path / "gen")
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


def test_public_files_become_specs_that_load(cli: Cli, shared: Path, tmp_path: Path) -> None:
    ran = cli("import", shared / "public_cases" / "prototxt", "--out", tmp_path / "specs")
    assert ran.code == 0
    files = sorted((tmp_path / "specs").glob("*.yaml"))
    assert len(files) > 50
    for path in files:
        load_spec(path)
    for op in ("psamask_forward", "roi_crop_forward", "masked_im2col_forward"):
        assert cases(tmp_path / "specs" / f"{op}.yaml")


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
