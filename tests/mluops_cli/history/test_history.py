"""`mluops history`: runs are added once and whole, and what changed is told with its run and commit."""

from __future__ import annotations

import re
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mluops_cli.history.store import _MARK, _TABLES, History, Setting
from mluops_cli.results.finished import read_run
from tests.mluops_cli.conftest import Cli
from tests.mluops_cli.history.test_change_points import SLOWER, history, slower
from tests.mluops_cli.reports.sample import record, write_run

A, B = "op/general/a", "op/general/b"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "history.sqlite"


def timed(case: str, latency: float, status: str = "pass", **keys: Any) -> dict[str, Any]:
    told = {"device": "card", "platform": "linux", "options_hash": "o", "case_hash": "h", "perf": {"runs": 99}} | keys
    return record(case, status, latency_us=latency, latency_interval_us=[latency * 0.99, latency * 1.01], **told)


def fill(file: Path, folder: Path, runs: list[list[dict[str, Any]]]) -> None:
    """Add runs; the commit of the run at an index is c and the index."""
    with closing(History(file, create=True)) as base:
        for index, records in enumerate(runs):
            base.add(read_run(write_run(folder / str(index), records)), f"c{index}")


def test_a_run_is_added_once(file: Path, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    out = write_run(tmp_path / "out", [timed(A, 10.0), record(B, "fail")])
    assert cli("history", "add", out, "--ref", "abc123", "--file", file).out == "run 1 (abc123): 2 cases, fail\n"
    again = cli("history", "add", out, "--file", file)
    assert (again.code, again.out) == (0, f"{out} is in {file} already: run 1 (abc123)\n")
    other = write_run(tmp_path / "other", [timed(A, 11.0)])
    monkeypatch.setenv("GITHUB_SHA", "0123456789abcdef")
    assert cli("history", "add", other, "--file", file).out == "run 2 (0123456789ab): 1 case, pass\n"
    with closing(History(file)) as base:
        assert [str(run) for run in base.runs] == ["run 1 (abc123)", "run 2 (0123456789ab)"]
        ((setting, points),) = base.points(A).items()
    assert setting == Setting("tiled", "linux", "card", "o")
    assert [(point.latency, point.status) for point in points] == [(10.0, "pass"), (11.0, "pass")]
    assert [point.high for point in points] == pytest.approx([10.1, 11.11])


def test_two_that_make_the_file_at_once_both_have_it(file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as other, ThreadPoolExecutor(1) as pool:
        other.execute("BEGIN IMMEDIATE")
        late = pool.submit(lambda: History(file, create=True).close())
        time.sleep(0.3)  # by now it has seen an empty file, and waits for the lock
        for statement in (*_TABLES.split(";"), f"PRAGMA application_id = {_MARK}", "PRAGMA user_version = 1", "COMMIT"):
            other.execute(statement)
        late.result()
    with closing(History(file)) as base:
        assert base.runs == []


@pytest.mark.parametrize(
    ("keys", "kept"),
    [
        ({}, 10.0),
        ({"perf": None}, None),  # of the call that is judged
        ({"perf": {"problem": "the clock is too coarse"}}, None),
        ({"latency_interval_us": None, "perf": {"runs": 3}}, 10.0),  # a slow call: too few for an interval
    ],
)
def test_only_measured_latencies_are_kept(keys: Any, kept: float | None, file: Path, tmp_path: Path) -> None:
    fill(file, tmp_path / "runs", [[timed(A, 10.0) | keys]])
    with closing(History(file)) as base:
        ((point,),) = base.points(A).values()
    assert point.latency == kept


def test_what_is_no_whole_run_is_refused_and_nothing_made(file: Path, tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "empty").mkdir()
    ran = cli("history", "add", tmp_path / "empty", "--file", file)
    assert ran.code == 2
    assert "holds no results.jsonl" in ran.err
    assert not file.exists()
    shard = write_run(tmp_path / "shard", [record(A)], shard="1/4")
    ran = cli("history", "add", shard, "--file", file)
    assert ran.code == 2
    assert "`mluops merge` makes one run of all shards" in ran.err


def test_what_is_no_history_is_refused(file: Path, tmp_path: Path, cli: Cli) -> None:
    assert "no such history" in cli("history", "trend", "--file", file).err
    file.write_text("mine, " * 1000)
    ran = cli("history", "trend", "--file", file)
    assert (ran.code, file.read_text()) == (2, "mine, " * 1000)
    assert "no history of mluops" in ran.err
    other = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(other)) as base:
        base.execute("CREATE TABLE mine (id)")
        base.commit()
    ran = cli("history", "add", write_run(tmp_path / "out", [record(A)]), "--file", other)
    assert (ran.code, "a database, but no history of mluops" in ran.err) == (2, True)
    fill(file.with_name("new.sqlite"), tmp_path / "runs", [[record(A)]])
    with closing(sqlite3.connect(file.with_name("new.sqlite"))) as base:
        base.execute("PRAGMA user_version = 9")
    ran = cli("history", "trend", "--file", file.with_name("new.sqlite"))
    assert (ran.code, "a history of format 9, this mluops reads format 1" in ran.err) == (2, True)


def test_a_folder_that_is_not_there_is_a_wrong_command(tmp_path: Path, cli: Cli) -> None:
    out = write_run(tmp_path / "out", [record(A)])
    ran = cli("history", "add", out, "--file", tmp_path / "mistyped" / "history.sqlite")
    assert (ran.code, ran.err) == (2, f"no such folder: {tmp_path / 'mistyped'}\n")
    assert not (tmp_path / "mistyped").exists()


def test_bisect_takes_a_part_of_an_id(file: Path, tmp_path: Path, cli: Cli) -> None:
    fill(file, tmp_path, [[record(A), record("op/network/b1")], [record(A, "fail"), record("op/network/b2")]])
    assert cli("history", "bisect", "l/a", "--file", file).out == cli("history", "bisect", A, "--file", file).out
    several = cli("history", "bisect", "network", "--file", file)
    assert (several.code, several.err) == (
        2, "network fits 2 cases: op/network/b1, op/network/b2; give the whole id\n",
    )  # fmt: skip


def test_a_reason_that_is_cut_says_so(file: Path, tmp_path: Path) -> None:
    fill(file, tmp_path, [[record(A, "fail", reason="x" * 301), record(B, "fail", reason="y" * 300)]])
    with closing(History(file)) as base:
        reasons = [point.reason for case in (A, B) for (point,) in base.points(case).values()]
    assert reasons == ["x" * 300 + " ...", "y" * 300]


def test_a_run_that_can_not_be_added_leaves_the_file_as_it_was(file: Path, tmp_path: Path) -> None:
    fill(file, tmp_path / "runs", [[record(A)]])
    run = read_run(write_run(tmp_path / "out", [record(A), record(B)]))
    run.records[1].reason = 3  # type: ignore[assignment]  # something that fails in the middle
    with closing(History(file)) as base:
        with pytest.raises(TypeError):
            base.add(run, "")
        assert (len(base.runs), base.cases) == (1, [A])


def test_since_when_a_case_fails(file: Path, tmp_path: Path, cli: Cli) -> None:
    states = ["fail", "pass", "fail", "pass", "fail", "crash"]
    runs = [[timed(A, 1.0, status), timed(B, 1.0 + index)] for index, status in enumerate(states)]
    fill(file, tmp_path / "runs", runs)
    ran = cli("history", "trend", "--file", file)
    assert ran.code == 0
    first, last = ran.out.splitlines()
    assert first.startswith(f"fails since run 5 (c4): {A} (")
    assert "on card): the reason of a crash" in first
    assert last == "1 change in 2 cases and 6 runs"
    assert (
        cli("history", "trend", "-k", "general/b", "--file", file).out
        == "no failing case and no changed latency in 1 case and 6 runs\n"
    )
    found = cli("history", "bisect", A, "--file", file).out.splitlines()
    assert [line.partition(":")[0] for line in found[::2]] == [
        "passed in run 2 (c1)", "failed in run 3 (c2)", "passed in run 4 (c3)", "fails since run 5 (c4)"
    ]  # fmt: skip
    assert found[-1] == "  not yet in run 4 (c3): git log c3..c4"
    assert cli("history", "bisect", B, "--file", file).out == "no change in 6 runs\n"
    ran = cli("history", "bisect", "op/general/c", "--file", file)
    assert (ran.code, f"no case of {file} is called op/general/c" in ran.err) == (2, True)
    assert "did you mean" in ran.err


def verdict_runs(states: str, **last: Any) -> list[list[dict[str, Any]]]:
    """Runs of case A, p passes and f fails; the last one has other keys."""
    runs = [[timed(A, 1.0 + index, {"p": "pass", "f": "fail"}[state])] for index, state in enumerate(states)]
    runs[-1][0] |= last
    return runs


@pytest.mark.parametrize("key", ["options_hash", "device"])
def test_a_verdict_counts_whether_or_not_latencies_were_measured(
    key: str, file: Path, tmp_path: Path, cli: Cli
) -> None:
    fill(file, tmp_path / "runs", verdict_runs("pppffp", perf=None, **{key: "other"}))
    assert (
        cli("history", "trend", "--file", file).out == "no failing case and no changed latency in 1 case and 6 runs\n"
    )
    found = cli("history", "bisect", A, "--file", file).out.splitlines()
    assert found[0].startswith("failed from run 4 (c3) to run 5 (c4): op/general/a (tiled on card): ")
    assert found[1] == "  not yet in run 3 (c2): git log c2..c3"
    assert found[2].startswith("passes since run 6 (c5): op/general/a (")
    assert found[3] == "  not yet in run 5 (c4): git log c4..c5"
    assert len(found) == 4


def test_bisect_lists_each_change_of_the_verdict(file: Path, tmp_path: Path, cli: Cli) -> None:
    fill(file, tmp_path / "runs", verdict_runs("pppffppfp"))
    found = cli("history", "bisect", A, "--file", file).out.splitlines()
    assert [line.partition(":")[0] for line in found[::2]] == [
        "failed from run 4 (c3) to run 5 (c4)", "passed from run 6 (c5) to run 7 (c6)", "failed in run 8 (c7)",
        "passes since run 9 (c8)",
    ]  # fmt: skip


def test_verdicts_of_other_implementations_and_case_files_are_not_compared(
    file: Path, tmp_path: Path, cli: Cli
) -> None:
    for number, other in enumerate(({"impl": "mine"}, {"case_hash": "new"})):
        base = file.with_name(f"{number}.sqlite")
        fill(base, tmp_path / f"runs{number}", verdict_runs("ppf", **other))
        found = cli("history", "bisect", A, "--file", base).out.splitlines()
        assert found[0].startswith("fails since run 3 (c2)")
        assert found[1:] == ["  in all runs that have this case file"]


def test_verdicts_judged_by_other_rules_are_not_compared(file: Path, tmp_path: Path, cli: Cli) -> None:
    """--bound fail is another question; --perf is not, and both are among the options of a summary."""
    with closing(History(file, create=True)) as base:
        told: list[dict[str, Any]] = [{}, {"perf": True}, {"bound": "fail"}, {"perf": True, "rotate": True}]
        for index, options in enumerate(told):
            records = [timed(A, 1.0, "pass" if index < 2 else "fail", options_hash=str(index))]
            base.add(read_run(write_run(tmp_path / str(index), records, options=options)), "")
        assert [setting.judging for setting in base.points(A)] == ["", "", "--bound fail", "--rotate"]
    found = cli("history", "bisect", A, "--file", file).out
    assert found.count("in all runs that have this case file") == 2


def test_keywords_that_match_nothing(file: Path, tmp_path: Path, cli: Cli) -> None:
    fill(file, tmp_path / "runs", verdict_runs("pf"))
    ran = cli("history", "trend", "-k", "nothing", "--file", file)
    assert (ran.code, ran.out, ran.err) == (5, "", "no case is selected\n")


def test_a_run_cut_off_before_its_first_case_is_refused(file: Path, tmp_path: Path, cli: Cli) -> None:
    out = write_run(tmp_path / "out", [])
    (out / "summary.json").unlink()
    ran = cli("history", "add", out, "--file", file)
    assert (ran.code, file.exists()) == (2, False)
    assert "holds no result and no summary" in ran.err


def test_a_slow_down_is_told_with_its_run(file: Path, tmp_path: Path, cli: Cli) -> None:
    pytest.importorskip("ruptures", reason="needs ruptures: pip install 'mluops[history]'")
    planted, steady = slower(history(0, "uniform")), history(1)
    runs = [[timed(A, first), timed(B, second)] for first, second in zip(planted, steady, strict=True)]
    fill(file, tmp_path / "runs", runs)
    ran = cli("history", "trend", "--file", file)
    first, last = ran.out.splitlines()
    words = rf"slower by (\d+) % since run {SLOWER + 1} \(c{SLOWER}\): {A} \(tiled on card\): .* -> .*"
    found = re.fullmatch(words, first)
    assert found is not None, first
    assert int(found[1]) == pytest.approx(15, abs=4)
    assert last == "1 change in 2 cases and 60 runs"
    told = cli("history", "bisect", A, "--file", file).out.splitlines()
    assert told[1] == f"  not yet in run {SLOWER} (c{SLOWER - 1}): git log c{SLOWER - 1}..c{SLOWER}"


@pytest.mark.parametrize("key", ["device", "options_hash", "case_hash", "platform"])
def test_figures_of_other_devices_options_and_cases_are_not_compared(
    key: str, file: Path, tmp_path: Path, cli: Cli
) -> None:
    pytest.importorskip("ruptures", reason="needs ruptures: pip install 'mluops[history]'")
    values = slower(history(0, "uniform"), 2.0)
    runs = [[timed(A, value, **({key: "other"} if index >= SLOWER else {}))] for index, value in enumerate(values)]
    fill(file, tmp_path / "runs", runs)
    assert (
        cli("history", "trend", "--file", file).out == "no failing case and no changed latency in 1 case and 60 runs\n"
    )


def test_the_page_shows_each_suite_and_each_case(file: Path, tmp_path: Path, cli: Cli) -> None:
    """Nine runs: too few for changes of latency, so ruptures isn't needed."""
    odd = "op/general/<b>&"
    states = ["pass"] * 6 + ["fail"] * 3
    runs = [[timed(A, 10.0 + index), record(odd, status)] for index, status in enumerate(states)]
    del runs[4][1]
    fill(file, tmp_path / "runs", runs)
    page = tmp_path / "trend.html"
    ran = cli("history", "trend", "--file", file, "--html", page)
    assert (ran.code, ran.out.splitlines()[-1]) == (0, "1 change in 2 cases and 9 runs")
    text = page.read_text()
    assert "fails since run 7 (c6): op/general/&lt;b&gt;&amp;" in text
    assert "<b>&" not in text
    assert text.count('<i class="pass"') == 9 + 5  # two rows: only one of the cases names a device
    assert text.count('<i class="fail"') == 3
    assert 'title="run 7 (c6): 1 fail"' in text
    (drawn,) = re.findall(r'<figure id="[^"]*".*?</figure>', text, re.DOTALL)
    assert A in drawn
    (line,) = re.findall(r'points="([^"]*)"', drawn)
    heights = [float(pair.split(",")[1]) for pair in line.split()]
    assert heights == sorted(heights, reverse=True)  # slower from run to run: up
    assert len(heights) == 9
    assert cli("history", "trend", "--file", file, "-k", "nowhere", "--html", "-").out.count("<figure") == 0
    ran = cli("history", "trend", "--file", file, "--html", file)
    assert (ran.code, "this command reads that file" in ran.err) == (2, True)
