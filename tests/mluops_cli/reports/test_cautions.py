"""Passes beyond the error bound and outputs that vary between repeats: every report tells them."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

from mluops_cli.core.case_options import CaseOptions
from mluops_cli.core.events import CaseFinished, RunFinished, RunStarted
from mluops_cli.reports.cautions import cautions, repeats_summary
from mluops_cli.reports.ci import ANNOTATIONS, make_annotations, report_to_server
from mluops_cli.reports.console import ROWS, ConsoleReport
from mluops_cli.reports.csv import csv_text
from mluops_cli.reports.html.page import html_text
from mluops_cli.reports.junit import junit_documents
from mluops_cli.reports.markdown.document import markdown_text, step_summary
from mluops_cli.results.finished import FinishedRun, read_run
from tests.mluops_cli.reports.sample import BOUND_SENTENCE, doubtful_records, of_outputs, record, write_run

BEYOND = f"y: {BOUND_SENTENCE}"
RACE = "y: repeats differ by more than rounding explains"


@pytest.fixture
def run(tmp_path: Path) -> FinishedRun:
    """The finished run of the records of the sample."""
    return read_run(write_run(tmp_path / "out", doubtful_records()))


@pytest.fixture
def clean(tmp_path: Path) -> FinishedRun:
    """A run without any doubt."""
    return read_run(write_run(tmp_path / "clean", [record("op/general/a"), record("op/general/b", "fail")]))


def printed(run: FinishedRun, **console: Any) -> str:
    out = io.StringIO()
    report = ConsoleReport(Console(file=out, **console))
    report(RunStarted(CaseOptions("x"), len(run.records), 1, Path("out")))
    for each in run.records:
        report(CaseFinished(each))
    report(RunFinished(run.tally, run.exit_code, 1.5))
    return out.getvalue()


def test_which_cases_are_doubtful(run: FinishedRun) -> None:
    found = {each.case.rpartition("/")[2]: [tuple(one) for one in cautions(each)] for each in run.records}
    assert {name: doubts for name, doubts in found.items() if doubts} == {
        "beyond": [("beyond", BEYOND)],
        "race": [("varies", RACE)],
    }


def test_programs(tmp_path: Path) -> None:
    """Which a kernel has started is told by every report; a case that fails has its reason already."""
    started = {"programs": ["python3", "sh"]}
    made = [record("op/general/a") | started, record("op/general/b", "fail") | started, record("op/general/c")]
    run = read_run(write_run(tmp_path / "out", made))
    text = "the kernel's process has started python3, sh: a program can use what holds the answer"
    assert f"STARTS op/general/a: {text}" in printed(run).splitlines()
    assert [row["programs"] for row in csv.DictReader(io.StringIO(csv_text(run)))] == ["python3, sh", "python3, sh", ""]
    ((_, document),) = junit_documents(run)
    assert document.count(f"<system-out>{text}</system-out>") == 2
    assert f"- **starting programs** `op/general/a`: {text}" in markdown_text(run)
    assert f"| starting programs | `op/general/a` | {text} |" in step_summary(run, 10_000)
    assert '<strong class="starts">2 starting programs</strong>' in html_text(run)
    (tmp_path / "op.yaml").write_text("", encoding="utf-8")
    assert "starting programs" in report_to_server(run, "github", {"GITHUB_WORKSPACE": str(tmp_path)})


def test_a_bound_without_a_sentence_is_told_too(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path, [of_outputs("op/general/a", beyond=True, y={})]))
    ((caution,),) = map(cautions, run.records)
    assert caution.text == "an output is further from the baseline than rounding explains"


def test_console(run: FinishedRun, clean: FinishedRun) -> None:
    lines = printed(run).splitlines()
    assert f"BEYOND op/general/beyond: {BEYOND}" in lines
    assert f"VARIES op/network/race: {RACE}" in lines
    assert "repeated cases: 1 identical, 1 varying within the error bound, 1 varying beyond the error bound" in lines
    assert "1 case passes beyond the error bound of any correct kernel: --strict fails on them" in lines
    without = printed(clean)
    assert not re.search("BEYOND|VARIES|repeated|beyond", without)


def test_console_has_a_colour_for_them(run: FinishedRun, clean: FinishedRun) -> None:
    magenta, green = "\x1b[35mpass", "\x1b[32mpass"
    text = printed(run, width=200, force_terminal=True, color_system="standard")
    rows = {line.split()[0]: line for line in text.splitlines() if " y diff1 " in line}
    assert magenta in rows["op/general/beyond"]
    assert magenta in rows["op/network/race"]
    assert green in rows["op/general/within"]
    assert green in rows["op/general/atomics"]


def test_console_tells_them_among_many_cases(tmp_path: Path) -> None:
    many = [record(f"op/general/{n}") for n in range(ROWS + 1)]
    text = printed(read_run(write_run(tmp_path, [*many, *doubtful_records()])))
    assert f"BEYOND op/general/beyond: {BEYOND}\n" in text


def test_junit(run: FinishedRun, clean: FinishedRun) -> None:
    ((_, document),) = junit_documents(run)
    cases = {case.attrib["name"]: case for case in ElementTree.fromstring(document.encode()).iter("testcase")}
    assert {name.rpartition("/")[2]: case.findtext("system-out") for name, case in cases.items()} == {
        "within": "outputs of repeated calls: y: identical",
        "beyond": f"beyond the error bound: {BEYOND}",
        "atomics": "outputs of repeated calls: y: varies_within_bound",
        "race": "outputs of repeated calls: y: varies_beyond_bound, z: identical",
        "wrong": f"beyond the error bound: {BEYOND}",
        "plain": None,
    }
    assert [child.tag for child in cases["op/general/beyond"]] == ["system-out"]
    assert [child.tag for child in cases["op/network/wrong"]] == ["failure", "system-out"]
    ((_, document),) = junit_documents(clean)
    assert "system-out" not in document


def test_junit_tells_before_what_was_printed(tmp_path: Path) -> None:
    made = of_outputs("op/general/a", "fail", beyond=True, y={"bound_sentence": "[1]: 3 x"}) | {"printed": "boom"}
    ((_, document),) = junit_documents(read_run(write_run(tmp_path, [made])))
    assert "<system-out>beyond the error bound: y: [1]: 3 x\nboom</system-out>" in document


def test_ci_annotations_are_warnings(run: FinishedRun, tmp_path: Path) -> None:
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "op.yaml").write_text("op: x\n", encoding="utf-8")
    text = report_to_server(run, "github", {"GITHUB_WORKSPACE": str(tmp_path)})
    error, warning = text.splitlines()
    assert error.startswith("::error file=cases/op.yaml,line=12,title=fail%3A op/network/wrong::")
    assert warning == (
        "::warning file=cases/op.yaml,line=12,title=2 doubtful cases of op (beyond the error bound%2C varying between "
        f"repeats)::beyond the error bound op/general/beyond: {BEYOND}%0A"
        f"varying between repeats op/network/race: {RACE}%0Arepro: mluops run cases/op/general/beyond.pb --impl tiled"
    )
    report_to_server(run, "gitlab", {"CI_PROJECT_DIR": str(tmp_path)})
    issues = json.loads((run.out / "gl-code-quality-report.json").read_text(encoding="utf-8"))
    assert [issue["severity"] for issue in issues] == ["critical", "minor"]
    assert len({issue["fingerprint"] for issue in issues}) == 2


def test_warnings_leave_room_for_errors(tmp_path: Path) -> None:
    """GitHub shows ten errors and ten warnings."""
    doubts = [of_outputs(f"op/general/d{n}", beyond=True, y={}) | {"place": f"op.yaml:{n + 1}"} for n in range(30)]
    failing = [record(f"op/general/f{n}", "fail", place=f"op.yaml:{n + 1}") for n in range(30)]
    (tmp_path / "op.yaml").write_text("", encoding="utf-8")
    found = make_annotations(read_run(write_run(tmp_path / "out", doubts + failing)), tmp_path)
    assert [each.level for each in found] == ["error"] * ANNOTATIONS + ["warning"] * ANNOTATIONS
    assert found[-1].title == "21 more doubtful cases of 21 entries"
    assert sum(len(each.records) for each in found) == 60


def test_csv(run: FinishedRun) -> None:
    rows = csv.DictReader(io.StringIO(csv_text(run)))
    assert {
        row["case"].rpartition("/")[2]: (row["bound_ratio"], row["beyond_bound"], row["repeat"]) for row in rows
    } == {
        "within": ("0.5", "False", "identical"),
        "beyond": ("9690.0", "True", ""),
        "atomics": ("0.25", "False", "varies_within_bound"),
        "race": ("", "", "varies_beyond_bound"),
        "wrong": ("inf", "True", ""),
        "plain": ("", "", ""),
    }


def test_markdown(run: FinishedRun, clean: FinishedRun) -> None:
    text = markdown_text(run)
    assert "Passed beyond the error bound: 1." in text
    assert "Repeated cases: 1 identical, 1 varying within the error bound, 1 beyond it." in text
    assert "- **beyond the error bound** `op/general/beyond`: y: \\[0, 3\\]: 9.69e+03 x what" in text
    assert f"- **varying between repeats** `op/network/race`: {RACE}" in text
    assert "| stability | varying by rounding at most when repeated | 3 | 2 |" in text
    assert "- **超出误差界** `op/general/beyond`" in markdown_text(run, "zh")
    assert not re.search("beyond|[Rr]epeated cases", markdown_text(clean))
    summary = step_summary(run, 10_000)
    assert (
        "| fail | `op/network/wrong` | the reason of a fail |\n| beyond the error bound | `op/general/beyond` |"
        in summary
    )
    assert f"| varying between repeats | `op/network/race` | {RACE} |" in summary


def test_the_step_summary_leaves_doubts_out_first(tmp_path: Path) -> None:
    doubts = [of_outputs(f"op/general/d{n}", beyond=True, y={"bound_sentence": BOUND_SENTENCE}) for n in range(100)]
    run = read_run(write_run(tmp_path, [*doubts, record("op/general/f", "fail")]))
    text = step_summary(run, 3000)
    assert len(text.encode()) <= 3000
    assert "`op/general/f`" in text
    (left,) = re.findall(r"Cases that are only in the report: (\d+)\.", text)
    assert 0 < int(left) < 100


def test_html(run: FinishedRun, clean: FinishedRun) -> None:
    text = html_text(run)
    assert '<strong class="beyond">1 beyond the error bound</strong>' in text
    assert '<strong class="varies">1 varying between repeats</strong>' in text
    assert 'data-doubt="beyond" aria-pressed="false">1 beyond the error bound</button>' in text
    cells = dict(re.findall(r'class="cell (\w+)" data-op="op" data-suite="(\w+)"', text))
    assert cells == {"beyond": "general", "fail": "network"}
    assert 'title="3 pass, 1 beyond the error bound"' in text
    sections = re.findall(r"<article.*?</article>", text, re.S)
    words = [re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", each)) for each in sections]
    assert len(sections) == 3
    assert "the reason of a fail" in words[0]
    assert f"beyond the error bound {BEYOND}" in words[0]
    assert f"beyond the error bound : {BEYOND}" in words[1]
    assert "outputs of repeats y: varies_beyond_bound, z: identical" in words[2]
    assert "1 identical, 1 varying within the error bound, 1 varying beyond the error bound" in text
    data = json.loads(re.findall(r'id="data">(.*?)</script>', text)[0])
    doubts = {row[0]: [data["doubt"][at] for at in row[10]] for row in data["rows"]}
    assert {case: found for case, found in doubts.items() if found} == {
        "op/general/beyond": ["beyond"],
        "op/network/race": ["varies"],
    }
    assert not re.search(
        "beyond|varying", re.sub("<(script|style).*?</(script|style)>", "", html_text(clean), flags=re.S)
    )


def test_the_summary_of_repeats() -> None:
    assert repeats_summary({}) == ""
    assert repeats_summary({"identical": 2}) == "2 identical"
