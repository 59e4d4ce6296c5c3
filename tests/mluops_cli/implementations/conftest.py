"""Suites of case files that several implementations are run on, and the run itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from mluops_cli.main import main
from tests.mluops_cli.execution.conftest import run

__all__ = ["run"]


@pytest.fixture(scope="session")
def suites(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small suites of all operators."""
    out = tmp_path_factory.mktemp("suites")
    with pytest.raises(SystemExit) as stop:
        main(["gen", "--suite", "demo,boundary,general,nan_inf,zero_element,invalid", "--out", str(out), "-j", "1"])
    assert stop.value.code == 0
    return out
