"""The cases that the faulty implementations are run on, and the command line that makes them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import MadeOnce
from tests.faulty.catalogue import SUITES

Cases = Callable[[str], list[Path]]  # operator -> the files of its small suites


def mluops(*arguments: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mluops_cli", *map(str, arguments)], capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="session")
def cases(made_once: MadeOnce) -> Cases:
    """op -> the files of its small suites."""

    def files(op: str) -> list[Path]:
        def make(folder: Path) -> None:
            result = mluops("gen", op, "--suite", ",".join(SUITES), "--out", folder, "-j", 1)
            assert result.returncode == 0, result.stderr

        return sorted(made_once(f"faults_{op}", make).rglob("*.pb"))

    return files
