"""Loading foreign code: the process stays as it was (E1), and a broken one is named (B9)."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import PROJECT
from tests.mluops_cli.execution.conftest import write_psamask

# Sets a locale with a decimal comma, another folder, and an error for every overflow.
SETS = """
import locale, os
import numpy as np
locale.setlocale(locale.LC_ALL, "de_DE.utf8")
os.chdir("/")
np.seterr(all="raise")
"""


@pytest.fixture(scope="module")
def comma(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which de_DE.utf8 can be set, whatever the machine has installed."""
    folder = tmp_path_factory.mktemp("locales")
    if shutil.which("localedef") is None or not Path("/usr/share/i18n/locales/de_DE").exists():
        pytest.skip("needs localedef and its sources")
    subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", str(folder / "de_DE.utf8")], check=True)
    return {**os.environ, "LOCPATH": str(folder), "PYTHONPATH": str(PROJECT)}


def mluops(folder: Path, environment: dict[str, str], *arguments: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mluops_cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)


def test_e1_a_plug_in_with_a_decimal_comma(comma: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "sets.py").write_text(SETS)
    write_psamask(tmp_path / "cases", "case")
    made = mluops(tmp_path, comma, "gen", "psamask_forward", "--suite", "demo", "--plugin", "sets.py", "--out", "made")
    assert made.returncode == 0, made.stderr
    assert list((tmp_path / "made").rglob("*.pb"))  # in the folder the command was given in
    ran = mluops(tmp_path, comma, "run", "cases", "--plugin", "sets.py", "--out", "out", "-j", "1")
    assert ran.returncode == 0, ran.stdout + ran.stderr


OPERATOR = """
import os, sys, warnings
from google.protobuf import descriptor_pb2, descriptor_pool
warnings.simplefilter("error")
os.umask(0o077)
print("acme operators loaded")
for name in ("mluoptest.proto", "mluops.proto"):  # another version of the interface, in the pool of all
    file = descriptor_pb2.FileDescriptorProto(name=name, package=name.partition(".")[0], syntax="proto2")
    for message in ("Node", "Tensor", "CaseMeta"):
        file.message_type.add(name=message)
    descriptor_pool.Default().AddSerializedFile(file.SerializeToString())
from generators import Contract, Operator, TensorSpec
class Copy(Operator):
    contract = Contract("acme_copy", "pure_io", (TensorSpec("x", ("float",), "ARRAY", "N"),),
                        (TensorSpec("y", ("float",), "ARRAY", "N"),))
    def reference(self, inputs, env):
        return {"y": inputs["x"]}
"""


def test_e1_an_operator_of_a_package_that_sets_everything(comma: dict[str, str], tmp_path: Path) -> None:
    """Its module is imported with the first look at the operators, before any case is read."""
    entry_point(tmp_path, "acme_ops", "mluops.operators", "acme_copy = acme_ops:Copy", SETS + OPERATOR)
    environment = comma | {"PYTHONPATH": f"{PROJECT}{os.pathsep}{tmp_path}"}
    made = mluops(tmp_path, environment, "gen", "roi_crop_forward", "--suite", "demo,nan_inf", "--out", "made", "-j", 1)
    assert made.returncode == 0, made.stderr
    cases = sorted((tmp_path / "made").rglob("*.pb"))
    assert {stat.S_IMODE(path.stat().st_mode) for path in cases} == {0o644}
    checked = mluops(tmp_path, environment, "check", "made", "--json")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert json.loads(checked.stdout)["files"] == len(cases)
    assert "acme operators loaded" in checked.stderr
    ran = mluops(tmp_path, environment, "run", "made", "--impl", "reference", "--out", "out", "-j", "1")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "acme_copy" in mluops(tmp_path, environment, "doctor").stdout


@pytest.mark.parametrize("where", ["at its import", "in its call"])
def test_e1_a_kernel_with_a_decimal_comma(where: str, comma: dict[str, str], tmp_path: Path) -> None:
    setting = "def set_all():\n" + "".join(f"    {line}\n" for line in SETS.splitlines())
    source = setting + ("set_all()\n" if where == "at its import" else "")
    source += "from mluops_cli.search.faulty_kernels.psamask import right\ndef kernel(*arguments, **keywords):\n"
    source += ("    set_all()\n" if where == "in its call" else "") + "    return right(*arguments, **keywords)\n"
    (tmp_path / "kernel.py").write_text(source)
    for name in ("first", "second"):
        write_psamask(tmp_path / "cases", name)
    ran = mluops(tmp_path, comma, "run", "cases", "--impl", "python:kernel.py:kernel", "--out", "out", "-j", "1")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def entry_point(folder: Path, package: str, group: str, lines: str, source: str) -> None:
    """An installed package that registers entry points."""
    (folder / f"{package}.py").write_text(source)
    metadata = folder / f"{package}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{lines}\n")


GOOD = """
from mluops_cli import Implementation, Outcome
class Good(Implementation):
    name = "good"
    def call(self, call):
        return Outcome()
class Hostile(Good):
    name = "hostile"
    @classmethod
    def operators(cls):
        raise RuntimeError("no driver")
"""


