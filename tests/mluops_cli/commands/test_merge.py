"""`mluops merge`: the shards of a run give what one run gives, and whatever isn't a set of shards is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mluops_cli.main import main
from mluops_cli.results.finished import read_run
from tests.mluops_cli.conftest import Cli
from tests.mluops_cli.execution.conftest import PLUGIN, write_psamask
from tests.mluops_cli.execution.misbehaving import TRIGGER
from tests.mluops_cli.results.test_kept_cases import write_external

IMPL = f"python:{PLUGIN}:writes_nothing"  # wrong where h_mask is TRIGGER
TIMES = ("seconds", "latency_us", "interface_us")
COUNT = 4


def run(cases: Path, out: Path, *options: str, impl: str = IMPL) -> int:
    with pytest.raises(SystemExit) as stop:
        main(["run", str(cases), "--impl", impl, "-j", "1", "--keep-outputs", "1MiB", "--out", str(out), *options])
    assert isinstance(stop.value.code, int)
    return stop.value.code


def run_shards(cases: Path, folder: Path, count: int = COUNT, impl: str = IMPL) -> list[Path]:
    shards = [folder / f"shard-{number}" for number in range(1, count + 1)]
    for number, shard in enumerate(shards, 1):
        run(cases, shard, "--shard", f"{number}/{count}", impl=impl)
    return shards


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders `cases`, `one` (a run of all of them) and `shard-1` to `shard-4`."""
    folder = tmp_path_factory.mktemp("shards")
    for number, height in enumerate((3, 11, TRIGGER, 7, 9, TRIGGER)):
        write_psamask(folder / "cases", f"case_{number}", h_mask=height, seed=number)
    write_external(folder / "cases", "outside", 1000)  # of an operator without a kernel
    (folder / "cases" / "torn.pb").write_bytes(b"\x0a\xff")
    run(folder / "cases", folder / "one")
    run_shards(folder / "cases", folder)
    return folder


@pytest.fixture
def shards(made: Path, tmp_path: Path) -> list[Path]:
    """Copies of the shards, to be changed."""
    return [Path(shutil.copytree(made / f"shard-{number}", tmp_path / f"s{number}")) for number in (1, 2, 3, 4)]


def comparable(out: Path) -> tuple[list[Any], dict[str, Any], dict[str, bytes]]:
    """The records, the summary and the kept files of a run, without times and the run's own folder."""
    text = (out / "results.jsonl").read_text().replace(str(out), "OUT")
    records = [json.loads(line) for line in text.splitlines()]
    summary = json.loads((out / "summary.json").read_text())
    kept = {str(path.relative_to(out)): path.read_bytes() for path in out.glob("failures/**/*") if path.is_file()}
    for each in (*records, summary):
        for name in (*TIMES, "started"):
            each.pop(name, None)
    return sorted(records, key=lambda record: str(record["case"])), summary, kept


def change_summary(out: Path, change: Callable[[dict[str, Any]], object]) -> None:
    summary = json.loads((out / "summary.json").read_text())
    change(summary)
    (out / "summary.json").write_text(json.dumps(summary))


def test_the_shards_of_a_run_give_what_one_run_gives(made: Path, tmp_path: Path, cli: Cli) -> None:
    ran = cli("merge", *(made / f"shard-{number}" for number in (3, 1, 4, 2)), "--out", tmp_path / "merged")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == f"8 cases of 4 shards in {tmp_path / 'merged'}: 2 error, 2 fail, 4 pass\n"
    records, summary, kept = comparable(tmp_path / "merged")
    assert (records, summary, kept) == comparable(made / "one")
    assert len([name for name in kept if name.endswith(".pb")]) == 6  # four failing cases, two with outputs
    assert (summary["exit_code"], summary["shard"], summary["counts"]) == (2, "", {"error": 2, "fail": 2, "pass": 4})
    outputs = [record["outputs_kept"] for record in records if record["outputs_kept"]]
    assert len(outputs) == 2
    assert all((Path(found.replace("OUT", str(tmp_path / "merged")))).is_file() for found in outputs)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["merged"]


def test_the_rest_takes_merged_results_as_those_of_a_run(shards: list[Path], tmp_path: Path, cli: Cli) -> None:
    assert cli("merge", *shards, "--out", tmp_path / "merged").code == 0
    gate = cli("gate", tmp_path / "merged")
    assert gate.code == 1
    assert gate.out.startswith("4 cases failed: ")
    assert "left out" not in gate.out
    replay = cli("replay", tmp_path / "merged", "-k", "case_2")  # it is our own run: its code runs without --impl
    assert (replay.code, replay.out.split()[:2]) == (1, ["still", "failing"])
    assert cli("compare", tmp_path / "merged", tmp_path / "merged").code == 0


