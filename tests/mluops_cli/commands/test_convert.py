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
    assert 'input[0] "x": 3 values, expected 4' in ran.err
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
