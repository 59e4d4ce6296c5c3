"""The built wheel is what users get: it must work from another folder, with its cases and schemas."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.checkout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """A folder that holds the built wheel's packages and nothing of the checkout."""
    target = tmp_path_factory.mktemp("installed") / "site"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    return target


def mluops(installed: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the installed wheel, whose packages come before those of the checkout."""
    env = {**os.environ, "PYTHONPATH": str(installed), "PYTHONSAFEPATH": "1"}
    return subprocess.run(
        [sys.executable, "-m", "mluops_cli", *arguments], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )


def test_the_installed_wheel_generates_and_runs(installed: Path, tmp_path: Path) -> None:
    # Folders of the user's own with our modules' names must not get in the way.
    for name in ("cases", "schemas", "generators"):
        (tmp_path / name).mkdir()
    generated = mluops(installed, "gen", "psamask_forward", "--suite", "demo", "--out", "d", cwd=tmp_path)
    assert generated.returncode == 0, generated.stderr
    run = mluops(installed, "run", "d", "--out", "r", cwd=tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    summary = json.loads((tmp_path / "r" / "summary.json").read_text(encoding="utf-8"))
    assert summary["counts"]["pass"] > 0


def test_the_wheel_is_what_runs(installed: Path, tmp_path: Path) -> None:
    code = (
        "import schemas as s, generators as g, cases as c, mluops_cli as m; print(*(x.__file__ for x in (s, g, c, m)))"
    )
    env = {**os.environ, "PYTHONPATH": str(installed)}
    printed = subprocess.run(
        [sys.executable, "-P", "-c", code] if sys.version_info >= (3, 11) else [sys.executable, "-c", code],
        cwd=tmp_path, env=env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert all(Path(file).is_relative_to(installed) for file in printed.stdout.split())


def test_the_wheel_holds_only_the_four_packages(installed: Path) -> None:
    found = {path.name for path in installed.iterdir() if not path.name.endswith(".dist-info")} - {"bin"}
    assert found == {"schemas", "generators", "cases", "mluops_cli"}
    assert sorted((installed / "cases").glob("*.yaml")), "the specs travel with the wheel"
    assert list((installed / "schemas" / "protos").glob("*.desc")), "the descriptor travels with the wheel"
