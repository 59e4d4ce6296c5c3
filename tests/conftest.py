"""What all tests share: the material beside the project, if it is there, and folders that are made once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

PROJECT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of public material beside the project; tests that read it skip where it is missing."""
    folder = PROJECT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("needs the folder shared/ beside the project")
    return folder


MadeOnce = Callable[[str, Callable[[Path], object]], Path]


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> MadeOnce:
    """(name, make) -> the folder of that name, made by the first test worker that asks for it; it is for reading."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent

    def folder(name: str, make: Callable[[Path], object]) -> Path:
        made, done = shared / "made" / name, shared / f"{name}.done"
        with FileLock(shared / f"{name}.lock"):
            if not done.exists():
                made.mkdir(parents=True, exist_ok=True)
                make(made)
                done.touch()
        return made

    return folder


def build_wheel(source: Path, folder: Path) -> Path:
    """The wheel of a project, built into the folder."""
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(source)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="session")
def wheel(made_once: MadeOnce) -> Path:
    """Our own wheel."""
    (built,) = made_once("wheel", lambda folder: build_wheel(PROJECT, folder)).glob("*.whl")
    return built