def test_merged_results_of_strangers_are_not_signed(shards: list[Path], tmp_path: Path, cli: Cli) -> None:
    change_summary(shards[2], lambda summary: summary.update(signature="0" * 64))
    assert cli("merge", *shards, "--out", tmp_path / "merged").code == 0
    assert read_run(tmp_path / "merged").summary["signature"] == ""
    assert "was made by another user" in cli("replay", tmp_path / "merged").err


def test_what_was_merged_before_is_replaced(shards: list[Path], made: Path, tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "merged"
    shutil.copytree(made / "one", out)
    (out / "failures" / "mine.txt").write_text("mine")
    lines = (out / "results.jsonl").read_text().splitlines(keepends=True)
    extra = json.loads(lines[0]) | {"case": "psamask_forward/general/gone", "status": "fail"}
    (out / "results.jsonl").write_text("".join([*lines, json.dumps(extra) + "\n"]))
    gone = out / "failures" / "psamask_forward" / "general" / "gone.pb"
    gone.write_bytes(b"")
    assert cli("merge", *shards, "--out", out).code == 0
    assert not gone.exists()
    assert (out / "failures" / "mine.txt").read_text() == "mine"
    (out / "failures" / "mine.txt").unlink()
    assert comparable(out) == comparable(made / "one")


def _drop_selection(summary: dict[str, Any]) -> None:
    del summary["selection"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda of: of.update(impl="tiled"), "s3: implementation tiled, expected python:"),
        (lambda of: of["options"].update(timeout=20.0), "s3: option timeout 20.0, expected 300.0 as in"),
        (lambda of: of.update(strict=True), "s3: option strict True, expected False as in"),
        (lambda of: of.update(mluops="0.0.1"), "s3: version of mluops 0.0.1, expected"),
        (lambda of: of.update(shard="3/5"), "s3: number of shards 5, expected 4 as in"),
        (lambda of: of["selection"].update(hash="0"), "s3: selected 8 cases with hash 0, expected 8 cases with hash"),
        (lambda of: of.update(shard="2/4"), "shard 2/4 is there 2 times: "),
        (lambda of: of.update(shard="2/4"), "shard 3/4 is missing"),
        (lambda of: of.update(shard=""), "s3: not a shard: expected the --out folder of a `mluops run --shard I/N`"),
        (_drop_selection, "s3: doesn't say of which cases it is a shard: run it again with this mluops"),
    ],
)
def test_what_is_no_set_of_shards_is_refused(
    change: Callable[[dict[str, Any]], object], message: str, shards: list[Path], tmp_path: Path, cli: Cli
) -> None:
    change_summary(shards[2], change)
    ran = cli("merge", *shards, "--out", tmp_path / "merged")
    assert ran.code == 2
    assert message in ran.err
    assert not (tmp_path / "merged").exists()


def test_missing_and_doubled_shards_and_cases_are_named(shards: list[Path], tmp_path: Path, cli: Cli) -> None:
    first, second, third, fourth = shards
    ran = cli("merge", first, second, second, "--out", tmp_path / "merged")
    assert (ran.code, ran.err.splitlines()) == (
        2, [f"shard 2/4 is there 2 times: {second}, {second}", "shard 3/4 is missing", "shard 4/4 is missing"],
    )  # fmt: skip
    record = json.loads((fourth / "results.jsonl").read_text().splitlines()[0])
    lines = (third / "results.jsonl").read_text()
    (third / "results.jsonl").write_text(lines + json.dumps(record | {"case_hash": "other"}) + "\n")
    change_summary(third, lambda of: of["counts"].update({record["status"]: of["counts"][record["status"]] + 1}))
    ran = cli("merge", *shards, "--out", tmp_path / "merged")
    assert (ran.code, ran.err) == (
        2, f"{record['case']} is in 2 shards: {third}, {fourth}, with different case files\n",
    )  # fmt: skip
    assert not (tmp_path / "merged").exists()


def test_a_shard_without_its_cases_is_refused(shards: list[Path], tmp_path: Path, cli: Cli) -> None:
    (shards[1] / "results.jsonl").write_text("")
    ran = cli("merge", *shards, "--out", tmp_path / "merged")
    assert ran.code == 2
    assert "results are missing or were added" in ran.err
    change_summary(shards[1], lambda summary: summary.update(counts={}))
    ran = cli("merge", *shards, "--out", tmp_path / "merged")
    assert ran.code == 2
    assert ran.err.startswith("2 cases are missing: 8 cases with hash ")
    (shards[1] / "summary.json").unlink()
    ran = cli("merge", *shards, "--out", tmp_path / "merged")
    assert ran.code == 2
    assert f"{shards[1]}: the run has no summary.json, so it did not finish: run this shard again" in ran.err
    assert not (tmp_path / "merged").exists()


