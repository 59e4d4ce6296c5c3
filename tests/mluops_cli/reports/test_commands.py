"""report, gate and compare as they are typed: files, exit codes, messages."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mluops_cli.core.case_options import CaseOptions
from mluops_cli.core.events import CaseFinished, Event, Listener, Loaded, RunFinished, RunStarted
from mluops_cli.core.record import read_record
from mluops_cli.core.tally import Tally
from mluops_cli.main import main
from mluops_cli.reports.dispatch import ReportFiles
from mluops_cli.results.kept_cases import KeepFailures, kept_path
from schemas.errors import UnavailableError
from tests.conftest import PROJECT
from tests.mluops_cli.reports.sample import hostile_records, mixed_records, record, write_run


def called(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as stop:
        main([str(each) for each in arguments])
    code = stop.value.code
    assert isinstance(code, int)
    return code


def test_report_writes_all_formats_where_none_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = write_run(tmp_path / "out", mixed_records())
    assert called("report", out) == 0
    assert capsys.readouterr().err.split() == [
        str(out / f"{n}") for n in ("junit.xml", "report.html", "report.md", "report.csv")
    ]
    assert len(list(ElementTree.parse(out / "junit.xml").iter("testcase"))) == 307
    assert len(list(csv.reader((out / "report.csv").read_text(encoding="utf-8").splitlines()))) == 308
    assert "<h1>" in (out / "report.html").read_text(encoding="utf-8")


def test_report_writes_what_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = write_run(tmp_path / "out", mixed_records())
    target = tmp_path / "new" / "folder" / "r.md"
    assert called("report", out, "--md", target, "--lang", "zh", "--csv", "-") == 0
    assert target.read_text(encoding="utf-8").startswith("# 测试报告")
    assert capsys.readouterr().out.startswith("case,op,suite,")
    assert sorted(path.name for path in out.iterdir()) == ["results.jsonl", "summary.json"]


def test_report_says_that_it_is_of_a_shard(tmp_path: Path) -> None:
    for shard, told in (("2/3", True), ("1/1", False), ("", False)):
        out = write_run(tmp_path / f"out{shard[:1]}", [record("op/general/a")], shard=shard)
        assert called("report", out, "--html", out / "r.html", "--md", out / "r.md") == 0
        for name in ("r.html", "r.md"):
            assert ("Only shard 2/3, without the cases of the other shards." in (out / name).read_text()) == told


def test_report_for_a_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = write_run(tmp_path / "out", mixed_records())
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    assert called("report", out, "--ci", "auto") == 0
    assert capsys.readouterr().out.startswith("::error title=5 failing cases")
    assert (tmp_path / "summary.md").read_text(encoding="utf-8").startswith("## mluops")


def test_hostile_results_in_every_format(tmp_path: Path) -> None:
    out = write_run(tmp_path / "out", hostile_records())
    assert called("report", out) == 0
    assert called("report", out, "--ci", "plain") == 0


def test_a_report_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = write_run(tmp_path / "out", [record("op/s/a")])
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert called("report", out, "--md", tmp_path / "file" / "r.md") == 3
    assert capsys.readouterr().err.startswith(f"{tmp_path}/file/r.md: can't write: ")


def test_gate_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = write_run(tmp_path / "good", [record("op/s/a"), record("op/s/b", "skip")])
    assert called("gate", good) == 0
    assert capsys.readouterr().out == "The gate holds: 1 of 2 cases passed (1 skip).\n"
    bad = write_run(tmp_path / "bad", [record("op/s/a"), record("op/s/b", "fail"), record("op/s/c", "mistrusted")])
    assert called("gate", bad) == 1
    assert capsys.readouterr().out.splitlines() == [
        "1 case failed: op/s/b.", "1 case passed without proving anything: op/s/c.",
    ]  # fmt: skip
    assert called("gate", write_run(tmp_path / "none", [])) == 1
    assert called("gate", tmp_path) == 2


def test_gate_with_policy_base_and_waivers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = write_run(tmp_path / "base", [record("op/s/a"), record("op/s/b")])
    out = write_run(tmp_path / "out", [record("op/s/a"), record("op/s/b", "fail")])
    policy, waivers = tmp_path / "gate.yaml", tmp_path / "waivers.yaml"
    policy.write_text("against_base: {}\nmax_waived: 1\n", encoding="utf-8")
    entry = (
        "case: op/s/b, implementation: '*', platform: linux-x86_64, reason: r, owner: o, expires: 2999-01-01, issue: i"
    )
    waivers.write_text(f"waivers: [{{{entry}}}]\n", encoding="utf-8")
    assert called("gate", out, "--policy", policy, "--base", base) == 1
    assert "1 case newly failing: op/s/b." in capsys.readouterr().out
    assert called("gate", out, "--policy", policy, "--base", base, "--waivers", waivers) == 0
    assert called("gate", out, "--policy", policy) == 2
    policy.write_text("max_waved: 0\n", encoding="utf-8")
    assert called("gate", out, "--policy", policy) == 2
    assert "gate.yaml:1:1: max_waved: unknown key 'max_waved': did you mean 'max_waived'?" in capsys.readouterr().err


def test_compare_exit_codes_and_formats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = write_run(tmp_path / "old", [record("op/s/a"), record("op/s/b"), record("op/s/c", "fail")])
    new = write_run(tmp_path / "new", [record("op/s/a"), record("op/s/b", "crash")])
    assert called("compare", old, old) == 0
    capsys.readouterr()
    assert called("compare", old, new, "--json", "-", "--md", tmp_path / "c.md") == 1
    told = capsys.readouterr()
    assert [each["case"] for each in json.loads(told.out)["newly_failing"]] == ["op/s/b"]
    assert told.err == "1 case newly failing: op/s/b.\n"
    assert "## Gone (1)" in (tmp_path / "c.md").read_text(encoding="utf-8")
    assert called("compare", new, old) == 1  # op/s/c is new and fails
    policy = tmp_path / "gate.yaml"
    policy.write_text("against_base: {gone: true, newly_failing: false}\n", encoding="utf-8")
    capsys.readouterr()
    assert called("compare", old, new, "--policy", policy) == 1
    assert "1 case gone since the base run: op/s/c." in capsys.readouterr().err


def test_a_shard_is_no_run_to_compare_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = write_run(tmp_path / "whole", [record("op/s/a"), record("op/s/b")])
    shard = write_run(tmp_path / "shard", [record("op/s/a")], shard="1/2")
    capsys.readouterr()
    for arguments in (
        ("gate", whole, "--base", shard), ("compare", shard, whole), ("compare", whole, shard),
        ("report", whole, shard), ("report", shard, whole),
    ):  # fmt: skip
        assert called(*arguments) == 2, arguments
        told = capsys.readouterr()
        assert (told.out, told.err) == ("", f"{shard} holds a shard: `mluops merge` makes one run of all shards\n")


def test_a_folder_is_one_implementation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = write_run(tmp_path / "out", [record("op/s/a")])
    (tmp_path / "link").symlink_to(out)
    for again in (out, tmp_path / "link", out / "."):
        assert called("report", out, again, "--md", tmp_path / "r.md") == 2
        message = f"{again} is the folder {out} again: expected the results of another implementation\n"
        assert capsys.readouterr().err == message
    assert not (tmp_path / "r.md").exists()


def test_help_imports_no_report() -> None:
    code = (
        "import sys; from mluops_cli.main import main\n"
        "try: main(['gate', '--help'])\nexcept SystemExit: print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"jinja2", "junitparser", "pydantic", "numpy", "yaml"}


def test_listeners_write_reports_and_keep_failures(tmp_path: Path) -> None:
    """As `mluops run --junit --html` does: the events of a run, in order."""
    earlier = record("op/s/old", "fail", file="cases/old.pb")
    out = write_run(tmp_path / "out", [*mixed_records(), earlier])
    source = tmp_path / "case.pb"
    source.write_bytes(b"case")
    old = out / "failures" / "op" / "s" / "old.pb"
    foreign = out / "failures" / "notes.txt"
    for path in (old, foreign):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x", encoding="utf-8")
    keep, files = KeepFailures(out), ReportFiles(out, junit=tmp_path / "j.xml", html=tmp_path / "r.html")
    made = [read_record(record("op/s/a", "crash", file=str(source))), read_record(record("op/s/b", file=str(source)))]
    made.append(read_record(record("op/s/gone", "fail", file=str(tmp_path / "gone.pb"))))
    made.append(read_record(record("op/external/x/../../y", "fail", file=str(source))))
    events: list[Event] = [RunStarted(CaseOptions(), 2, 1, out), Loaded(), *map(CaseFinished, made)]
    listeners: list[Listener] = [keep, files]
    for event in (*events, RunFinished(Tally(), 1, 1.0)):
        for listener in listeners:
            listener(event)
    assert (out / "failures/op/s/a.pb").read_bytes() == b"case"
    kept = sorted(path.relative_to(out).as_posix() for path in out.rglob("failures/**/*") if path.is_file())
    other = kept_path(out, "op/external/x/../../y", ".pb").relative_to(out).as_posix()
    assert kept == ["failures/notes.txt", other, "failures/op/s/a.pb"]
    assert (tmp_path / "j.xml").is_file()
    assert (tmp_path / "r.html").is_file()
    with pytest.raises(UnavailableError):
        ReportFiles(out, md=source / "below" / "r.md")(RunFinished(Tally(), 1, 1.0))


def test_what_a_worker_wrote_before_the_news_of_it_is_not_taken_away(tmp_path: Path) -> None:
    folder = tmp_path / "failures" / "op" / "s"
    folder.mkdir(parents=True)
    for name in ("old~outputs.pb", "again~outputs.pb"):
        (folder / name).write_text("old", encoding="utf-8")
    write_run(tmp_path, [record(f"op/s/{name}", "fail") for name in ("old", "again")])
    keep = KeepFailures(tmp_path)
    keep(RunStarted(CaseOptions(), 2, 1, tmp_path))
    for name in ("again~outputs.pb", "new~outputs.pb"):
        (folder / "part").write_text("new", encoding="utf-8")
        (folder / "part").replace(folder / name)
    keep(Loaded())
    kept = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    assert kept == {"again~outputs.pb": "new", "new~outputs.pb": "new"}


@pytest.mark.parametrize("option", ["--html", "--md", "--csv", "--junit"])
def test_f9_a_report_that_does_not_fit_leaves_the_earlier_one(tmp_path: Path, option: str) -> None:
    """A limit on the size of files stands for a full disk; compiled modules (-B) and coverage must not meet it."""
    out, report = write_run(tmp_path / "out", mixed_records()), tmp_path / "report"
    report.write_text("an earlier report", encoding="utf-8")
    command = f"exec {sys.executable} -B -m mluops_cli report {out} {option} {report}"
    command = f"unset COVERAGE_PROCESS_CONFIG; ulimit -f 8; {command}"
    done = subprocess.run(["bash", "-c", command], cwd=PROJECT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (3, f"{report}: can't write: File too large\n")
    assert report.read_text(encoding="utf-8") == "an earlier report"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "report"]


def test_d3_a_raised_error_shows_its_traceback_under_the_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_text("def inner():\n    return 1 / 0\ndef mask(op, inputs, outputs, params):\n    inner()\n")
    cases = tmp_path / "cases"
    assert called("gen", "psamask_forward", "--suite", "demo", "--out", cases) == 0
    capsys.readouterr()
    arguments = ("-k", "square_collect", "--impl", f"python:{kernel}:mask", "--out", tmp_path / "out")
    assert called("run", cases, *arguments) == 1
    told = capsys.readouterr().out
    at = told.index("ERROR psamask_forward/demo/square_collect: raised ZeroDivisionError: division by zero")
    shown = told[at:].splitlines()
    assert shown[1:3] == ["  printed:", "    Traceback (most recent call last):"]
    assert [line.strip() for line in shown[3:] if ", line " in line] == [
        f'File "{kernel}", line 4, in mask', f'File "{kernel}", line 2, in inner',
    ]  # fmt: skip
    assert "    ZeroDivisionError: division by zero" in shown
