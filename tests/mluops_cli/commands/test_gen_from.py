"""`mluops gen --from`: existing case files without our metadata and baselines get back the baselines that they had."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from generators.casegen.case_data import case_bytes
from generators.casegen.completion import complete
from generators.casegen.generate import generate
from generators.casegen.write_options import WriteOptions
from generators.operator_registry import operators
from generators.specs.expansion import expand_operator
from schemas.casefiles.reading import read_case
from schemas.protos import messages as proto
from tests.mluops_cli.conftest import Cli

SMALL = 1 << 15  # bytes of tensors


def strip(path: Path) -> Any:
    """The Node of a case file as others write it: ids of their own, no metadata, no baseline, nothing of the data."""
    node = proto.Node.FromString(path.read_bytes())
    proto.set_meta(node, None)
    node.ClearField("device")
    node.ClearField("test_param")
    for field in ("theory_io_size", "theory_compute_ops"):
        node.ClearField(field)
    for index, tensor in enumerate(node.output):
        tensor.id = f"output{index}"
        for name in ("value_f", "value_i", "value_l", "value_h", "value_ui", "value_ul", "path"):
            tensor.ClearField(name)
    if node.HasField("get_indice_pairs_param"):
        node.get_indice_pairs_param.ClearField("num_act_out")
    return node


def outputs_of(path: Path) -> list[np.ndarray[Any, Any]]:
    with read_case(path) as file:
        return [record.array().copy() for record in file.outputs]


def stripped_cases(op: str, folder: Path, step: int) -> list[tuple[Path, Path]]:
    """(generated file, stripped file in a folder of the same names) of every step-th small valid bundled case."""
    pairs = []
    small = [case for case in expand_operator(op) if case.valid and case_bytes(case) < SMALL]
    for case in small[::step]:
        (name,) = generate(case, WriteOptions(folder / "given"))["files"]
        target = folder / "stripped" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(proto.serialize(strip(folder / "given" / name)))
        pairs.append((folder / "given" / name, target))
    assert len(pairs) > 3
    return pairs


def assert_same_outputs(given: Path, again: Path) -> None:
    for expected, found in zip(outputs_of(given), outputs_of(again), strict=True):
        assert expected.dtype == found.dtype
        assert expected.shape == found.shape
        assert expected.tobytes() == found.tobytes()


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("op", sorted(operators()))
def test_a1_every_operators_baselines_come_back(op: str, step: int, tmp_path: Path) -> None:
    """FOUND A1: sizes that only the outputs' shapes tell (roi_crop_backward) were dropped."""
    for number, (given, stripped) in enumerate(stripped_cases(op, tmp_path, step)):
        sources = [("pb", stripped)]
        text = proto.print_text(proto.Node.FromString(stripped.read_bytes()))
        if "nan" not in text:  # protobuf's text form holds no payload of a NaN
            stripped.with_suffix(".prototxt").write_text(text)
            sources.append(("text", stripped.with_suffix(".prototxt")))
        for kind, source in sources:
            entry = complete(source, f"{kind}{number}", None, WriteOptions(tmp_path / kind))
            assert_same_outputs(given, tmp_path / kind / entry["files"][0])


@pytest.mark.parametrize("op", ["roi_crop_backward", "get_indice_pairs"])
def test_a1_through_the_command(op: str, tmp_path: Path, cli: Cli) -> None:
    pairs = stripped_cases(op, tmp_path, step=5)
    ran = cli("gen", "--from", tmp_path / "stripped", "--out", tmp_path / "folder", "-j", 1)
    assert (ran.code, ran.err) == (0, "")
    for given, stripped in pairs:
        below = stripped.relative_to(tmp_path / "stripped")
        assert_same_outputs(given, tmp_path / "folder" / op / "external" / below)
    given, stripped = pairs[0]
    ran = cli("gen", "--from", stripped, "--out", tmp_path / "single", "--dynamic-thresholds", "-j", 1)
    assert (ran.code, ran.err) == (0, "")
    assert_same_outputs(given, tmp_path / "single" / op / "external" / stripped.name)


