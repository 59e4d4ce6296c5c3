"""`gen --from` in every form of file; criteria, counts and names of foreign files; a bad file costs no other."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from generators.casegen.manifest import agrees
from generators.operator_registry import operators
from mluops_cli.main import main
from schemas.casefiles import enum_numbering
from schemas.casefiles.reading import read_case
from schemas.casefiles.requested_criteria import criteria_of
from schemas.protos import messages as proto
from schemas.wire import codec as wire
from schemas.wire.value_fields import BULK
from tests.mluops_cli.conftest import Cli

SUITES = ("boundary", "demo", "zero_element")
OPERATORS = sorted(operators())


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cases of every operator as mluops writes them."""
    out = tmp_path_factory.mktemp("bundled")
    with pytest.raises(SystemExit) as stop:
        main(["gen", *OPERATORS, "--suite", ",".join(SUITES), "--out", str(out), "-j", "1"])
    assert stop.value.code == 0
    return out


def stripped(path: Path) -> Any:
    """The case as public files have it: no metadata, no baseline, nothing that only a reference kernel knows."""
    node = proto.Node.FromString(path.read_bytes())
    proto.set_meta(node, None)
    node.ClearExtension(proto.extension("mluops_pad"))
    for field in ("device", "theory_io_size", "theory_compute_ops"):
        node.ClearField(field)
    node.test_param.ClearField("baseline_device")
    for output in node.output:
        for name in BULK.values():
            output.ClearField(name)
    if node.op_name == "get_indice_pairs":
        node.get_indice_pairs_param.ClearField("num_act_out")
    return node


def old_numbers(data: bytes) -> bytes:
    """A case's bytes in the older enum numbering."""

    def number_of(enum: str, number: int, where: str) -> bytes:
        name = proto.enum_names(enum)[number]
        return wire.encode_varint({name: old for old, name in enum_numbering.old_names(enum).items()}[name])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(enum_numbering, "_new_number", number_of)
        return enum_numbering.translated(data)


def strip_all(bundled: Path, op: str, folder: Path, form: str) -> dict[str, Path]:
    """The stripped files of an operator's valid cases in some form; name -> the bundled file."""
    originals = {}
    for path in sorted((bundled / op).rglob("*.pb")):
        with read_case(path) as file:
            assert file.meta is not None
            if list(file.meta.expect) not in ([], ["SUCCESS"]):
                continue
        name = f"{path.parent.name}_{path.stem}"
        node = stripped(path)
        if form == "prototxt":
            (folder / f"{name}.prototxt").write_text(proto.print_text(node))
        else:
            data = proto.serialize(node)
            (folder / f"{name}.pb").write_bytes(old_numbers(data) if form == "old" else data)
        originals[name] = path
    return originals


def same_outputs(made: Path, original: Path) -> None:
    with read_case(made) as file, read_case(original) as other:
        for mine, theirs in zip(file.outputs, other.outputs, strict=True):
            assert mine.shape == theirs.shape
            if theirs.elements:
                assert mine.array().tobytes() == theirs.array().tobytes(), (made, mine.id)
        assert file.node.theory_io_size == other.node.theory_io_size
        assert file.node.theory_compute_ops == other.node.theory_compute_ops


@pytest.mark.parametrize("form", ["prototxt", "old"])
@pytest.mark.parametrize("op", OPERATORS)
def test_a1_stripped_files_get_the_same_baselines(cli: Cli, bundled: Path, tmp_path: Path, op: str, form: str) -> None:
    sources = tmp_path / "in"
    sources.mkdir()
    originals = strip_all(bundled, op, sources, form)
    assert len(originals) > 10
    ran = cli(
        "gen",
        "--from",
        sources,
        "--generation",
        "old" if form == "old" else "current",
        "--out",
        tmp_path / "out",
        "-j",
        1,
    )
    assert ran.code == 0, ran.err
    for name, original in originals.items():
        same_outputs(tmp_path / "out" / op / "external" / f"{name}.pb", original)


