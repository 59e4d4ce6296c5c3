"""The walk-through of docs/finding-faults.md does what the page says, command by command, file by file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from mluops_cli.search.mutation.records import read_mutants
from tests.mluops_cli.conftest import Cli
from tests.mluops_cli.tutorials.page import blocks, follow

PAGE: Final = "finding-faults.md"


@pytest.mark.slow
def test_the_walk_through(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    follow(PAGE, tmp_path, cli)
    _, entry = blocks(PAGE, "yaml")
    found = (tmp_path / "found.yaml").read_text(encoding="utf-8")
    assert "\n".join(entry.splitlines()[1:]) in found, "the finding isn't the one that the page shows"
    (survivor,) = blocks(PAGE, "text")
    mutants = read_mutants(tmp_path / "mutants")["psamask_forward"].mutants.values()
    assert survivor.splitlines() in [each.diff for each in mutants if each.survives and each.shown_by]
