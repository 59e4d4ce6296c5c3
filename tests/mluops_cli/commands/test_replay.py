"""`mluops replay`: the options of the run, three outcomes, and no code that a stranger's results name."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest

from mluops_cli.commands.replay import outcome_of
from mluops_cli.core.events import CaseFinished
from mluops_cli.core.record import read_record
from mluops_cli.results import origin
from mluops_cli.results.kept_cases import KeepFailures, kept_file, kept_path
from tests.mluops_cli.commands.test_enum_numbering import write_old
from tests.mluops_cli.conftest import Cli
from tests.mluops_cli.execution import misbehaving
from tests.mluops_cli.execution.conftest import PLUGIN, write_psamask
from tests.mluops_cli.reports.sample import record, write_run

# Right where the file beside it says so: a fault that can be mended between a run and its replay.
IMPLEMENTATION = """
from pathlib import Path
from mluops_cli.search.faulty_kernels.psamask import right

def mask(op, inputs, outputs, params, **rest):
    right(op, inputs, outputs, params, **rest)
    if not Path(__file__).with_name("mended").exists():
        outputs["y"][..., 0] += 1
"""

# Right but for what lies behind the pairs, which counts with --strict-tail alone.
TAIL = """
from mluops_cli.search.faulty_kernels.get_indice_pairs import right

def tail(op, inputs, outputs, params, **rest):
    answer = right(op, inputs, outputs, params, **rest)
    pairs = outputs["indice_pairs"]
    pairs[pairs == -1] = -2
    return answer