@pytest.mark.parametrize("op", OPERATORS)
def test_a1_stripped_files_get_dynamic_thresholds(cli: Cli, bundled: Path, tmp_path: Path, op: str) -> None:
    """The same as from the specs: the case's data are the same."""
    sources = tmp_path / "in"
    sources.mkdir()
    originals = strip_all(bundled, op, sources, "pb")
    ran = cli("gen", "--from", sources, "--dynamic-thresholds", "--out", tmp_path / "out", "-j", 1)
    assert ran.code == 0, ran.err
    chosen = ("--suite", ",".join(SUITES), "--out", tmp_path / "direct", "-j", 1)
    assert cli("gen", op, *chosen, "--dynamic-thresholds").code == 0
    for name, original in originals.items():
        direct = tmp_path / "direct" / original.relative_to(bundled)
        made = tmp_path / "out" / op / "external" / f"{name}.pb"
        same_outputs(made, original)
        with read_case(made) as file, read_case(direct) as other:
            for mine, theirs in zip(criteria_of(file), criteria_of(other), strict=True):
                assert [(each.name, each.threshold) for each in mine] == [
                    (each.name, each.threshold) for each in theirs
                ]


def test_e10_a_count_that_the_data_tell_is_filled_in(cli: Cli, bundled: Path, tmp_path: Path) -> None:
    op = "get_indice_pairs"
    sources = tmp_path / "in"
    sources.mkdir()
    originals = strip_all(bundled, op, sources, "pb")
    assert cli("gen", "--from", sources, "--out", tmp_path / "out", "-j", 1).code == 0
    counts = set()
    for name, original in originals.items():
        made = tmp_path / "out" / op / "external" / f"{name}.pb"
        found, expected = (
            proto.Node.FromString(path.read_bytes()).get_indice_pairs_param.num_act_out for path in (made, original)
        )
        assert found == expected
        counts.add(found)
    assert len(counts) > 3


FORWARD = """op_name: "psamask_forward"
input { id: "input" shape { dims: [1, 1, 2, 3] } layout: LAYOUT_NHWC dtype: DTYPE_FLOAT value_f: [1, 2, 3, 4, 5, 6] }
output { id: "output" shape { dims: [1, 1, 2, 2] } layout: LAYOUT_NHWC dtype: DTYPE_FLOAT }
psamask_forward_param { h_mask: 1 w_mask: 3 psa_type: 1 }
"""
POOLING = """op_name: "voxel_pooling_forward"
input { id: "geom" shape { dims: [1, 2, 3] } layout: LAYOUT_ARRAY dtype: DTYPE_INT32 value_i: [0, 0, 0, 0, 0, 0] }
input { id: "features" shape { dims: [1, 2, 1] } layout: LAYOUT_ARRAY dtype: DTYPE_FLOAT value_f: [1.5, 2.5] }
output { id: "sums" shape { dims: [1, 1, 1, 1] } layout: LAYOUT_ARRAY dtype: DTYPE_FLOAT }
output { id: "memo" shape { dims: [1, 2, 3] } layout: LAYOUT_ARRAY dtype: DTYPE_INT32 }
voxel_pooling_forward_param {
  batch_size: 1 num_points: 2 num_channels: 1 num_voxel_x: 1 num_voxel_y: 1 num_voxel_z: 1
}
"""


@pytest.mark.parametrize("text", [FORWARD, POOLING])
@pytest.mark.parametrize("extra", ["", "test_param { baseline_device: CPU }", "test_param {}"])
def test_a5_a_file_without_criteria_gets_those_of_the_contract(cli: Cli, tmp_path: Path, text: str, extra: str) -> None:
    source = tmp_path / "case.prototxt"
    source.write_text(text + extra)
    assert cli("gen", "--from", source, "--out", tmp_path / "out", "-j", 1).code == 0
    (made,) = (tmp_path / "out").rglob("*.pb")
    with read_case(made) as file:
        contract = operators()[file.op].contract
        assert criteria_of(file) == [tensor.criteria for tensor in contract.outputs]
        node = file.node
        assert bool(node.test_param.error_func) != bool(node.evaluation_criterion)


