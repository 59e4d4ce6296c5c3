"""`mluops gen` into a folder that holds cases: what its specs no longer make is told, or removed with --prune."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.mluops_cli.commands.test_gen import BACKWARD, FORWARD, tree
from tests.mluops_cli.commands.test_gen_again import gen
from tests.mluops_cli.conftest import Cli


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "specs" / "forward.yaml"
    path.parent.mkdir()
    path.write_text(FORWARD)
    return path


def test_a_renamed_entry_is_told_and_pruned(cli: Cli, spec: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    gen(cli, spec, out)
    gen(cli, _backward(spec), out)  # of another operator: not what these specs make
    (out / "psamask_forward" / "small" / "mine.txt").write_text("mine")
    spec.write_text(FORWARD.replace("name: hand", "name: head").replace("small:", "less:"))
    said = gen(cli, spec, out)[1]
    gone = "3 cases are no longer made by the specs"
    assert said == f"{out}: {gone}, such as psamask_forward/small/a_collect; --prune removes them\n"
    assert len(list(out.rglob("*.pb"))) == 7
    assert cli("gen", "psamask_backward", "--suite", "demo", "--out", out, "-j", 1).code == 0  # of another suite
    said = gen(cli, spec, out, "--prune")[1]
    assert said == f"{out}: {gone} and removed, such as psamask_forward/small/a_collect\n"
    assert not list((out / "psamask_forward").rglob("small/*.pb"))
    assert (out / "psamask_forward" / "small" / "mine.txt").exists()
    entries = json.loads((out / "manifest.json").read_text())["cases"]
    assert [case for case in entries if "psamask_forward" in case] == [
        "psamask_forward/less/a_collect", "psamask_forward/less/a_distribute", "psamask_forward/less/head",
    ]  # fmt: skip
    assert gen(cli, spec, out, "--prune")[1] == ""
    assert (out / "psamask_backward" / "other" / "b.pb").exists()


def test_what_other_specs_made_is_not_unmade(cli: Cli, spec: Path, tmp_path: Path) -> None:
    """Neither cases of the built-in specs, where --spec is given, nor those of own specs, where it isn't."""
    out = tmp_path / "out"
    assert cli("gen", "psamask_forward", "--suite", "demo", "--out", out, "-j", 1).code == 0
    spec.write_text(FORWARD.replace("small:", "demo:"))
    assert gen(cli, spec, out, "--prune")[1] == ""
    before = tree(out)
    again = cli("gen", "psamask_forward", "--suite", "demo", "--out", out, "-j", 1, "--prune")
    assert (again.code, again.err) == (0, "")
    spec.write_text(FORWARD.replace("small:", "demo:").replace("name: hand", "name: head"))
    planned = gen(cli, spec, out, "--prune", "--dry-run")[0].splitlines()
    assert [line for line in planned if "remove" in line] == ["would remove psamask_forward/demo/hand"]
    assert tree(out) == before
    assert gen(cli, spec, out)[1].startswith(f"{out}: 1 case is no longer made by the specs, such as ")
    assert gen(cli, spec, out, "--prune")[1].endswith("and removed, such as psamask_forward/demo/hand\n")
    assert len(list((out / "psamask_forward" / "demo").glob("*.pb"))) == 6 + 3


def test_specs_of_one_name_in_other_folders_are_other_specs(cli: Cli, spec: Path, tmp_path: Path) -> None:
    """A spec named like another one, or like a built-in one, doesn't unmake what that one made."""
    out = tmp_path / "out"
    gen(cli, spec, out)
    other = tmp_path / "others" / spec.name
    other.parent.mkdir()
    other.write_text("op: psamask_forward\nsuites:\n" + MORE.replace("more:", "small:"))
    assert gen(cli, other, out, "--prune")[1] == ""
    assert len(list(out.rglob("*.pb"))) == 4
    assert cli("gen", "psamask_forward", "--suite", "demo", "--out", out, "-j", 1).code == 0
    own = spec.with_name("psamask_forward.yaml")
    own.write_text("op: psamask_forward\nsuites:\n" + MORE.replace("more:", "demo:"))
    assert gen(cli, own, out, "--prune")[1] == ""
    moved = tmp_path / "clone" / "specs" / spec.name  # the same repository elsewhere
    moved.parent.mkdir(parents=True)
    moved.write_text(FORWARD.replace("name: hand", "name: head"))
    assert gen(cli, moved, out, "--prune")[1].endswith("and removed, such as psamask_forward/small/hand\n")


def test_cases_of_an_included_spec_are_pruned(cli: Cli, spec: Path, tmp_path: Path) -> None:
    """An own spec whose included file no longer has an entry that made cases."""
    out, part = tmp_path / "out", spec.with_name("_part.yaml")
    part.write_text("suites:\n" + MORE)
    spec.write_text("op: psamask_forward\ninclude: _part.yaml\nsuites:\n" + MORE.replace("more:", "own:"))
    gen(cli, spec, out)
    part.write_text("suites:\n" + MORE.replace("more:", "less:"))
    assert "1 case is no longer made by the specs and removed" in gen(cli, spec, out, "--prune")[1]
    assert sorted(path.parent.name for path in out.rglob("x.pb")) == ["less", "own"]


def _backward(spec: Path) -> Path:
    path = spec.with_name("backward.yaml")
    path.write_text(BACKWARD)
    return path


MORE = """  more:
    - name: x
      params: {psa_type: collect, h_mask: 1, w_mask: 1}
      inputs: {x: {shape: [1, 1, 1, 1]}}
"""


@pytest.mark.parametrize("selection", [("-k", "hand"), ("--suite", "small")])
def test_a_selection_bounds_what_is_pruned(selection: tuple[str, ...], cli: Cli, spec: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    more = FORWARD.replace("psa_type: [collect, distribute]", "psa_type: [distribute]")
    gen(cli, spec, out)
    spec.write_text(f"{more}{MORE}")
    gen(cli, spec, out)
    spec.write_text(more)
    gen(cli, spec, out, "--prune", *selection)
    left = {path.stem for path in (tmp_path / "out").rglob("*.pb")}
    assert left == {"a_collect", "a_distribute", "hand", "x"} - ({"a_collect"} if "small" in selection else set())


def test_only_files_of_ours_and_inside_are_pruned(cli: Cli, spec: Path, tmp_path: Path) -> None:
    """A folder that is a link leads outside, a completed file came from no spec, and a file of others is no case."""
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    gen(cli, spec, out)
    given = tmp_path / "given.pb"
    shutil.copy(out / "psamask_forward" / "small" / "hand.pb", given)
    spec.write_text(FORWARD.replace("name: hand", "name: head"))
    shutil.move(out / "psamask_forward" / "small", elsewhere)
    (out / "psamask_forward" / "small").symlink_to(elsewhere)
    gen(cli, spec, out, "--prune")
    assert (elsewhere / "hand.pb").exists()
    assert cli("gen", "--from", given, "--out", tmp_path / "other").code == 0
    gen(cli, spec, tmp_path / "other", "--prune")
    assert (tmp_path / "other" / "psamask_forward" / "small" / "hand.pb").exists()
