"""`mluops gen` into a folder that holds cases: what hasn't changed stays."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from generators.casegen import recipes
from schemas.casefiles.reading import read_case
from tests.conftest import PROJECT
from tests.mluops_cli.commands.test_gen import FORWARD, tree
from tests.mluops_cli.conftest import Cli

OLD = 1_000_000_000  # a time of modification, seconds


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "specs" / "forward.yaml"
    path.parent.mkdir()
    path.write_text(FORWARD)
    return path


def age(out: Path) -> None:
    for path in out.rglob("*.*"):
        os.utime(path, (OLD, OLD))


def written_anew(out: Path) -> list[str]:
    """The case files that were written since `age`."""
    return sorted(
        path.stem for path in out.rglob("*") if path.suffix in (".pb", ".prototxt") and path.stat().st_mtime != OLD
    )


def gen(cli: Cli, spec: Path, out: Path, *options: object) -> tuple[str, str]:
    ran = cli("gen", "--spec", spec, "--out", out, "-j", 1, *options)
    assert ran.code == 0, ran.err
    return ran.out, ran.err


def same_as_fresh(cli: Cli, spec: Path, out: Path, *options: object) -> bool:
    fresh = out.with_name("fresh")
    shutil.rmtree(fresh, ignore_errors=True)
    gen(cli, spec, fresh, *options)
    return tree(fresh) == tree(out)


def test_what_has_not_changed_stays(cli: Cli, spec: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert "unchanged" not in gen(cli, spec, out)[0]
    before = tree(out)
    age(out)
    assert gen(cli, spec, out)[0].startswith("3 cases, 3 of them unchanged, ")
    assert (written_anew(out), tree(out)) == ([], before)


@pytest.mark.parametrize(
    ("old", "new", "made"),
    [
        ("h_mask: 1, w_mask: 3", "h_mask: 3, w_mask: 1", ["hand"]),
        ("dist: {sequence: [1, 1]}", "dist: {sequence: [2, 1]}", ["hand"]),
        ("    - name: hand", "    - name: hand\n      tags: [mine]", ["hand"]),
        ("    - name: hand", "\n    - name: hand", ["hand"]),  # its line is in the file
        ("[collect, distribute]", "[distribute]", []),
    ],
)
def test_a_changed_entry_is_made_again(
    old: str, new: str, made: list[str], cli: Cli, spec: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    gen(cli, spec, out)
    age(out)
    assert old in FORWARD
    spec.write_text(FORWARD.replace(old, new))
    gen(cli, spec, out, "--prune")
    assert written_anew(out) == made
    assert same_as_fresh(cli, spec, out)


@pytest.mark.parametrize(
    "options",
    [("--seed", 2), ("--format", "both"), ("--format", "prototxt"), ("--inline-limit", "64B"), ("--no-bounds",),
     ("--dynamic-thresholds",)],
)  # fmt: skip
def test_an_option_that_changes_bytes_makes_all_again(
    options: tuple[object, ...], cli: Cli, spec: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    gen(cli, spec, out)
    age(out)
    assert "unchanged" not in gen(cli, spec, out, *options)[0]
    assert same_as_fresh(cli, spec, out, *options)
    assert "3 of them unchanged" in gen(cli, spec, out, *options)[0]


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    "harm",
    [_flip, Path.unlink, lambda path: path.write_bytes(b""), lambda path: path.write_bytes(path.read_bytes() + b"\n")],
)
@pytest.mark.parametrize("file", ["hand.pb", "hand.in0.bin"])
def test_a_file_that_was_harmed_is_made_again(harm: Any, file: str, cli: Cli, spec: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ("--inline-limit", "8B") if file.endswith(".bin") else ()
    gen(cli, spec, out, *options)
    before = tree(out)
    age(out)
    (path,) = out.rglob("hand.pb" if file == "hand.pb" else "hand.in0*.bin")
    harm(path)
    assert "2 of them unchanged" in gen(cli, spec, out, *options)[0]
    assert (written_anew(out), tree(out)) == (["hand"], before)


def test_other_source_makes_all_again(cli: Cli, spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    gen(cli, spec, out)
    key = gen(cli, spec, out, "--print-key")
    monkeypatch.setattr(recipes, "_own_source", lambda: "other")
    recipes._source.cache_clear()
    assert gen(cli, spec, out, "--print-key") != key
    assert "unchanged" not in gen(cli, spec, out)[0]
    monkeypatch.undo()
    recipes._source.cache_clear()
    assert gen(cli, spec, out, "--print-key") == key


@pytest.mark.slow
def test_every_source_file_counts(tmp_path: Path) -> None:
    """A reference kernel, the wire format and the descriptor: whatever is changed, the key is another one."""
    for package in ("schemas", "generators", "mluops_cli", "cases"):
        shutil.copytree(PROJECT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))

    def key() -> str:
        command = [sys.executable, "-m", "mluops_cli", "gen", "psamask_forward", "--suite", "demo", "--print-key"]
        env = os.environ | {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(command, cwd=tmp_path, env=env, check=True, capture_output=True, text=True).stdout

    keys = [key()]
    for name in ("generators/operators/psamask.py", "schemas/wire/value_fields.py", "mluops_cli/main.py"):
        with (tmp_path / name).open("a") as file:
            file.write("# changed\n")
        keys.append(key())
    assert len(set(keys)) == 3
    assert keys[2] == keys[3]  # the command line decides no byte


PLUGIN = """
import numpy as np
from generators import Contract, Criterion, Operator, TensorSpec
from helper import FACTOR


