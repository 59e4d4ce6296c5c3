"""pytest in a folder of its own, with the plug-in.

The fixture pytester is not used: it forgets what a test has imported, and protobuf crashes when it is loaded twice.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import NoReturn

import pytest

# Loaded before a fork, which then need not load it.
import mluops_cli.implementations.tiled.psamask
import mluops_cli.pytest_plugin.case_files
import mluops_cli.reports.console  # noqa: F401
from generators.operator_registry import operators
from tests.conftest import PROJECT

# The option for an installation without the entry point; with it the option means the same plug-in.
PLUGIN = ("-p", "mluops_cli.pytest_plugin")
RunPytest = Callable[..., pytest.RunResult]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, in which kernels.py is; processes that a test starts find the source of the checkout."""
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    inside = tmp_path / "inside"  # the folders of the run lie beside it
    inside.mkdir()
    shutil.copy(PROJECT / "tests" / "mluops_cli" / "pytest_plugin" / "kernels.py", inside)
    monkeypatch.chdir(inside)
    return inside


def write(folder: Path, **modules: str) -> None:
    """Write Python modules by name."""
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(dedent(text), encoding="utf-8")


@pytest.fixture
def run_pytest(folder: Path) -> RunPytest:
    """Run `pytest ARGUMENTS...` in the folder, in a fork: that takes a tenth of the time of a new process."""
    operators()

    def run(*arguments: str, cache: bool = False) -> pytest.RunResult:
        own = PLUGIN if cache else (*PLUGIN, "-p", "no:cacheprovider")
        # Warnings are errors in this process, and the plug-in is imported in it; that of hypothesis takes 0.2 s.
        quiet = ("-p", "no:hypothesispytest", "-W", "default", "-W", "ignore:Module already imported")
        return _forked(*own, *quiet, "--strict-markers", f"--basetemp={folder.parent / 'base'}", *arguments)

    return run


def run_process(folder: Path, *arguments: str) -> pytest.RunResult:
    """Run `pytest ARGUMENTS...` in the folder, in a new process."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "pytest", f"--basetemp={folder.parent / 'base'}", *arguments]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    out, err = ran.stdout.splitlines(), ran.stderr.splitlines()
    return pytest.RunResult(ran.returncode, out, err, time.perf_counter() - start)


def _forked(*arguments: str) -> pytest.RunResult:
    start = time.perf_counter()
    printed = [os.memfd_create(name) for name in ("stdout", "stderr")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads: none of them is of ours
        child = os.fork()
    if not child:
        _be_pytest(arguments, printed)
    _, status = os.waitpid(child, 0)
    out, err = map(_lines, printed)
    return pytest.RunResult(os.waitstatus_to_exitcode(status), out, err, time.perf_counter() - start)


def _lines(memory: int) -> list[str]:
    os.lseek(memory, 0, os.SEEK_SET)
    with open(memory, encoding="utf-8") as file:
        return file.read().splitlines()


def _be_pytest(arguments: tuple[str, ...], printed: list[int]) -> NoReturn:
    code = 70
    try:
        for number, memory in enumerate(printed, start=1):
            os.dup2(memory, number)
        with (
            open(1, "w", encoding="utf-8", closefd=False) as sys.stdout,
            open(2, "w", encoding="utf-8", closefd=False) as sys.stderr,
        ):
            code = int(pytest.main([*arguments]))
    finally:
        os._exit(code)