def test_a5_an_output_that_is_left_out_needs_no_values(cli: Cli, tmp_path: Path) -> None:
    """The file carries the baseline of what counts; gen --from and run see it alike."""
    carried = POOLING.replace("DTYPE_FLOAT }\noutput", "DTYPE_FLOAT value_f: 4 }\noutput")
    carried = carried.replace("DTYPE_INT32 }", "DTYPE_INT32 threshold_use: 0 }")
    assert "value_f: 4 }" in carried
    assert "threshold_use" in carried
    source = tmp_path / "case.prototxt"
    source.write_text(carried + "device: GPU")
    options = ("--impl", "tiled", "-j", 1)
    first = cli("run", source, *options, "--out", tmp_path / "first")
    assert cli("gen", "--from", source, "--out", tmp_path / "out", "-j", 1).code == 0
    (made,) = (tmp_path / "out").rglob("*.pb")
    second = cli("run", made, *options, "--out", tmp_path / "second")
    assert (first.code, second.code) == (0, 0), (first.out, second.out)
    with read_case(made) as file:
        assert file.outputs[0].array().item() == 4
        assert not file.outputs[1].has_values


def test_e4_a_file_that_fails_costs_no_other(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bad at the first look, bad when its values are read, and one on which the reference kernel breaks down."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "good.prototxt").write_text(FORWARD)
    (folder / "other.prototxt").write_text(POOLING)
    (folder / "few.prototxt").write_text(FORWARD.replace("[1, 2, 3, 4, 5, 6]", "[1, 2]"))
    (folder / "cut.prototxt").write_text(FORWARD[:50])
    (folder / "range.prototxt").write_text(POOLING.replace("num_voxel_x: 1", "num_voxel_x: 0"))
    ran = cli("gen", "--from", folder, "--out", tmp_path / "out", "-j", 1)
    assert ran.code == 2
    for name in ("few", "cut", "range"):
        assert f"{name}.prototxt" in ran.err
    assert ran.out.startswith("2 cases, ")
    assert sorted(path.name for path in (tmp_path / "out").rglob("*.pb")) == ["good.pb", "other.pb"]

    def broken(self: Any, inputs: Any, env: Any) -> Any:
        raise ZeroDivisionError("kernel")

    monkeypatch.setattr(type(operators()["voxel_pooling_forward"]), "reference", broken)
    ran = cli("gen", "--from", folder, "--out", tmp_path / "broken", "-j", 1)
    assert ran.code == 3
    place = f"{__file__}:{broken.__code__.co_firstlineno + 1}"
    told = f"{place}: reference kernel of voxel_pooling_forward: ZeroDivisionError: kernel"
    assert f"voxel_pooling_forward/external/other: {told}" in ran.err
    assert [path.name for path in (tmp_path / "broken").rglob("*.pb")] == ["good.pb"]


@pytest.mark.parametrize(
    ("suite", "name"),
    [
        ("../../../../victim", "x"), ("s", "../../../victim/x"), ("/victim", "x"), ("s", "/x"), ("", "x"), ("s", ""),
        ("s", "a//b"), ("..", ".."), ("s\nt", "x"), ("s", "x" * 300), ("s/t", "x"),
    ],
)  # fmt: skip
def test_f1_metadata_leads_nowhere(cli: Cli, tmp_path: Path, suite: str, name: str) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    for each in ("x.pb", "x.in0.bin"):
        (victim / each).write_text("mine")
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "good.prototxt").write_text(FORWARD)
    node = proto.parse_text(FORWARD, proto.Node(), "text")
    proto.set_meta(node, proto.CaseMeta(suite=suite, name=name, expect=["SUCCESS"]))
    (folder / "bad.pb").write_bytes(proto.serialize(node))
    out = tmp_path / "a" / "b" / "out"
    ran = cli("gen", "--from", folder, "--out", out, "-j", 1, "--inline-limit", 0)
    assert ran.code == 2
    assert "bad.pb: " in ran.err
    assert "can't be part of a path" in ran.err
    assert {path.name: path.read_text() for path in victim.iterdir()} == {"x.pb": "mine", "x.in0.bin": "mine"}
    written = {path.name for path in tmp_path.rglob("*.pb")} - {"bad.pb", "x.pb"}
    assert written == {"good.pb"}
    assert cli("check", folder / "bad.pb").code == 1


