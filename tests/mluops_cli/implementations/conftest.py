"""Suites of case files that several implementations are run on, and the run itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mluops_cli.main import main
from tests.conftest import MadeOnce
from tests.mluops_cli.execution.conftest import run

__all__ = ["run"]

SMALL = "demo,boundary,general,nan_inf,zero_element,invalid"


@pytest.fixture(scope="session")
def suites(made_once: MadeOnce) -> Path:
    """The small suites of all operators."""

    def make(out: Path) -> None:
        with pytest.raises(SystemExit) as stop:
            main(["gen", "--suite", SMALL, "--out", str(out), "-j", "1"])
        assert stop.value.code == 0

    return made_once("suites", make)


@pytest.fixture(scope="session")
def small(made_once: MadeOnce) -> Callable[[str], Path]:
    """The small suites of one operator."""

    def make(op: str, out: Path) -> None:
        with pytest.raises(SystemExit) as stop:
            main(["gen", op, "--suite", SMALL, "--out", str(out), "-j", "1"])
        assert stop.value.code == 0

    return lambda op: made_once(f"small-{op}", lambda out: make(op, out))