class Scale(Operator):
    contract = Contract(
        op="scale",
        category="pure_io",
        inputs=(TensorSpec("x", ("float",), "ARRAY", "N", values={"uniform": [1, 2]}),),
        outputs=(TensorSpec("y", ("float",), "ARRAY", "N", criteria=(Criterion("diff3", 0.0, "a product"),)),),
        zero_elements={"N": "SUCCESS"},
        theory_ops="0",
        source="a test",
    )

    def reference(self, inputs, env):
        return {"y": inputs["x"] * np.float32(FACTOR)}


OPERATORS = (Scale,)
"""
SCALE = "op: scale\nsuites:\n  s:\n    - {name: a, inputs: {x: {shape: [4]}}}\n"


def test_the_source_of_an_operator_of_others_counts_with_what_it_imports(spec: Path, tmp_path: Path) -> None:
    (tmp_path / "plugin.py").write_text(PLUGIN)
    (tmp_path / "unused.py").write_text("")
    spec.write_text(SCALE)

    def run(factor: int) -> str:
        (tmp_path / "helper.py").write_text(f"FACTOR = {factor}\n")
        (tmp_path / "unused.py").write_text(f"{factor}\n")
        # -B: a file that is written again within a second has the compiled module of the first time
        command = [sys.executable, "-B", "-m", "mluops_cli", "gen", "--spec", str(spec), "--plugin", "plugin.py"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        with read_case(tmp_path / "mluops-cases" / "scale" / "s" / "a.pb") as file:
            ratio = file.outputs[0].array() / file.inputs[0].array()
        assert ratio.round().tolist() == [factor] * 4
        return str(done.stdout)

    assert "unchanged" not in run(2)
    assert "1 of them unchanged" in run(2)
    assert "unchanged" not in run(3)


def test_packages_beside_an_operator_s_do_not_count(tmp_path: Path) -> None:
    """Neither those that are installed in the same folder, nor those of a virtual environment beside a plug-in."""
    installed = tmp_path / ".venv" / "lib" / "site-packages"
    for package in ("acme", "neighbour"):
        (installed / package).mkdir(parents=True)
        (installed / package / "__init__.py").write_text("")
    (installed / "acme" / "helper.py").write_text("FACTOR = 2\n")
    for file, helper in ((installed / "acme" / "ops.py", "acme.helper"), (tmp_path / "plugin.py", "acme.helper")):
        file.write_text(PLUGIN.replace("from helper", f"import neighbour\nfrom {helper}"))
    (tmp_path / "specs").mkdir()
    spec = tmp_path / "specs" / "scale.yaml"
    spec.write_text(SCALE)
    (tmp_path / "of_package.py").write_text("from acme.ops import OPERATORS\n")
    env = os.environ | {"PYTHONPATH": os.pathsep.join((str(PROJECT), str(installed))), "PYTHONDONTWRITEBYTECODE": "1"}

    def key(plugin: str) -> str:
        command = [sys.executable, "-m", "mluops_cli", "gen", "--spec", str(spec), "--plugin", plugin, "--print-key"]
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True).stdout

    before = {plugin: key(plugin) for plugin in ("plugin.py", "of_package.py")}
    (installed / "neighbour" / "__init__.py").write_text("changed = True\n")
    assert {plugin: key(plugin) for plugin in before} == before
    (installed / "acme" / "helper.py").write_text("FACTOR = 3\n")
    assert key("of_package.py") != before["of_package.py"]


def test_the_key_changes_with_what_decides_the_files(cli: Cli, spec: Path, tmp_path: Path) -> None:
    key = gen(cli, spec, tmp_path / "a", "--print-key")
    assert key[1] == ""
    assert len(key[0]) == 33
    assert set(key[0]) <= set("0123456789abcdef\n")
    assert not (tmp_path / "a").exists()
    moved = Path(shutil.move(spec.parent, tmp_path / "moved")) / spec.name
    assert gen(cli, moved, tmp_path / "b", "--print-key", "-j", 2) == key
    others = [("--seed", 2), ("--format", "both"), ("--no-bounds",), ("--inline-limit", 1), ("-k", "hand")]
    keys = {gen(cli, moved, tmp_path / "a", "--print-key", *options)[0] for options in others}
    moved.write_text(FORWARD.replace("sequence: [1, 1]", "sequence: [1, 2]"))
    keys.add(gen(cli, moved, tmp_path / "a", "--print-key")[0])
    assert len(keys | {key[0]}) == 7


@pytest.mark.parametrize("option", ["--prune", "--print-key"])
def test_existing_files_have_no_key_and_nothing_to_prune(option: str, cli: Cli, spec: Path) -> None:
    ran = cli("gen", "--from", spec.parent, option)
    assert ran.code == 2
    assert "--from takes files as they are: --prune and --print-key can't be given with it" in ran.err