tail.workspace_size = right.workspace_size
"""

CASE = "psamask_forward/general/case"


WRONG = f"python:{PLUGIN}:writes_nothing"  # right but for cases with TRIGGER


def write_wrong(folder: Path, *names: str) -> None:
    """Write cases that WRONG fails."""
    for name in names:
        write_psamask(folder, name, h_mask=misbehaving.TRIGGER)


def replayed(cli: Cli, out: Path, *options: object) -> list[str]:
    """What replay says of each case, and its last line; the results of the run stay as they are."""
    before = (out / "results.jsonl").read_bytes()
    told = cli("replay", out, *options).out.splitlines()
    assert (out / "results.jsonl").read_bytes() == before
    return told


def test_replay_expects_what_the_run_did(tmp_path: Path, cli: Cli) -> None:
    """What a text case expects stands in the manifest beside it."""
    (tmp_path / "lax.py").write_text("def lax(op, inputs, outputs, params):\n    pass\n", encoding="utf-8")
    cases, out = tmp_path / "cases", tmp_path / "out"
    assert cli("gen", "psamask_forward", "--suite", "invalid", "--format", "prototxt", "--out", cases).code == 0
    assert cli("run", cases, "-k", "y_dim3_13", "--impl", f"python:{tmp_path / 'lax.py'}:lax", "--out", out).code == 1
    (line,) = (out / "results.jsonl").read_text(encoding="utf-8").splitlines()
    before = json.loads(line)
    assert (before["status"], before["expected_status"]) == ("fail", ["BAD_PARAM"])
    ran = cli("replay", out)
    assert ran.code == 1
    assert f"{before['case']}  (fail): {before['reason']}\n" in ran.out


def test_replay_judges_as_the_run_did(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "tail.py").write_text(TAIL, encoding="utf-8")
    implementation, cases, out = f"python:{tmp_path / 'tail.py'}:tail", tmp_path / "cases", tmp_path / "out"
    assert cli("gen", "get_indice_pairs", "--suite", "demo", "--out", cases).code == 0
    assert cli("run", cases, "-k", "scene", "--impl", implementation, "--out", tmp_path / "lenient").code == 0
    assert cli("run", cases, "-k", "scene", "--impl", implementation, "--out", out, "--strict-tail").code == 1
    ran = cli("replay", out)
    assert ran.code == 1
    assert ran.out.splitlines()[-1].startswith("0 fixed, ")


def test_replay_runs_the_failing_cases_alone(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "mask.py").write_text(IMPLEMENTATION, encoding="utf-8")
    implementation = f"python:{tmp_path / 'mask.py'}:mask"
    cases, out = tmp_path / "cases", tmp_path / "out"
    assert cli("gen", "psamask_forward", "--suite", "demo", "--out", cases).code == 0
    assert cli("run", cases, "-k", "square or empty", "--impl", implementation, "--out", out, "-j", "1").code == 1
    failing = [
        read_record(json.loads(line)) for line in (out / "results.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    failing = [each for each in failing if each.status == "fail"]
    assert len(failing) == 2
    keep = KeepFailures(out)
    for each in failing:
        keep(CaseFinished(each))
        assert kept_file(out, each).is_file()
        Path(each.file).unlink()  # the kept file is what is run
    before = (out / "results.jsonl").read_bytes()
    ran = cli("replay", out)
    assert ran.code == 1
    told = ran.out.splitlines()
    assert sorted(line.split(":")[0] for line in told[:-1]) == [
        "still failing  psamask_forward/demo/square_collect  (fail)",
        "still failing  psamask_forward/demo/square_distribute  (fail)",
    ]
    assert told[-1] == "0 fixed, 2 still failing"
    (tmp_path / "mended").touch()
    ran = cli("replay", out)
    assert ran.code == 0
    assert ran.out.splitlines()[-1] == "2 fixed, 0 still failing"
    assert (out / "results.jsonl").read_bytes() == before


def test_replay_of_a_run_without_failures(tmp_path: Path, cli: Cli) -> None:
    ran = cli("replay", write_run(tmp_path, [record("op/s/a")]))
    assert ran.code == 5
    assert ran.err == "no case of this run failed\n"


# -- A12: the options of the run, three outcomes -------------------------------------------------------------

# Options with which a case fails -> the reason, and options of replay with which it doesn't.
FAILS: dict[str, tuple[str, list[str], str]] = {
    "perf": ("right", ["--perf-gate", "--repeat", "1", "--peak-bandwidth", "1T", "--peak-ops", "10T"], "efficiency is"),
    "memory": ("hoards", ["--memory", "300MB"], "out of memory"),
    "timeout": ("slow", ["--timeout", "0.05"], "no answer within 0.05 s"),
}


@pytest.mark.parametrize("way", ["perf", "memory", "timeout"])
def test_a12_a_case_fails_again_by_the_options_of_the_run(way: str, tmp_path: Path, cli: Cli) -> None:
    name, options, reason = FAILS[way]
    h_mask = misbehaving.FIRST + list(misbehaving.WAYS).index(name) if name in misbehaving.WAYS else 3
    write_psamask(tmp_path / "cases", "case", h_mask=h_mask)
    impl = f"python:{PLUGIN}:{'everything' if name in misbehaving.WAYS else name}"
    assert cli("run", tmp_path / "cases", "--impl", impl, "--out", tmp_path / "out", *options).code == 1
    line, total = replayed(cli, tmp_path / "out")
    assert line.startswith("still failing  " + CASE)
    assert reason in line
    assert total == "0 fixed, 1 still failing"


def test_a12_options_that_are_given_go_before_those_of_the_run(tmp_path: Path, cli: Cli) -> None:
    write_psamask(tmp_path / "cases", "case")
    out = tmp_path / "out"
    assert (
        cli("run", tmp_path / "cases", "--impl", f"python:{PLUGIN}:slow", "--out", out, "--timeout", "0.05").code == 1
    )
    assert replayed(cli, out, "--timeout", "60") == [
        f"fixed          {CASE}  (timeout -> pass)",
        "1 fixed, 0 still failing",
    ]


def test_a12_the_enum_numbering_of_the_run(tmp_path: Path, cli: Cli) -> None:
    path = write_old(tmp_path)
    (tmp_path / "mine.py").write_text("def idle(op, inputs, outputs, params):\n    pass\n")
    options = ("--generation", "old", "--impl", f"python:{tmp_path / 'mine.py'}:idle")
    assert cli("run", path, *options, "--out", tmp_path / "out").code == 1
    (line, _) = replayed(cli, tmp_path / "out")
    assert line.startswith("still failing  abs/external/old  (fail): y: ")
    (result,) = (tmp_path / "out" / "results.jsonl").read_text().splitlines()
    assert "--generation old" in json.loads(result)["repro"]


@pytest.mark.parametrize(
    ("before", "now", "outcome"),
    [
        (("fail", None), ("pass", None), "fixed"),
        (("crash", None), ("empty", None), "fixed"),
        (("fail", None), ("fail", None), "still failing"),
        (("fail", None), ("timeout", None), "still failing"),
        (("fail", None), ("error", "implementation"), "still failing"),
        (("fail", None), ("skip", None), "can't tell"),
        (("fail", None), ("mistrusted", None), "can't tell"),
        (("fail", None), ("error", "tool"), "can't tell"),
        (("fail", None), ("error", "case"), "can't tell"),
        (("error", "case"), ("error", "case"), "still failing"),
        (("error", "case"), ("error", "tool"), "can't tell"),
        (("xpass", None), ("pass", None), "still failing"),
    ],
)
def test_a12_outcomes(before: tuple[str, str | None], now: tuple[str, str | None], outcome: str) -> None:
    made = [read_record(record("op/s/a", status, blame=blame)) for status, blame in (before, now)]
    assert outcome_of(*made) == outcome


def test_a12_a_skip_is_not_fixed(tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "out"
    write_wrong(tmp_path / "cases", "case")
    assert cli("run", tmp_path / "cases", "--impl", WRONG, "--out", out).code == 1
    (tmp_path / "skips.py").write_text("def f(op, inputs, outputs, params):\n    return 'NOT_SUPPORTED'\n")
    ran = cli("replay", tmp_path / "out", "--impl", f"python:{tmp_path / 'skips.py'}:f")
    assert ran.code == 1
    line, total = ran.out.splitlines()
    assert line.startswith(f"can't tell     {CASE}  (fail -> skip)")
    assert total == "0 fixed, 0 still failing, 1 can't tell"


def test_d19_keywords_and_outputs(tmp_path: Path, cli: Cli) -> None:
    write_wrong(tmp_path / "cases", "one", "two")
    out = tmp_path / "out"
    assert cli("run", tmp_path / "cases", "--impl", WRONG, "--out", out).code == 1
    told = replayed(cli, out, "-k", "two", "--keep-outputs", "1MB", "--memory", "4GB")
    assert [line.split(":")[0] for line in told] == [
        "still failing  psamask_forward/general/two  (fail)", "0 fixed, 1 still failing",
    ]  # fmt: skip
    assert [path.name for path in out.rglob("*~outputs.pb")] == ["two~outputs.pb"]
    ran = cli("replay", out, "-k", "three")
    assert (ran.code, ran.err) == (5, "no failing case of this run matches\n")


# -- D2: the repro line overwrites nothing -------------------------------------------------------------------


def test_d2_the_repro_line_overwrites_nothing(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    write_wrong(tmp_path / "cases", "one", "two")
    monkeypatch.chdir(tmp_path)
    assert cli("run", "cases", "--impl", WRONG).code == 1
    out = tmp_path / "mluops-out"
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    records = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    for each in records:
        assert cli(*shlex.split(each["repro"])[1:]).code == 1
        assert {path: path.read_bytes() for path in before} == before
        (line,) = (out / "repro" / "results.jsonl").read_text().splitlines()
        assert json.loads(line)["case"] == each["case"]
    assert len(records) == 2
    assert cli("run", "mluops-out", "--impl", "reference", "--out", "other").code == 5  # nothing of it is a case


# -- F5: no code that a stranger's results name --------------------------------------------------------------


def stranger(out: Path, impl: str, **options: Any) -> Path:
    """Results of a failing case, with a summary that this user's `mluops run` didn't write."""
    path = write_psamask(out.parent, "case")
    return write_run(
        out, [record(CASE, "fail", file=str(path), impl=impl)], impl=impl, options={"impl": impl} | options
    )


@pytest.mark.parametrize("named", ["exec", "python", "plugin", "records alone"])
def test_f5_code_that_others_name_is_not_run(
    named: str, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.py").write_text("import pathlib\npathlib.Path('PWNED').touch()\n")
    impl = {"exec": "exec:touch PWNED {dir}", "python": "python:evil.py:f"}.get(named, "tiled")
    if named == "records alone":
        out = stranger(tmp_path / "out", "exec:touch PWNED {dir}")
        (out / "summary.json").unlink()
    else:
        out = stranger(tmp_path / "out", impl, **({"plugins": ["evil.py"]} if named == "plugin" else {}))
    ran = cli("replay", out)
    assert ran.code == 2
    assert "the code that it names isn't run; to run it, give it again: --impl " in ran.err
    assert len(ran.err.splitlines()) == 1
    assert not (tmp_path / "PWNED").exists()
    # Another implementation is run, and it alone.
    assert cli("replay", out, "--impl", "reference").out.endswith("1 fixed, 0 still failing\n")
    assert not (tmp_path / "PWNED").exists()


def test_f5_an_implementation_of_ours_is_run(tmp_path: Path, cli: Cli) -> None:
    assert cli("replay", stranger(tmp_path / "out", "reference")).code == 0


def test_f5_what_was_made_here_is_run_here_alone(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    write_wrong(tmp_path / "cases", "case")
    out = tmp_path / "out"
    assert cli("run", tmp_path / "cases", "--impl", WRONG, "--out", out).code == 1
    assert cli("replay", out).code == 1
    path = out / "summary.json"
    text = path.read_text()
    path.write_text(text.replace("writes_nothing", "right"))
    assert cli("replay", out).code == 2
    path.write_text(text)
    # In another folder the same relative path or command may be something else.
    (tmp_path / "elsewhere").mkdir()
    with monkeypatch.context() as patch:
        patch.chdir(tmp_path / "elsewhere")
        assert cli("replay", out).code == 2
    # Another user has another key.
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    assert cli("replay", out).code == 2
    assert os.stat(origin.key_file()).st_mode & 0o777 == 0o600


def test_f5_without_a_key_nothing_counts_as_made_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    summary = {"impl": "tiled", "options": {}}
    assert origin.sign(summary) == ""
    assert not origin.made_here(summary | {"signature": ""})


# -- kept files ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["n" * 300, "名" * 200, "a\0b", "../../x", ".hidden", "a\nb", ""])
def test_b17_any_name_of_a_case_can_be_kept_and_replayed(name: str, tmp_path: Path, cli: Cli) -> None:
    path = write_psamask(tmp_path, "case")
    out = write_run(
        tmp_path / "out", [record(f"psamask_forward/general/{name}", "fail", file=str(path), impl="reference")]
    )
    (line,) = (out / "results.jsonl").read_text().splitlines()
    KeepFailures(out)(CaseFinished(read_record(json.loads(line))))
    (kept,) = (out / "failures").rglob("*.pb")
    assert kept.parent == out / "failures" / "psamask_forward" / "general"
    assert kept.samefile(path)
    assert cli("replay", out, "--impl", "reference").out.endswith("1 fixed, 0 still failing\n")


def test_no_two_cases_share_a_kept_path(tmp_path: Path) -> None:
    cases = [
        "op/external/a/b",
        "op/external/a_b",
        "op/external/a b",
        "op/external/" + "n" * 300,
        "op/external/" + "n" * 301,
    ]
    assert len({kept_path(tmp_path, case, ".pb") for case in cases}) == len(cases)


def test_f13_only_what_a_run_has_kept_is_removed(tmp_path: Path, cli: Cli) -> None:
    """A folder of one's own that is called failures, in the folder of the results."""
    out = tmp_path / "d"
    write_wrong(out, "case")
    assert cli("run", out, "--impl", WRONG, "--out", out).code == 1
    mine = write_psamask(out / "failures" / "psamask_forward" / "general", "mine")
    for impl, kept in ((WRONG, {"case.pb", "mine.pb"}), ("reference", {"mine.pb"})):
        cli("run", out, "--impl", impl, "--out", out)
        assert len((out / "results.jsonl").read_text().splitlines()) == 1
        assert {path.name for path in (out / "failures").rglob("*.pb")} == kept
    assert mine.is_file()
