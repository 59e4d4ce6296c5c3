"""An unused plug-in costs next to nothing, and it is there once, whoever loads it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import PROJECT
from tests.mluops_cli.pytest_plugin.conftest import PLUGIN, run_process, write


def test_an_unused_plugin_imports_nothing(folder: Path) -> None:
    write(
        folder,
        test_it="""
        import sys

        def test_it():
            ours = {name for name in sys.modules if name.split(".")[0] in ("mluops_cli", "generators", "schemas")}
            assert ours == {"mluops_cli", "mluops_cli.pytest_plugin"}
            assert not {"numpy", "click", "rich", "google.protobuf"} & sys.modules.keys()
        """,
    )
    # Of the other plug-ins of this environment some import much.
    run = [sys.executable, "-m", "pytest", *PLUGIN, "-p", "no:cacheprovider", "-q"]
    others = ["-p", "no:syrupy", "-p", "no:pytest_cov"]
    ran = subprocess.run([*run, *others], cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.checkout
def test_the_project_declares_the_entry_point() -> None:
    text = (PROJECT / "pyproject.toml").read_text(encoding="utf-8")
    section = text.split("[project.entry-points.pytest11]\n")[1].split("\n[")[0]
    assert '"mluops_cli.pytest_plugin" = "mluops_cli.pytest_plugin"' in section.splitlines()


@pytest.mark.slow
def test_the_entry_point_and_the_option_load_it_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution beside the tests has the entry point, as an installed wheel does."""
    info = folder / "site" / "entry-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: entry\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[pytest11]\nmluops_cli.pytest_plugin = mluops_cli.pytest_plugin\n")
    (info / "RECORD").write_text("")
    monkeypatch.syspath_prepend(info.parent)
    monkeypatch.setenv("PYTHONPATH", f"{info.parent}:{PROJECT}")
    write(
        folder,
        test_it="import pytest\n@pytest.mark.mluops('psamask_forward', suite='demo')\n"
        "def test_it(mluops_case, pytestconfig):\n"
        "    names = [name for name, _ in pytestconfig.pluginmanager.list_name_plugin() if 'mluops' in name]\n"
        "    assert names == ['mluops_cli.pytest_plugin']\n",
    )
    for arguments in ((), PLUGIN):
        run_process(folder, *arguments, "-k", "square_collect").assert_outcomes(passed=1, deselected=5)


def test_the_tool_needs_no_pytest() -> None:
    code = (
        "import sys; sys.modules['pytest'] = None; from mluops_cli.main import main; main(['list', 'psamask_forward'])"
    )
    subprocess.run([sys.executable, "-c", code], cwd=PROJECT, check=True, capture_output=True)