def test_f1_a_name_of_a_file_in_folders_can_be_read_again(cli: Cli, tmp_path: Path) -> None:
    nested = tmp_path / "in/below/deeper"
    nested.mkdir(parents=True)
    (nested / "case.prototxt").write_text(FORWARD)
    assert cli("gen", "--from", tmp_path / "in", "--out", tmp_path / "out", "-j", 1).code == 0
    made = tmp_path / "out/psamask_forward/external/below/deeper/case.pb"
    with read_case(made) as file:
        assert file.meta is not None
        assert (file.meta.suite, file.meta.name) == ("external", "below/deeper/case")
    ran = cli("gen", "--from", made, "--out", tmp_path / "again", "-j", 1)
    assert (ran.code, ran.err) == (0, "")
    again = tmp_path / "again" / made.relative_to(tmp_path / "out")
    assert again.read_bytes() == made.read_bytes()


def test_e5_both_formats_hold_the_same_bits(cli: Cli, tmp_path: Path) -> None:
    """NaNs with sign and payload, signalling ones too; and the hash of the manifest is that of both files."""
    bits = np.array([0x7FC00000, 0xFFC00000, 0x7FC00001, 0x7F800001, 0xFFBFFFFF, 0x3F800000], np.uint32)
    node = proto.parse_text(FORWARD, proto.Node(), "text")
    node.input[0].ClearField("value_f")
    node.input[0].value_h.extend(f"{each:x}" for each in bits.tolist())
    (tmp_path / "case.pb").write_bytes(proto.serialize(node))
    out = tmp_path / "out"
    assert cli("gen", "--from", tmp_path / "case.pb", "--out", out, "--format", "both", "-j", 1).code == 0
    (entry,) = json.loads((out / "manifest.json").read_text())["cases"].values()
    for path in sorted((out / "psamask_forward/external").iterdir()):
        with read_case(path) as file:
            assert file.inputs[0].array().view(np.uint32).ravel().tolist() == bits.tolist(), path
            expected = [bits[index] for index in (1, 3, 2, 4)]
            assert file.outputs[0].array().view(np.uint32).ravel().tolist() == expected, path
    assert all(agrees(out / file, entry) for file in entry["files"])


def test_d19_keywords_select_files(cli: Cli, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.prototxt").write_text(FORWARD)
    ran = cli("gen", "--from", tmp_path, "-k", "two", "--out", tmp_path / "out", "-j", 1)
    assert (ran.code, ran.out.split(",")[0]) == (0, "1 case")
    assert [path.name for path in (tmp_path / "out").rglob("*.pb")] == ["two.pb"]


def elements(path: Path) -> int:
    node = proto.parse_text(path.read_text(), proto.Node(), path.name)
    return sum(prod(tensor.shape.dims) for tensor in (*node.input, *node.output))


@pytest.mark.parametrize("limit", [1 << 22, pytest.param(1 << 40, marks=pytest.mark.slow)], ids=["small", "all"])
def test_every_public_file_of_our_operators_is_completed(cli: Cli, shared: Path, tmp_path: Path, limit: int) -> None:
    files = [path for op in OPERATORS for path in (shared / "public_cases/prototxt" / op).glob("*")]
    sources = [word for path in files if elements(path) <= limit for word in ("--from", path)]
    assert sources
    for extra in ((), ("--dynamic-thresholds",)):
        ran = cli("gen", *sources, "--out", tmp_path / f"out{len(extra)}", "-j", 1, *extra)
        assert ran.code == 0, ran.err