def test_a_shard_that_was_stopped_makes_the_run_incomplete(shards: list[Path], tmp_path: Path, cli: Cli) -> None:
    """The gate judges this, not merge."""
    lines = (shards[1] / "results.jsonl").read_text().splitlines(keepends=True)
    counts = {json.loads(lines[0])["status"]: 1}
    (shards[1] / "results.jsonl").write_text(lines[0])
    change_summary(shards[1], lambda of: of.update(counts=counts, not_run=len(lines) - 1, interrupted=True))
    ran = cli("merge", *shards, "--out", tmp_path / "merged")
    assert (ran.code, ran.err) == (0, "1 case was not run\n")
    summary = read_run(tmp_path / "merged").summary
    assert (summary["not_run"], summary["interrupted"], summary["exit_code"]) == (1, True, 130)


def test_folders_that_are_not_for_merged_results(shards: list[Path], tmp_path: Path, cli: Cli) -> None:
    before = comparable(shards[0])
    ran = cli("merge", *shards, "--out", shards[0])
    assert (ran.code, ran.err) == (2, f"--out {shards[0]} is one of the shards: choose another folder\n")
    assert comparable(shards[0]) == before
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "summary.json").write_text('{"mine": 1}')
    ran = cli("merge", *shards, "--out", tmp_path / "other")
    assert ran.code == 2
    assert "is not a result of mluops run and is left alone" in ran.err
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["summary.json"]


def test_a_full_disk_leaves_nothing(
    shards: list[Path], tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mluops_cli.results.merging.record_line", full)
    ran = cli("merge", *shards, "--out", tmp_path / "merged")
    assert ran.code == 3
    assert "No space left on device" in ran.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s1", "s2", "s3", "s4"]


def test_links_out_of_a_shard_are_not_followed(shards: list[Path], tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "secret").write_text("secret")
    kept = next(path for shard in shards for path in sorted(shard.rglob("case_2.pb")))
    kept.unlink()
    kept.symlink_to(tmp_path / "secret")
    assert cli("merge", *shards, "--out", tmp_path / "merged").code == 0
    assert not list((tmp_path / "merged").rglob("case_2.pb"))


def test_shards_of_changed_case_files_are_told(made: Path, tmp_path: Path, cli: Cli) -> None:
    """One element of one case differs, and both cases are in the first shard or both in the second."""
    for name, seed in (("old", 0), ("new", 1)):
        write_psamask(tmp_path / name, "large", h_mask=9)
        write_psamask(tmp_path / name, "small", h_mask=3, seed=seed)
    for number, cases in ((1, "old"), (2, "new")):
        assert run(tmp_path / cases, tmp_path / f"s{number}", "--shard", f"{number}/2") == 0
    ran = cli("merge", tmp_path / "s1", tmp_path / "s2", "--out", tmp_path / "merged")
    assert ran.code == 2
    assert f"{tmp_path / 's2'}: selected 2 cases with hash" in ran.err


def test_fewer_cases_than_shards(made: Path, tmp_path: Path, cli: Cli) -> None:
    """An empty shard is none of nothing: 5 is for a selection without cases."""
    write_psamask(tmp_path / "cases", "only")
    code = run(tmp_path / "cases", tmp_path / "s2", "--shard", "2/2")
    assert code == 0
    empty = read_run(tmp_path / "s2")
    assert (empty.records, empty.summary["cases"], empty.summary["selection"]["cases"]) == ([], 0, 1)
    assert empty.verdict == "pass"
    assert run(tmp_path / "cases", tmp_path / "s1", "--shard", "1/2") == 0
    assert cli("merge", tmp_path / "s1", tmp_path / "s2", "--out", tmp_path / "merged").code == 0
    assert cli("gate", tmp_path / "merged").code == 0
    assert run(tmp_path / "cases", tmp_path / "s3", "--shard", "2/2", "-k", "nowhere") == 5
    assert not (tmp_path / "s3").exists()


def test_shards_that_prove_nothing_together_fail(made: Path, tmp_path: Path, cli: Cli) -> None:
    """Each exits with 0, since another may prove something; the whole doesn't."""
    for name in ("a", "b"):
        write_psamask(tmp_path / "cases", name)
    (tmp_path / "mine.py").write_text("def no(op, inputs, outputs, params):\n    return 'NOT_SUPPORTED'\n")
    shards = run_shards(tmp_path / "cases", tmp_path, 2, f"python:{tmp_path / 'mine.py'}:no")
    assert [read_run(shard).exit_code for shard in shards] == [0, 0]
    assert cli("merge", *shards, "--out", tmp_path / "merged").code == 0
    merged = read_run(tmp_path / "merged")
    assert (merged.exit_code, merged.summary["unproven"]) == (1, ["psamask_forward"])
