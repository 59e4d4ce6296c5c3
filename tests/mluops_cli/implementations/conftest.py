"""Suites of case files that several implementations are run on, and the run itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from mluops_cli.main import main
from tests.conftest import MadeOnce
from tests.mluops_cli.execution.conftest import run

__all__ = ["run"]


@pytest.fixture(scope="session")
def suites(made_once: MadeOnce) -> Path:
    """The small suites of all operators."""

    def make(out: Path) -> None:
        with pytest.raises(SystemExit) as stop:
            main(["gen", "--suite", "demo,boundary,general,nan_inf,zero_element,invalid", "--out", str(out), "-j", "1"])
        assert stop.value.code == 0

    return made_once("suites", make)