BROKEN = {  # name of the implementation -> source of its package, what is said of it
    "raises": ("raise RuntimeError('no card')", "RuntimeError: no card"),
    "lacks": ("import no_such_package_at_all", "No module named 'no_such_package_at_all'"),
    "cut": ("def broken(:", "SyntaxError"),
    "exits": ("raise SystemExit(0)", "SystemExit: 0"),
    "number": ("broken = 5", "is 5, expected a named subclass of Implementation"),
    "empty": ("", "AttributeError"),
}


@pytest.mark.slow
def test_b9_broken_entry_points_are_named_and_the_others_work(tmp_path: Path) -> None:
    for name, (source, _) in BROKEN.items():
        entry_point(tmp_path, f"{name}_package", "mluops.implementations", f"{name} = {name}_package:broken", source)
    good = "good = good_package:Good\nhostile = good_package:Hostile"
    entry_point(tmp_path, "good_package", "mluops.implementations", good, GOOD)
    environment = {**os.environ, "PYTHONPATH": f"{PROJECT}{os.pathsep}{tmp_path}", "COLUMNS": "500"}
    listed = mluops(tmp_path, environment, "implementations")
    assert listed.returncode == 0, listed.stderr
    lines = {line.split()[0]: " ".join(line.split()) for line in listed.stdout.splitlines()}
    assert [name for name, (_, problem) in BROKEN.items() if problem not in lines[name]] == []
    assert lines["good"].startswith("good yes")
    assert "raised RuntimeError: no driver" in lines["hostile"]
    assert lines["tiled"].startswith("tiled (default) yes")
    case = write_psamask(tmp_path / "cases", "case")
    assert mluops(tmp_path, environment, "run", case, "--impl", "tiled", "--out", "out").returncode == 0
    for name in ("raises", "exits", "number"):
        ran = mluops(tmp_path, environment, "run", case, "--impl", name, "--out", "out")
        assert ran.returncode == 3
        assert BROKEN[name][1] in ran.stderr
        assert "Traceback" not in ran.stderr


def test_a_name_of_a_file_that_no_file_system_takes(tmp_path: Path, run: Callable[..., Any]) -> None:
    target = f"{tmp_path}/{'long' * 100}.py"
    ran = run(write_psamask(tmp_path / "cases", "case"), "--impl", f"python:{target}:kernel")
    assert (ran.code, f"no such Python file: {target}" in ran.err) == (2, True)


@pytest.mark.parametrize("where", ["kernel", "kernel.Kernel"])
def test_an_exception_without_a_readable_text_names_the_line(
    where: str, tmp_path: Path, run: Callable[..., Any]
) -> None:
    (tmp_path / "kernel.py").write_text(
        "class Mute(Exception):\n"
        "    def __str__(self): raise KeyError\n"
        "class Kernel:\n"
        "    def __init__(self): raise Mute\n" + ("raise Mute\n" if where == "kernel" else "")
    )
    ran = run(write_psamask(tmp_path / "cases", "case"), "--impl", f"python:{tmp_path}/kernel.py:Kernel")
    assert ran.code == 2
    assert "Mute: an exception without a readable text (" in ran.err
    assert f"kernel.py:{5 if where == 'kernel' else 4})" in ran.err


def test_b9_two_packages_with_one_name(tmp_path: Path) -> None:
    for package in ("one_package", "other_package"):
        entry_point(tmp_path, package, "mluops.implementations", f"good = {package}:Good", GOOD)
    environment = {**os.environ, "PYTHONPATH": f"{PROJECT}{os.pathsep}{tmp_path}", "COLUMNS": "500"}
    listed = mluops(tmp_path, environment, "implementations")
    assert listed.returncode == 0
    assert "is registered by one_package and other_package" in listed.stdout


@pytest.mark.parametrize("listed", ["5", "(5,)", "'Good'", "(dict,)"])
def test_b9_a_plug_in_with_other_implementations(listed: str, tmp_path: Path, run: Callable[..., Any]) -> None:
    (tmp_path / "plugin.py").write_text(f"IMPLEMENTATIONS = {listed}\n")
    ran = run(write_psamask(tmp_path / "cases", "case"), "--plugin", tmp_path / "plugin.py")
    assert ran.code == 2
    assert "plugin.py: IMPLEMENTATIONS" in ran.err


def test_an_implementation_is_closed_when_its_worker_ends(tmp_path: Path, run: Callable[..., Any]) -> None:
    (tmp_path / "plugin.py").write_text(
        "import os, pathlib\n"
        "from mluops_cli import Implementation, Outcome\n"
        "class Held(Implementation):\n"
        "    name = 'held'\n"
        "    def call(self, call): return Outcome('NOT_SUPPORTED')\n"
        f"    def close(self): (pathlib.Path({str(tmp_path)!r}) / 'closed').touch()\n"
        "IMPLEMENTATIONS = (Held,)\n"
    )
    run(write_psamask(tmp_path / "cases", "case"), "--plugin", tmp_path / "plugin.py", "--impl", "held")
    assert (tmp_path / "closed").exists()
