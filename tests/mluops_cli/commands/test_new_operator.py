"""`mluops new-operator`: what it refuses, in one message and with nothing left behind, and what it prints."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.mluops_cli.conftest import Cli

CASE = """op_name: "{op}"
input {{ id: "x" shape {{ dims: [{n}, 3] }} layout: LAYOUT_ARRAY dtype: DTYPE_FLOAT
        random_data {{ distribution: UNIFORM lower_bound: 0 upper_bound: 1 }} }}
output {{ id: "y" shape {{ dims: [{n}] }} layout: LAYOUT_ARRAY dtype: DTYPE_FLOAT }}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with case files: two of `lengths`, one of `other`, one that can't be read."""
    monkeypatch.chdir(tmp_path)
    for name, op, n in (("a", "lengths", 4), ("b", "lengths", 5), ("c", "other", 4)):
        (tmp_path / f"{name}.prototxt").write_text(CASE.format(op=op, n=n))
    (tmp_path / "broken.prototxt").write_text("op_name: 5")
    (tmp_path / "none").mkdir()
    return tmp_path


def test_a_package_from_files(here: Path, cli: Cli) -> None:
    ran = cli("new-operator", "lengths", "--from", "a.prototxt", "b.prototxt")
    assert (ran.code, ran.err) == (0, "")
    assert "x       float  ARRAY   N 3" in ran.out
    files = sorted(str(path.relative_to(here / "lengths")) for path in (here / "lengths").rglob("*") if path.is_file())
    assert files == [
        ".gitignore",
        "Makefile",
        "README.md",
        "mluops_lengths/__init__.py",
        "mluops_lengths/implementation.py",
        "mluops_lengths/lengths.md",
        "mluops_lengths/lengths.yaml",
        "mluops_lengths/operators.py",
        "pyproject.toml",
        "tests/test_implementation.py",
        "tests/test_reference.py",
        "tests/this_operator.py",
    ]


def test_stored_values_come_along(here: Path, cli: Cli) -> None:
    text = CASE.format(op="lengths", n=1).replace(
        "random_data { distribution: UNIFORM lower_bound: 0 upper_bound: 1 }", "value_f: [1, 2, 4]"
    )
    (here / "stored.prototxt").write_text(text)
    assert cli("new-operator", "lengths", "--from", "stored.prototxt").code == 0
    (values,) = (here / "lengths" / "mluops_lengths" / "data").iterdir()
    assert values.name in (here / "lengths" / "mluops_lengths" / "lengths.yaml").read_text(encoding="utf-8")


def test_a_case_that_the_contract_cannot_have_is_told_and_left_out(here: Path, cli: Cli) -> None:
    text = CASE.format(op="lengths", n=4)
    text = text.replace("dims: [4, 3]", "dims: [4, 3] dim_stride: [6, 2]").replace(
        "dims: [4]", "dims: [4] dim_stride: 2"
    )
    (here / "strided.prototxt").write_text(text)
    ran = cli("new-operator", "lengths", "--from", "strided.prototxt")
    assert ran.code == 0
    assert "strided.prototxt: left out: no legal case of lengths: x is strided; y is strided" in ran.err
    spec = here / "lengths" / "mluops_lengths" / "lengths.yaml"
    assert yaml.safe_load(spec.read_text(encoding="utf-8"))["suites"]["network"] == []


REFUSED = [
    (["Lengths"], "the name is 'Lengths', expected a word of a-z 0-9 _ that begins with a letter"),
    (["3d"], "the name is '3d'"),
    (["a-b"], "the name is 'a-b'"),
    (["../up"], "the name is '../up'"),
    (["psamask_forward"], "psamask_forward is an operator of mluops already"),
    (["torch"], "torch is the name of an implementation"),
    (["a" * 300], "can't be part of a path"),
    (["lengths", "--out", "none"], "none exists, expected a new folder"),
    (["lengths", "--out", "a.prototxt"], "a.prototxt exists, expected a new folder"),
    (
        ["lengths", "--from", "a.prototxt", "c.prototxt"],
        "case files of two operators: c.prototxt is of other, a.prototxt",
    ),
    (["lengths", "--from", "c.prototxt"], "c.prototxt: the operator is other, expected lengths"),
    (["lengths", "--from", "broken.prototxt"], "broken.prototxt"),
    (["lengths", "--from", "missing.prototxt"], "no such file or folder: missing.prototxt"),
    (["lengths", "--from", "none"], "no case file of a legal call of lengths in none"),
    (["lengths", "a.prototxt"], "unexpected 'a.prototxt': case files follow --from"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_bad_input(arguments: list[str], message: str, here: Path, cli: Cli) -> None:
    before = sorted(here.rglob("*"))
    ran = cli("new-operator", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert ran.err.count("\n") == 1
    assert sorted(here.rglob("*")) == before


def test_a_disk_that_refuses_leaves_nothing(here: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sorted(here.rglob("*"))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mluops_cli.new_operator.package.os.replace", full)
    ran = cli("new-operator", "lengths")
    assert (ran.code, ran.out) == (3, "")
    assert "lengths: can't write: No space left on device" in ran.err
    assert sorted(here.rglob("*")) == before
