"""Annotations for CI servers: on the YAML line, few, unbroken by hostile texts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mluops_cli.reports.ci import ANNOTATIONS, detect_server, make_annotations, report_to_server
from mluops_cli.results.finished import FinishedRun, read_run
from schemas.errors import InputError
from tests.mluops_cli.reports.sample import HOSTILE, hostile_records, record, write_run

COMMAND = re.compile(r"::error (file=[^:,\n]+,line=\d+,)?title=[^:,\n]+::[^\n\r]+\n")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with two specs in cases/."""
    (tmp_path / "cases").mkdir()
    for op in ("op", "other"):
        (tmp_path / "cases" / f"{op}.yaml").write_text("op: x\n", encoding="utf-8")
    return tmp_path


def run_of(checkout: Path, *records: dict[str, Any]) -> FinishedRun:
    return read_run(write_run(checkout / "out", list(records)))


def failing(name: str, place: str, status: str = "fail") -> dict[str, Any]:
    return record(f"op/general/{name}", status, place=place)


def test_they_stand_on_the_yaml_line(checkout: Path) -> None:
    run = run_of(checkout, failing("a", "op.yaml:12"), failing("b", "cases/other.yaml:3:5"), record("op/general/c"))
    found = {(each.file, each.line): each.title for each in make_annotations(run, checkout)}
    assert found == {("cases/op.yaml", 12): "fail: op/general/a", ("cases/other.yaml", 3): "fail: op/general/b"}


def test_a_spec_is_found_wherever_it_lies_in_the_repository(checkout: Path) -> None:
    """Case files name their spec without folders: monorepos have it somewhere below."""
    for folder, name, text in (
        ("ops/psa/specs", "mine.yaml", "op: op\n"),
        (".venv/lib/cases", "mine.yaml", "op: op\n"),
        ("env/cases", "mine.yaml", "op: op\n"),
        ("ops/a", "two.yaml", "# of another operator\nop: another\n"),
        ("ops/b", "two.yaml", "suites: {}\nop: 'op'  # ours\n"),
        ("ops/a", "same.yaml", "op: op\n"),
        ("ops/b", "same.yaml", "op: op\n"),
    ):
        (checkout / folder).mkdir(parents=True, exist_ok=True)
        (checkout / folder / name).write_text(text)
    (checkout / "env" / "pyvenv.cfg").write_text("home = /usr\n")
    run = run_of(checkout, failing("a", "mine.yaml:3"), failing("b", "two.yaml:4"), failing("c", "same.yaml:5"))
    found = {each.title: (each.file, each.line) for each in make_annotations(run, checkout)}
    assert found == {
        "fail: op/general/a": ("ops/psa/specs/mine.yaml", 3),
        "fail: op/general/b": ("ops/b/two.yaml", 4),
        "fail: op/general/c": ("", 0),
    }


@pytest.mark.parametrize(
    "place", ["", "gone.yaml:3", "../outside.yaml:3", "op.yaml", "op.yaml:x", "a\nb.yaml:1", "/etc/passwd:1"]
)
def test_an_unknown_place_gives_no_file(checkout: Path, place: str) -> None:
    (checkout.parent / "outside.yaml").write_text("x", encoding="utf-8")
    (annotation,) = make_annotations(run_of(checkout, failing("a", place)), checkout)
    assert (annotation.file, annotation.line) == ("", 0)


def test_cases_of_one_entry_are_one_annotation(checkout: Path) -> None:
    run = run_of(checkout, *(failing(f"m{n}", "op.yaml:7", "crash" if n else "fail") for n in range(8)))
    (annotation,) = make_annotations(run, checkout)
    assert annotation.title == "8 failing cases of op (fail, crash)"
    assert "op/general/m0: the reason of a fail" in annotation.message
    assert "and 3 more" in annotation.message
    others = [failing("a", "gone.yaml:1"), failing("b", "gone.yaml:2") | {"op": "other", "case": "other/general/b"}]
    (annotation,) = make_annotations(run_of(checkout, *others), checkout)
    assert annotation.title == "2 failing cases (fail)"


