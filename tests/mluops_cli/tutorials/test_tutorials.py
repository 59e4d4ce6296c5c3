"""The tutorials in docs/ do what they say, command by command, file by file."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import click
import numpy as np
import pytest

from generators.operator_registry import operators
from mluops_cli.implementations.plugins import load_plugins
from mluops_cli.main import cli as group
from schemas.protos import messages as proto
from schemas.wire.value_fields import BITS, FIELDS
from tests.conftest import PROJECT
from tests.mluops_cli.conftest import Cli
from tests.mluops_cli.tutorials.page import Block, blocks, changed, follow, steps, write

PAGES = {  # page -> its commands of mluops
    "case-files.md": 4,
    "ci/README.md": 7,
    "finding-faults.md": 9,
    "first-kernel-c.md": 6,
    "first-kernel-pytorch.md": 3,
    "first-kernel-triton.md": 3,
    "new-operator.md": 3,
}


@pytest.mark.parametrize("page", PAGES)
def test_commands_are_right_and_changes_fit(
    page: str, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    commands, folder = 0, tmp_path
    for step in steps(page):
        if isinstance(step, Block):
            write(step, folder)
            path = folder / step.name
            if path.suffix == ".py":
                compile(path.read_text(encoding="utf-8"), str(path), "exec")
        elif step.words[:2] == ["mluops", "new-operator"]:  # what follows changes its files
            assert cli(*step.words[1:]).code == step.code
            commands += 1
        elif step.words[0] == "cd":
            folder /= step.words[1]
        elif step.words[0] == "mluops":
            context = click.Context(group, info_name="mluops", **group.context_settings)
            name, command, arguments = group.resolve_command(context, step.words[1:])
            assert command is not None
            command.make_context(name, arguments, parent=context, resilient_parsing=True)
            commands += 1
        elif step.words[0] == "cp":
            shutil.copy(PROJECT / step.words[1], tmp_path / step.words[2])
    assert commands == PAGES[page]


def test_a_change_that_does_not_fit_is_seen() -> None:
    assert changed("a\nb\n", " a\n+c\n-b\n") == "a\nc\n"
    with pytest.raises(AssertionError, match="not there once"):
        changed("a\nb\n", " a\n-c\n")


@pytest.mark.slow
@pytest.mark.parametrize("page", ["ci/README.md", "first-kernel-c.md"])
def test_following_a_tutorial(page: str, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed = "".join(follow(page, tmp_path, cli))
    if page == "first-kernel-c.md":
        assert "explained by the term of input_features[0, 0] missing" in printed


@pytest.mark.usefixtures("own_plugins")
@pytest.mark.slow
def test_the_new_operator(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _, drafted, written, right, faulty, _, fuzzed, _ = follow("new-operator.md", tmp_path, cli)
    (missing,) = blocks("new-operator.md", "text")
    assert missing.replace("/home/me", str(tmp_path)) in drafted
    assert re.search(r"^1 failed, \d+ passed, \d+ skipped", drafted, re.MULTILINE)
    assert re.search(r"^\d+ passed in", written, re.MULTILINE)
    assert re.search(r"^\d+ cases in .*: \d+ pass$", right, re.MULTILINE)
    (case,) = re.findall(r"The case `(.*?)` fails", (PROJECT / "docs" / "new-operator.md").read_text(encoding="utf-8"))
    assert case in faulty
    assert "0 findings" in fuzzed
    page = (tmp_path / "ball_query" / "out" / "docs" / "ball_query.md").read_text(encoding="utf-8")
    assert "how many indices a center has" in page


@pytest.mark.usefixtures("own_plugins")
def test_the_error_bound_of_the_new_operator(tmp_path: Path) -> None:
    (block,) = [step for step in steps("new-operator.md") if isinstance(step, Block) and step.name == "row_sums.py"]
    write(block, tmp_path)
    load_plugins([tmp_path / "row_sums.py"])
    x = np.random.default_rng(1).uniform(-1, 1, (9, 300)).astype(np.float32)
    operator, shapes = operators()["row_sums"], {"x": x.shape, "y": (9,)}
    baseline = operator.baseline({"x": x}, shapes, {})
    bound = operator.bounds({"x": x}, shapes, {}, baseline)["y"]
    for ordered in (x, x[:, ::-1], np.sort(x, axis=1)):
        single, half = (np.cumsum(ordered, axis=1, dtype=dtype)[:, -1] for dtype in (np.float32, np.float16))
        assert (abs(single - baseline["y"]) <= bound).all()
        assert (abs(half - baseline["y"]) > bound).any()


def test_the_page_of_case_files(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    follow("case-files.md", tmp_path, cli)
    (shown,) = blocks("case-files.md", "text")
    assert (tmp_path / "one_cell.prototxt").read_text(encoding="utf-8") == shown


def test_the_fields_of_case_files() -> None:
    text = (PROJECT / "docs" / "case-files.md").read_text(encoding="utf-8")
    for message, rows in re.findall(r"^\| field of `(\w+)` .*\n.*\n((?:\|.*\n)+)", text, re.MULTILINE):
        named = {word for row in rows.splitlines() for word in re.findall(r"`(\w+)`", row.split("|")[1])}
        known = getattr(proto, message).DESCRIPTOR.fields_by_name
        assert named - {"OPERATOR_param"} <= set(known)
    (rows,) = re.findall(r"^\| dtype \| fields \|\n.*\n((?:\|.*\n)+)", text, re.MULTILINE)
    told = {}
    for row in rows.splitlines():
        dtypes, fields = row.strip("| ").split(" | ")
        for dtype in dtypes.split(", "):
            told[dtype] = [(name, bool(bits)) for name, bits in re.findall(r"`(\w+)`( \(bits\))?", fields)]
    assert told == {dtype: [(name, how == BITS) for name, how in each.items()] for dtype, each in FIELDS.items()}
