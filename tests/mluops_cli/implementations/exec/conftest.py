"""Programs for `exec:`, and a folder for temporary files of their own."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from schemas.casefiles.reading import read_case
from tests.conftest import PROJECT

EXAMPLE = PROJECT / "examples" / "exec_python" / "psamask.py"


def node_of(path: Path) -> Any:
    """The Node of a case file, as the runner puts it into a call."""
    with read_case(path) as case:
        return case.node


def scratch_directories() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("*mluops-exec-*"))


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], str]:
    """A command that runs this Python source with what follows it."""

    def write(source: str) -> str:
        path = tmp_path / f"program_{len(list(tmp_path.iterdir()))}.py"
        path.write_text(source)
        return f"{sys.executable} {path}"

    return write


@pytest.fixture(autouse=True)
def _own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scratch directories of other runs on this machine must not count."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