@pytest.mark.parametrize(("rows", "code"), [(0, 2), (1, 2), (2, 0), (4, 0)])
def test_c2_e9_an_output_may_have_capacity_for_more_rows_than_are_made(
    tmp_path: Path, cli: Cli, rows: int, code: int
) -> None:
    """Two sites make two outputs; all commands agree on a file with capacity for more or fewer."""
    (tmp_path / "in").mkdir()
    text = PAIRS % ("0, 0, 0, 1", "", "", "")
    (tmp_path / "in" / "sites.prototxt").write_text(
        text.replace("dims: [2, 4]", f"dims: [{rows}, 4]").replace(f"dims: [{rows}, 4]", "dims: [2, 4]", 1)
    )
    gen = cli("gen", "--from", tmp_path / "in", "--out", tmp_path / "gen", "-j", 1)
    check = cli("check", tmp_path / "in")
    run = cli("run", tmp_path / "in", "--impl", "reference", "--out", tmp_path / "run", "-j", 1)
    assert (gen.code, check.code, run.code) == (code, code // 2, code), (gen, check, run)
    (record,) = map(json.loads, (tmp_path / "run" / "results.jsonl").read_text().splitlines())
    message = f"output out_indices has capacity for {rows} rows in dim 0, the baseline has 2"
    if code:
        assert record["status"] == "error"
        assert all(message in text for text in (gen.err, check.out, record["reason"]))
        return
    assert record["status"] == "pass"
    (made,) = (tmp_path / "gen").rglob("*.pb")
    node = proto.Node.FromString(made.read_bytes())
    assert node.get_indice_pairs_param.num_act_out == 2
    assert list(node.output[0].value_i) == [0, 0, 0, 0, 0, 0, 0, 1, *[-1] * 4 * (rows - 2)]
    again = cli("run", tmp_path / "gen", "--impl", "reference", "--out", tmp_path / "again", "-j", 1)
    assert again.code == 0, again


PAIRS = """op_name: "get_indice_pairs"
input { id: "i" shape { dims: [2, 4] } layout: LAYOUT_ARRAY dtype: DTYPE_INT32 value_i: [0, 0, 0, 0, %s] }
output { id: "o" shape { dims: [2, 4] } layout: LAYOUT_ARRAY dtype: DTYPE_INT32 %s }
output { id: "p" shape { dims: [1, 2, 2] } layout: LAYOUT_ARRAY dtype: DTYPE_INT32 %s }
output { id: "n" shape { dims: [1] } layout: LAYOUT_ARRAY dtype: DTYPE_INT32 %s }
get_indice_pairs_param { dimnb: 5 batch: 1 pad: [0, 0, 0] stride: [1, 1, 1] dilation: [1, 1, 1] sub_m: 0
  input_space: [1, 1, 4] filter_space: [1, 1, 1] output_space: [1, 1, 4] transpose: 0 inverse: 0 }
"""
STORED = ("value_i: [0, 0, 0, 0, 0, 0, 0, 1]", "value_i: [0, 1, 0, 1]", "value_i: 2")


@pytest.mark.parametrize("stored", [False, True], ids=["computed", "stored"])
@pytest.mark.parametrize(
    ("site", "message"),
    [
        ("0, 0, 0, 4", "indices row 1: w is 4, expected 0 to 3"),
        ("0, 0, 0, 0", "the site [0, 0, 0, 0] is there twice"),
        ("0, 0, 0, 1", ""),
    ],
)
def test_a9_e2_values_outside_of_the_contract_are_refused_by_all_commands(
    tmp_path: Path, cli: Cli, site: str, message: str, stored: bool
) -> None:
    """FOUND A9, E2: run passed such a file, or blamed the implementation."""
    text = PAIRS % (site, *(STORED if stored else ("", "", "")))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "sites.prototxt").write_text(f"{text}device: GPU\n" if stored else text)
    gen = cli("gen", "--from", tmp_path / "in", "--out", tmp_path / "gen", "-j", 1)
    check = cli("check", tmp_path / "in")
    run = cli("run", tmp_path / "in", "--impl", "reference", "--out", tmp_path / "run", "-j", 1)
    assert [gen.code, check.code, run.code] == ([2, 1, 2] if message else [0, 0, 0]), (gen, check, run)
    (record,) = map(json.loads, (tmp_path / "run" / "results.jsonl").read_text().splitlines())
    assert record["status"] == ("error" if message else "pass"), record
    if message:
        assert message in gen.err
        assert message in check.out
        assert message in record["reason"]
        assert record["blame"] == "case"
