"""`mluops convert`: one file, a tree, warnings, what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from schemas.casefiles.reading import read_case
from schemas.protos import messages as proto
from tests.mluops_cli.conftest import Cli

TEXT = """op_name: "abs"  # a comment
input { id: "x" shape { dims: 3 } layout: LAYOUT_ARRAY dtype: DTYPE_FLOAT value_f: [1, 2, 3] }
test_param { error_func: DIFF3 error_threshold: 0 }
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Two case files in folders, one of them twice, and a stranger."""
    (tmp_path / "in" / "deep er").mkdir(parents=True)
    (tmp_path / "in" / "a.v1.prototxt").write_text(TEXT)
    (tmp_path / "in" / "deep er" / "b c.prototxt").write_text(TEXT.replace("2, 3", "2, 4"))
    (tmp_path / "in" / "readme.txt").write_text("no case")
    return tmp_path / "in"


def message(path: Path) -> bytes:
    return proto.serialize(read_case(path).node)


def test_one_file_to_a_file_or_into_a_folder(cli: Cli, tree: Path, tmp_path: Path) -> None:
    ran = cli("convert", tree / "a.v1.prototxt", tmp_path / "b.pb")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert read_case(tmp_path / "b.pb").inputs[0].array().tolist() == [1, 2, 3]
    assert cli("convert", tmp_path / "b.pb", tmp_path).code == 0
    assert message(tmp_path / "b.prototxt") == message(tree / "a.v1.prototxt")
    assert b"#" not in (tmp_path / "b.prototxt").read_bytes()
    assert cli("convert", tmp_path / "b.pb", tmp_path / "new folder").code == 0
    assert (tmp_path / "new folder" / "b.prototxt").is_file()


def test_a_tree_there_and_back(cli: Cli, tree: Path, tmp_path: Path) -> None:
    assert cli("convert", tree, tmp_path / "pb").out.startswith("2 case files in")
    assert cli("convert", tmp_path / "pb", tmp_path / "text").code == 0
    found = sorted(path.relative_to(tmp_path / "text").as_posix() for path in (tmp_path / "text").rglob("*.*"))
    assert found == ["a.v1.prototxt", "deep er/b c.prototxt"]
    for name in found:
        assert message(tmp_path / "text" / name) == message(tree / name)
    assert cli("convert", "--to", "pb", tree, tree).code == 0  # beside the sources
    assert (tree / "a.v1.pb").is_file()
    ran = cli("convert", "--to", "pb", tree, tmp_path / "again")  # a stem in both forms: the .pb goes
    assert ran.code == 0
    assert ran.out.startswith("2 case files")
    assert ran.err.count("left out") == 2


def test_a_bad_file_in_a_tree_ends_that_file_alone(cli: Cli, tree: Path, tmp_path: Path) -> None:
    (tree / "bad.prototxt").write_text("input {")
    ran = cli("convert", tree, tmp_path / "out")
    assert ran.code == 2
    assert ran.out.startswith("2 case files")
    assert "bad.prototxt:1:7" in ran.err


def test_values_that_disagree_with_the_shape_are_a_warning(cli: Cli, tree: Path, tmp_path: Path) -> None:
    (tree / "a.v1.prototxt").write_text(TEXT.replace("dims: 3", "dims: 4"))
    ran = cli("convert", tree / "a.v1.prototxt", tmp_path / "a.pb")
    assert ran.code == 0
    assert 'input[0] "x": value_f holds 3 values, expected 4' in ran.err
    assert message(tmp_path / "a.pb") == message(tree / "a.v1.prototxt")


def test_values_move_out_and_in(cli: Cli, tree: Path, tmp_path: Path) -> None:
    assert cli("convert", "--inline-limit", "0", tree / "a.v1.prototxt", tmp_path / "a.pb").code == 0
    assert np.fromfile(next(tmp_path.glob("a.in0.*.bin")), np.float32).tolist() == [1, 2, 3]
    assert cli("convert", "--inline-limit", "1KiB", tmp_path / "a.pb", tmp_path / "b.prototxt").code == 0
    assert message(tmp_path / "b.prototxt") == message(tree / "a.v1.prototxt")


def test_plain(cli: Cli, tmp_path: Path) -> None:
    assert cli("gen", "psamask_forward", "--suite", "demo", "--out", tmp_path / "gen", "-j", "1").code == 0
    assert cli("convert", tmp_path / "gen", tmp_path / "text").code == 0
    assert cli("convert", "--plain", tmp_path / "gen", tmp_path / "plain").code == 0
    kept, plain = (sorted((tmp_path / name).rglob("*.prototxt")) for name in ("text", "plain"))
    assert len(kept) == len(plain) > 2
    for with_ours, without in zip(kept, plain, strict=True):
        case, bare = read_case(with_ours), read_case(without)
        assert case.meta is not None
        assert case.meta.suite == "demo"
        assert bare.meta is None
        assert b"mluops" not in without.read_bytes()


@pytest.mark.parametrize(
    ("source", "target", "told"),
    [
        ("none.pb", "x.pb", "no such file or folder"),
        ("in/a.v1.prototxt", "x.txt", "ends in .pb or .prototxt"),
        ("in/a.v1.prototxt", "x.pbb", "did you mean '.pb'"),
        ("in", "in/a.v1.prototxt", "needs a folder"),
        ("in/readme.txt", "x.pb", "ends in .pb or .prototxt"),
        ("empty", "out", "no case files"),
    ],
)
def test_what_is_refused(cli: Cli, tree: Path, tmp_path: Path, source: str, target: str, told: str) -> None:
    (tmp_path / "empty").mkdir()
    ran = cli("convert", tmp_path / source, tmp_path / target)
    assert ran.code == 2
    assert told in ran.err


def test_an_old_file_is_converted_only_when_told_so(cli: Cli, tmp_path: Path) -> None:
    tensor = b"\x0a\x01x\x12\x02\x08\x02\x18\x04\x20\x03\x8a\x01\x02\x01\x02"  # ARRAY 4, DOUBLE 3, value_l 1, 2
    (tmp_path / "old.pb").write_bytes(b"\x2a\x03abs\x32" + bytes([len(tensor)]) + tensor)
    ran = cli("convert", tmp_path / "old.pb", tmp_path / "a.prototxt")
    assert ran.code == 2
    assert "--generation old" in ran.err
    assert cli("convert", "--generation", "old", tmp_path / "old.pb", tmp_path / "a.prototxt").code == 0
    record = read_case(tmp_path / "a.prototxt").inputs[0]
    assert (record.dtype.name, record.layout, record.shape) == ("double", "ARRAY", (2,))
    assert record.array().view(np.int64).tolist() == [1, 2]
    assert cli("convert", "--generation", "old", tmp_path / "old.pb", tmp_path / "new.pb").code == 0
    assert message(tmp_path / "new.pb") == message(tmp_path / "a.prototxt")


def test_a3_nothing_is_written_over_an_input(cli: Cli, tree: Path, tmp_path: Path) -> None:
    """A folder onto itself that holds one name in both forms, with different values."""
    assert cli("convert", tree / "a.v1.prototxt", tree / "a.v1.pb").code == 0
    (tree / "a.v1.prototxt").write_text(TEXT.replace("2, 3", "7, 8"))
    before = {path: path.read_bytes() for path in tree.rglob("*.p*")}
    ran = cli("convert", tree, tree)
    assert ran.code == 2
    assert ran.err.count("is a file to be converted itself: choose another DST") == 2
    assert ran.out == f"1 case file in {tree}\n"
    assert {path: path.read_bytes() for path in before} == before
    assert (tree / "deep er" / "b c.pb").is_file()
    for target in (tree / "a.v1.pb", tree / "deep er" / ".." / "a.v1.pb"):
        assert cli("convert", tree / "a.v1.pb", target, "--inline-limit", "0").code == 2
    (tmp_path / "link").symlink_to(tree)
    assert cli("convert", tree, tmp_path / "link", "--to", "pb").code == 2
    assert {path: path.read_bytes() for path in before} == before


def test_a2_two_folders_into_one(cli: Cli, tmp_path: Path) -> None:
    for name, value in (("a", 1), ("b", 2)):
        (tmp_path / name).mkdir()
        np.full(3, value, np.float32).tofile(tmp_path / name / "data.bin")
        text = TEXT.replace("value_f: [1, 2, 3]", 'path: "data.bin"')
        (tmp_path / name / f"{name}.prototxt").write_text(text)
    first, second = (cli("convert", tmp_path / name, tmp_path / "out") for name in "ab")
    assert (first.code, first.err, second.code) == (0, "", 0)
    assert "holds other data: external data are copied to b.in0." in second.err
    for name, value in (("a", 1), ("b", 2)):
        with read_case(tmp_path / "out" / f"{name}.pb") as case:
            assert case.inputs[0].array().tolist() == [value] * 3


def test_f9_a_target_that_can_not_be_written_ends_that_file_alone(cli: Cli, tree: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "deep er").write_text("in the way")
    ran = cli("convert", tree, tmp_path / "out")
    assert ran.code == 3
    assert "b c.pb: can't write: " in ran.err
    assert ran.out.startswith("1 case file in")
    assert [path.name for path in (tmp_path / "out").iterdir() if path.is_file()] == ["a.v1.pb", "deep er"]


def test_f14_long_names(cli: Cli, tmp_path: Path) -> None:
    for length in (240, 250):
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / f"{'x' * (length - 9)}.prototxt").write_text(TEXT)
    ran = cli("convert", tmp_path / "in", tmp_path / "out", "--inline-limit", "0")
    assert (ran.code, ran.err) == (0, "")
    for path in (tmp_path / "out").glob("*.pb"):
        with read_case(path) as case:
            assert case.inputs[0].array().tolist() == [1, 2, 3]


def test_b12_what_a_killed_convert_left_is_removed(cli: Cli, tree: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".mluops-0123456789abcdef.part").write_bytes(b"half a file")
    (tmp_path / "out" / ".mine.part").write_bytes(b"foreign")
    assert cli("convert", tree, tmp_path / "out").code == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [".mine.part", "a.v1.pb", "deep er"]
