"""JUnit: the dialect, against the rules of the schema that Jenkins' plugin uses, and hostile texts."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mluops_cli.reports.junit import junit_documents
from mluops_cli.results.finished import read_run
from tests.mluops_cli.reports.sample import HOSTILE, hostile_records, mixed_records, record, write_run

# jenkins-junit.xsd, rewritten: element -> attributes (required ones first), then what may be inside, in which order.
_SUITE = {"name", "tests", "failures", "errors", "group", "time", "skipped", "timestamp", "hostname", "id", "package",
          "file", "log", "url", "version"}  # fmt: skip
_CASE = {"name", "assertions", "time", "classname", "status", "class", "file", "line", "log", "group", "url"}
ATTRIBUTES = {
    "testsuites": ({"name", "time", "tests", "failures", "disabled", "errors"}, set()),
    "testsuite": (_SUITE, {"name"}),
    "properties": (set(), set()),
    "property": ({"name", "value"}, {"name", "value"}),
    "testcase": (_CASE, {"name"}),
    "skipped": ({"message", "type"}, set()),
    "error": ({"message", "type"}, set()),
    "failure": ({"message", "type"}, set()),
    "system-out": (set(), set()),
    "system-err": (set(), set()),
}
_TEXT = r"(system-out |system-err )*"
CONTENT = {
    "testsuites": r"(testsuite )*",
    "testsuite": r"(properties )?(testcase )*(system-out )?(system-err )?",
    "properties": r"(property )+",
    "testcase": rf"(skipped )?{_TEXT}(error |failure )?{_TEXT}",
}
NUMBERS = {"tests": r"\d+", "failures": r"\d+", "errors": r"\d+", "skipped": r"\d+", "time": r"\d+\.\d+"}


def problems(element: ElementTree.Element) -> list[str]:
    """What the schema forbids of an element and all in it."""
    if element.tag not in ATTRIBUTES:
        return [f"element {element.tag}"]
    allowed, required = ATTRIBUTES[element.tag]
    found = [f"{element.tag}@{name}" for name in element.attrib if name not in allowed]
    found += [f"{element.tag} without {name}" for name in required if name not in element.attrib]
    found += [
        f"{element.tag}@{k}={v}" for k, v in element.attrib.items() if not re.fullmatch(NUMBERS.get(k, "(?s).*"), v)
    ]
    inside = "".join(f"{child.tag} " for child in element)
    if not re.fullmatch(CONTENT.get(element.tag, ""), inside):
        found.append(f"{element.tag} holds {inside}")
    return found + [problem for child in element for problem in problems(child)]


def parsed(out: Path) -> ElementTree.Element:
    ((name, document),) = junit_documents(read_run(out))
    assert name == ""
    return ElementTree.fromstring(document.encode())


def cases(root: ElementTree.Element) -> dict[str, ElementTree.Element]:
    return {case.attrib["name"]: case for case in root.iter("testcase")}


@pytest.mark.parametrize("planted", [
    "<testsuites><testsuite><testcase name='a'/></testsuite></testsuites>",
    "<testsuites><testsuite name='s'><testcase/></testsuite></testsuites>",
    "<testsuites><testsuite name='s' tests='x'/></testsuites>",
    "<testsuites><testsuite name='s'><testcase name='a' time='1e-05'/></testsuite></testsuites>",
    "<testsuites><testsuite name='s'><testcase name='a'><failure/><skipped/></testcase></testsuite></testsuites>",
    "<testsuites><testsuite name='s'><testcase name='a' owner='x'/></testsuite></testsuites>",
])  # fmt: skip
def test_the_rewritten_schema_sees_faults(planted: str) -> None:
    assert problems(ElementTree.fromstring(planted))


def test_it_is_valid_and_counts_are_right(tmp_path: Path) -> None:
    root = parsed(write_run(tmp_path, mixed_records()))
    assert problems(root) == []
    suites = {suite.attrib["name"]: suite for suite in root}
    assert len(suites) == 7
    forward = suites["tiled.psamask_forward"].attrib
    assert (forward["failures"], forward["errors"], forward["skipped"]) == ("3", "0", "0")
    assert forward["timestamp"] == "2026-02-03T04:05:06+00:00"
    assert sum(int(suite.attrib["tests"]) for suite in root) == 307
    assert sum(int(suite.attrib["errors"]) for suite in root) == 2


def test_names_are_the_case_ids_and_unique(tmp_path: Path) -> None:
    records = mixed_records()
    root = parsed(write_run(tmp_path, records))
    assert sorted(case.attrib["name"] for case in root.iter("testcase")) == sorted(each["case"] for each in records)
    assert cases(root)["psamask_forward/boundary/tail_0"].attrib["classname"] == "tiled.psamask_forward.boundary"


@pytest.mark.parametrize(("status", "element"), [
    ("pass", None), ("empty", None), ("fail", "failure"), ("xpass", "failure"), ("error", "error"), ("crash", "error"),
    ("timeout", "error"), ("skip", "skipped"), ("waived", "skipped"), ("mistrusted", "skipped"),
])  # fmt: skip
def test_what_each_status_becomes(tmp_path: Path, status: str, element: str | None) -> None:
    (case,) = cases(parsed(write_run(tmp_path, [record("op/general/a", status)]))).values()
    assert [child.tag for child in case] == ([element] if element else [])
    if element:
        assert case[0].attrib["type"] == status
        assert f"the reason of a {status}" in case[0].attrib["message"]


def test_d4_the_message_is_the_reason_in_one_line(tmp_path: Path) -> None:
    (case,) = cases(parsed(write_run(tmp_path, [record("op/general/a", "fail", reason="two\nlines")]))).values()
    message = case[0].attrib["message"]
    assert message == "fail: two\\nlines"
    assert "y diff1 0.5 > 0.003 (threshold from category composite)" in (case[0].text or "")
    assert "repro: mluops run cases/op/general/a.pb" in (case[0].text or "")


def test_seconds_have_a_dot_however_small(tmp_path: Path) -> None:
    written = [
        record(f"op/general/{n}", seconds=seconds) for n, seconds in enumerate((0.00001, 0.0, 12345678.9, 3, None))
    ]
    root = parsed(write_run(tmp_path, written))
    assert problems(root) == []
    assert [case.attrib["time"] for case in root.iter("testcase")] == ["0.0", "0.0", "12345678.9", "3.0", "0.0"]


@pytest.mark.parametrize("status", ["pass", "fail"])
def test_names_are_what_they_were_whatever_is_in_them(tmp_path: Path, status: str) -> None:
    name = """op/general/a "b" 'c' <d> &amp; ]]> 中文"""
    (case,) = cases(parsed(write_run(tmp_path, [record(name, status)]))).values()
    assert (case.attrib["name"], case.attrib["classname"]) == (name, "tiled.op.general")


def test_what_an_implementation_printed_is_kept_where_it_failed(tmp_path: Path) -> None:
    out = write_run(
        tmp_path, [record("op/general/a", "crash", printed="\x1b[31mboom"), record("op/general/b", printed="x")]
    )
    failed, passed = cases(parsed(out)).values()
    assert failed.findtext("system-out") == "\\x1b[31mboom"
    assert len(passed) == 0


def test_hostile_texts(tmp_path: Path) -> None:
    root = parsed(write_run(tmp_path, hostile_records()))
    assert problems(root) == []
    found = cases(root)
    assert len(found) == len(HOSTILE) + 2
    assert "op/nul/a\\x00b\\x07" in found
    assert "op/surrogate/half \\ud800 pair \\udfff" in found
    assert f"op/long/{HOSTILE['long']}" in found
    assert any("<script>window.hit=1</script>" in name for name in found)
    assert any("\\u202efdp.exe" in name for name in found)


@pytest.mark.skipif(shutil.which("xmllint") is None, reason="xmllint is not installed")
def test_xmllint_takes_hostile_texts(tmp_path: Path) -> None:
    ((_, document),) = junit_documents(read_run(write_run(tmp_path, hostile_records())))
    (tmp_path / "j.xml").write_text(document, encoding="utf-8")
    done = subprocess.run(["xmllint", "--noout", tmp_path / "j.xml"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_large_report_is_split_by_operator_and_then_by_size(tmp_path: Path) -> None:
    records = [record(f"small/general/{n}") for n in range(3)] + [
        record(f"big/general/{n}", "fail") for n in range(200)
    ]
    limit = 40_000
    documents = junit_documents(read_run(write_run(tmp_path, records)), limit)
    assert len(documents) > 3
    assert len({name for name, _ in documents}) == len(documents)
    assert all(len(document.encode()) <= limit + 200 for _, document in documents)
    roots = [ElementTree.fromstring(document.encode()) for _, document in documents]
    assert [problem for root in roots for problem in problems(root)] == []
    assert sorted(name for root in roots for name in cases(root)) == sorted(each["case"] for each in records)
    assert all(len({case.attrib["classname"] for case in root.iter("testcase")}) == 1 for root in roots)


def test_a17_split_reports_have_distinct_file_names(tmp_path: Path) -> None:
    ops = ["a+b", "a_b", "A_b", "n" * 120, "n" * 121, *(["c"] * 3)]
    records = [record(f"{op}/general/{n}", "fail") for n, op in enumerate(ops)]
    run = read_run(write_run(tmp_path, records))
    documents = dict(junit_documents(run, 10))
    assert len(documents) == len(ops)
    assert len({name.casefold() for name in documents}) == len(documents)
    assert {"A_b", "a_b-2", "a_b-3"} <= documents.keys()


def test_no_results_are_a_document_too(tmp_path: Path) -> None:
    assert len(parsed(write_run(tmp_path, []))) == 0


def test_d27_names_begin_with_the_implementation_or_with_what_is_given(tmp_path: Path) -> None:
    made = record("op/general/a", seconds=0.00049)
    run = read_run(write_run(tmp_path, [made], impl="python:kernels/my.py:roi"))
    for prefix, begin in ((None, "python:kernels_my_py:roi."), ("gpu 1.2", "gpu 1_2."), ("", "")):
        ((_, document),) = junit_documents(run, prefix=prefix)
        (suite,) = ElementTree.fromstring(document)
        (case,) = suite.iter("testcase")
        assert (suite.attrib["name"], case.attrib["classname"]) == (f"{begin}op", f"{begin}op.general")
        assert (suite.attrib["time"], case.attrib["time"]) == ("0.0", "0.0")