def test_at_most_ten_and_none_is_lost(checkout: Path) -> None:
    records = [failing(f"c{n}", f"op.yaml:{n + 1}") for n in range(30)]
    records += [failing(f"many{n}", "other.yaml:9") for n in range(4)]
    found = make_annotations(run_of(checkout, *records), checkout)
    assert len(found) == ANNOTATIONS
    assert (found[0].file, found[0].line) == ("cases/other.yaml", 9)
    assert found[-1].title == "22 more failing cases of 22 entries"
    assert sum(len(each.records) for each in found) == 34
    exactly = run_of(checkout, *records[:10])
    assert all(each.file for each in make_annotations(exactly, checkout))


def test_github(checkout: Path) -> None:
    summary = checkout / "summary.md"
    summary.write_text("before\n", encoding="utf-8")
    environment = {"GITHUB_WORKSPACE": str(checkout), "GITHUB_STEP_SUMMARY": str(summary)}
    text = report_to_server(run_of(checkout, failing("a", "op.yaml:12")), "github", environment)
    assert text == (
        "::error file=cases/op.yaml,line=12,title=fail%3A op/general/a::the reason of a fail%0A"
        "repro: mluops run cases/op/general/a.pb --impl tiled\n"
    )
    written = summary.read_text(encoding="utf-8")
    assert written.startswith("before\n")
    assert "| fail | `op/general/a` | the reason of a fail |" in written


def test_hostile_texts_break_no_annotation(checkout: Path) -> None:
    records = hostile_records()
    for number, each in enumerate(records):
        each["status"] = "fail"
        each["place"] = f"op.yaml:{number + 1}"
    run = run_of(checkout, *records)
    text = report_to_server(
        run, "github", {"GITHUB_WORKSPACE": str(checkout), "GITHUB_STEP_SUMMARY": str(checkout / "s")}
    )
    lines = text.split("\n")[:-1]
    assert len(lines) == ANNOTATIONS
    assert all(COMMAND.fullmatch(f"{line}\n") for line in lines), lines
    assert len(text.splitlines()) == ANNOTATIONS
    # A % of theirs is no escape of ours: what a server unescapes is what was written.
    assert "boo%250A" in text
    (checkout / "s").read_bytes().decode()
    for server in ("gitlab", "plain"):
        plain = report_to_server(run, server, {"CI_PROJECT_DIR": str(checkout)})
        assert len(plain.splitlines()) == len(records)
        assert not [line for line in plain.splitlines() if line.startswith("::")]
        assert "\x1b" not in plain


def test_gitlab_reads_a_code_quality_report(checkout: Path) -> None:
    run = run_of(checkout, failing("a", "op.yaml:12"), failing("b", "", "crash"))
    text = report_to_server(run, "gitlab", {"CI_PROJECT_DIR": str(checkout)})
    (issue,) = json.loads((run.out / "gl-code-quality-report.json").read_text(encoding="utf-8"))
    assert issue["location"] == {"path": "cases/op.yaml", "lines": {"begin": 12}}
    assert set(issue) == {"description", "check_name", "fingerprint", "severity", "location"}
    assert issue["severity"] in ("info", "minor", "major", "critical", "blocker")
    assert (
        text.splitlines()[0]
        == "crash: op/general/b: the reason of a crash; repro: mluops run cases/op/general/b.pb --impl tiled"
    )
    assert text.splitlines()[1].startswith("cases/op.yaml:12: fail: op/general/a: the reason")


def test_the_server_is_detected() -> None:
    assert detect_server({"GITHUB_ACTIONS": "true", "CI": "true"}) == "github"
    assert detect_server({"GITLAB_CI": "true", "CI": "true"}) == "gitlab"
    assert detect_server({"CI": "1"}) == "plain"
    assert detect_server({"CI": "false"}) is None
    assert detect_server({}) is None


def test_an_unknown_server(checkout: Path) -> None:
    with pytest.raises(InputError, match="unknown CI server 'travis', expected one of github, gitlab, plain"):
        report_to_server(run_of(checkout), "travis", {})


def test_there_is_hostile_text_enough() -> None:
    assert {"script", "cdata", "nul", "ansi", "surrogate", "right_to_left", "long", "lines"} <= HOSTILE.keys()
