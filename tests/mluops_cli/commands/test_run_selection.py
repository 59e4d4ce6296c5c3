"""`mluops run --last-failed, --collect-only, -r`: which cases run, and what is said of those that don't."""

from __future__ import annotations

from pathlib import Path

import pytest

from mluops_cli.results.finished import read_run
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


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """A kernel that is wrong for cases with TRIGGER; its last line can be changed to mend it."""
    return write_kernel(tmp_path / "kernel.py", "writes_nothing")


def write_kernel(file: Path, name: str) -> Path:
    file.write_text(f"import sys\nsys.path.insert(0, {str(PLUGIN.parent)!r})\nfrom misbehaving import {name} as f\n")
    return file


def statuses(out: Path) -> dict[str, str]:
    return {record.case.removeprefix("psamask_forward/"): record.status for record in read_run(out).records}


def test_only_what_failed_runs_again_and_other_results_stay(
    cases: Path, kernel: Path, tmp_path: Path, cli: Cli
) -> None:
    out = tmp_path / "out"
    run = ("run", cases, "--impl", f"python:{kernel}:f", "--out", out)
    assert cli(*run).code == 1
    assert [*out.glob("failures/**/*.pb")]
    write_kernel(kernel, "right")
    again = cli(*run, "--last-failed")
    assert again.code == 0
    assert "3 cases in" in again.out
    assert "2 of them finished before" in again.out
    assert f"{FAILING}  pass" in again.out
    assert statuses(out) == {"general/one": "pass", "general/two": "pass", "boundary/three": "pass"}
    assert not [*out.glob("failures/**/*.pb")]
    nothing = cli(*run, "--last-failed")
    assert (nothing.code, nothing.err) == (5, f"no case of the run in {out} failed\n")


def test_failures_that_are_not_run_again_stay(cases: Path, kernel: Path, tmp_path: Path, cli: Cli) -> None:
    write_psamask(cases, "four", h_mask=misbehaving.TRIGGER)
    out = tmp_path / "out"
    run = ("run", cases, "--impl", f"python:{kernel}:f", "--out", out)
    assert cli(*run).code == 1
    write_kernel(kernel, "right")
    again = cli(*run, "--last-failed", "-k", "two", "--max-fail", "1")
    assert again.code == 1
    assert statuses(out) == {
        "general/one": "pass",
        "general/two": "pass",
        "general/four": "fail",
        "boundary/three": "pass",
    }
    assert [path.name for path in out.glob("failures/**/*.pb")] == ["four.pb"]
    assert cli("gate", out).code == 1


def test_cases_that_never_ran_still_count_as_not_run(cases: Path, kernel: Path, tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "out"
    run = ("run", cases, "--impl", f"python:{kernel}:f", "--out", out, "-j", "1")
    write_psamask(cases, "zero")  # the last one
    assert cli(*run, "--max-fail", "1").code == 1
    assert read_run(out).not_run == 1
    write_kernel(kernel, "right")
    assert cli(*run, "--last-failed").code == 0
    assert read_run(out).not_run == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [(("--impl", RIGHT), f"not {RIGHT}: give the same"), (("--impl", WRONG, "--repeat", "2"), "with other options")],
)
def test_results_of_another_run_are_not_mixed(
    options: tuple[str, ...], words: str, cases: Path, tmp_path: Path, cli: Cli
) -> None:
    out = tmp_path / "out"
    assert cli("run", cases, "--impl", WRONG, "--out", out).code == 1
    before = (out / "results.jsonl").read_bytes(), (out / "summary.json").read_bytes()
    refused = cli("run", cases, *options, "--out", out, "--last-failed")
    assert refused.code == 2
    assert words in refused.err
    assert ((out / "results.jsonl").read_bytes(), (out / "summary.json").read_bytes()) == before
    (out / "summary.json").unlink()
    refused = cli("run", cases, "--impl", WRONG, "--out", out, "--last-failed")
    assert refused.code == 2
    assert "was cut off" in refused.err


def test_a_case_whose_file_has_changed_runs_again(cases: Path, tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "out"
    run = ("run", cases, "--impl", RIGHT, "--out", out)
    assert cli(*run).code == 0
    none = cli(*run, "--last-failed")
    assert (none.code, none.err) == (5, f"no case of the run in {out} failed\n")
    before = read_run(out).by_case
    changed = sorted(case for case in before if case.startswith("psamask_forward/general"))[0]
    write_psamask(cases, changed.rpartition("/")[2], seed=99)
    again = cli(*run, "--last-failed")
    assert (again.code, again.err) == (0, "1 case more to run: the case file has changed since\n")
    after = read_run(out).by_case
    assert {case for case in before if after[case].case_hash != before[case].case_hash} == {changed}


def test_what_failed_of_a_shard_stays_a_shard(cases: Path, kernel: Path, tmp_path: Path, cli: Cli) -> None:
    run = ("run", cases, "--impl", f"python:{kernel}:f")
    shards = [(*run, "--out", tmp_path / f"out{i}", "--shard", f"{i}/2") for i in (1, 2)]
    assert {cli(*each).code for each in shards} == {0, 1}
    write_kernel(kernel, "right")
    assert {cli(*each, "--last-failed").code for each in shards} == {0, 5}
    assert cli("merge", tmp_path / "out1", tmp_path / "out2", "--out", tmp_path / "all").code == 0
    assert set(statuses(tmp_path / "all").values()) == {"pass"}
    assert len(statuses(tmp_path / "all")) == 3


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
