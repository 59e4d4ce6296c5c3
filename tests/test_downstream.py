"""A package of another author: built, installed beside our wheel, generated, run, documented, and linted."""

from __future__ import annotations

import json
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import generators
import mluops_cli
from tests.conftest import PROJECT, build_wheel

pytestmark = pytest.mark.checkout

PACKAGE = PROJECT / "tests" / "downstream"
DESIGNED = [(generators, "generators"), (mluops_cli, "mluops_cli")]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """The interpreter of a fresh environment with both wheels; third-party packages are those of this one."""
    folder = tmp_path_factory.mktemp("downstream")
    theirs = build_wheel(PACKAGE, folder / "dist")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    made = folder / "venv" / "bin" / "python"
    ask = [str(made), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = Path(subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip())
    wheels = (str(wheel), str(theirs))
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), *wheels]
    subprocess.run(install, check=True, capture_output=True)
    (site / "third_party.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return made


def mluops(python: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the installed command line, away from the checkout."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [str(python), "-m", "mluops_cli", *arguments]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)


def statuses(out: Path) -> dict[str, str]:
    """Case -> status of a run."""
    lines = (out / "results.jsonl").read_text(encoding="utf-8").splitlines()
    return {record["case"]: record["status"] for record in map(json.loads, lines)}


def test_its_cases_are_generated_run_and_judged(python: Path, tmp_path: Path) -> None:
    generated = mluops(python, "gen", "tile_rows", "--out", "cases", cwd=tmp_path)
    assert generated.returncode == 0, generated.stderr
    right = mluops(python, "run", "cases", "--impl", "acme", "--out", "right", cwd=tmp_path)
    assert right.returncode == 0, right.stdout + right.stderr
    found = statuses(tmp_path / "right")
    assert sum(case.startswith("tile_rows/small/") for case in found) == 6
    assert {status for case, status in found.items() if "/small/" in case} == {"pass"}
    assert set(found.values()) == {"pass", "skip"}
    broken = mluops(python, "run", "cases", "--impl", "acme:broken", "--suite", "small", "--out", "bad", cwd=tmp_path)
    assert broken.returncode == 1
    assert set(statuses(tmp_path / "bad").values()) == {"fail"}


def test_its_operator_is_listed_and_documented(python: Path, tmp_path: Path) -> None:
    listed = mluops(python, "list", "tile_rows", cwd=tmp_path)
    assert re.search(r"^tile_rows +small +6 ", listed.stdout, re.MULTILINE), listed.stderr
    documented = mluops(python, "docs", "tile_rows", "--out", "pages", cwd=tmp_path)
    assert documented.returncode == 0, documented.stderr
    page = (tmp_path / "pages" / "tile_rows.md").read_text(encoding="utf-8")
    assert "`[times*N, C]`" in page
    assert (PACKAGE / "acme_ops" / "tile_rows.md").read_text(encoding="utf-8") in page
    known = mluops(python, "implementations", cwd=tmp_path)
    assert re.search(r"^acme\b", known.stdout, re.MULTILINE)


def test_an_error_of_its_operator_names_the_case(python: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(
        "op: tile_rows\nsuites:\n  s:\n    - {name: odd, inputs: {x: {shape: [13, 2]}}, params: {times: 1}}\n"
    )
    ran = mluops(python, "gen", "--spec", "bad.yaml", "--out", "cases", cwd=tmp_path)
    assert ran.returncode == 2
    assert "x has 13 rows, expected any other number" in ran.stderr
    assert "bad.yaml:4" in ran.stderr


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """The package's own lint, with its own settings."""
    return subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", str(folder)], capture_output=True, text=True, check=False
    )


def test_its_lint_passes_and_finds_a_private_import(tmp_path: Path) -> None:
    copy = tmp_path / "downstream"
    shutil.copytree(PACKAGE, copy)
    clean = lint(copy)
    assert clean.returncode == 0, clean.stdout
    module = copy / "acme_ops" / "operators.py"
    text = module.read_text(encoding="utf-8")
    planted = "from generators.contracts.model import UNKNOWN  # noqa: F401\nfrom generators import"
    module.write_text(text.replace("from generators import", planted, 1), encoding="utf-8")
    found = lint(copy)
    assert found.returncode == 1
    assert "TID251" in found.stdout


def test_its_lint_knows_every_private_module() -> None:
    banned = set(
        re.findall(r'^"([\w.]+)"\.msg', (PACKAGE / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    )
    below = {f"{name}.{each.name}" for package, name in DESIGNED for each in pkgutil.iter_modules(package.__path__)}
    for_tests = {"mluops_cli.pytest_plugin"}  # docs/pytest.md names it for annotations and for -W
    assert banned == (below - for_tests) | {"schemas", "cases"}


def test_it_imports_the_public_interfaces_alone() -> None:
    imported = set()
    for path in (PACKAGE / "acme_ops").glob("*.py"):
        imported |= set(re.findall(r"^from ([\w.]+) import|^import ([\w.]+)", path.read_text(), re.MULTILINE))
    names = {first or second for first, second in imported}
    assert names == {"__future__", "pathlib", "numpy", "generators", "mluops_cli"}
