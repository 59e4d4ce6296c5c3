"""`mluops run --last-failed, --collect-only, -r`: which cases run, and what is said of those that don't."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mluops_cli.conftest import Cli
from tests.mluops_cli.execution import misbehaving
from tests.mluops_cli.execution.conftest import PLUGIN, write_psamask

WRONG = f"python:{PLUGIN}:writes_nothing"  # right but for cases with TRIGGER
RIGHT = f"python:{PLUGIN}:right"
FAILING = "psamask_forward/general/two"


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    folder = tmp_path / "cases"
    write_psamask(folder, "one")
    write_psamask(folder, "two", h_mask=misbehaving.TRIGGER)
    write_psamask(folder, "three", suite="boundary")
    return folder


def test_only_what_failed_runs_again(cases: Path, tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "out"
    assert cli("run", cases, "--impl", WRONG, "--out", out).code == 1
    again = cli("run", cases, "--impl", RIGHT, "--out", out, "--last-failed")
    assert again.code == 0
    assert "1 case in" in again.out
    assert f"{FAILING}  pass" in again.out
    nothing = cli("run", cases, "--impl", RIGHT, "--out", out, "--last-failed")
    assert (nothing.code, nothing.err) == (5, "no case is selected\n")


def test_what_failed_and_is_not_selected_is_told(cases: Path, tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "out"
    assert cli("run", cases, "--impl", WRONG, "--out", out).code == 1
    left = cli("run", cases, "-k", "one", "--impl", WRONG, "--out", out, "--last-failed")
    assert left.code == 5
    assert left.err.startswith(f"1 case more failed in {out}: not at the paths, or not selected\n")
    refused = cli("run", cases, "--out", out, "--last-failed", "--resume")
    assert refused.code == 2
    assert "--last-failed with --resume" in refused.err
    none = cli("run", cases, "--out", tmp_path / "none", "--last-failed")
    assert none.code == 2
    assert "holds no results.jsonl" in none.err
    assert not (tmp_path / "none").exists()


def test_the_selected_cases_are_printed_as_select_reads_them(cases: Path, tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "out"
    listed = cli("run", cases, "--suite", "general", "--out", out, "--collect-only")
    assert listed.code == 0
    assert listed.out == f"psamask_forward/general/one\n{FAILING}\n"
    assert listed.err == "2 cases selected, none run\n"
    assert not out.exists()
    chosen = tmp_path / "chosen.txt"
    chosen.write_text(listed.out)
    assert cli("run", cases, "--select", chosen, "--out", out, "--collect-only").out == listed.out
    assert cli("run", cases, "-k", "nothing", "--out", out, "--collect-only").code == 5


def test_reasons_are_asked_for_by_letters(cases: Path, tmp_path: Path, cli: Cli) -> None:
    write_psamask(cases, "null", suite="invalid", expect=["BAD_PARAM"], faults=["null_handle"])
    quiet, told = (cli("run", cases, "--impl", RIGHT, "--out", tmp_path / "out", *more) for more in ((), ("-rs",)))
    assert "SKIP" not in quiet.out
    assert "SKIP 1 case: " in told.out
    assert "\n  psamask_forward/invalid/null\n" in told.out
    wrong = cli("run", cases, "-rx", "--out", tmp_path / "out")
    assert wrong.code == 2
    assert "'x', expected letters of smw" in wrong.err
