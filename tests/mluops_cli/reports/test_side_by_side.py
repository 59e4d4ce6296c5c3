"""Several implementations side by side: figures by hand, hostile texts, what can't be compared."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mluops_cli.reports.side_by_side.matrix import Cell, Matrix, side_by_side
from mluops_cli.reports.side_by_side.matrix_page import html_text
from mluops_cli.reports.side_by_side.texts import csv_lines, markdown_lines
from mluops_cli.results.finished import FinishedRun, read_run
from schemas.errors import InputError
from tests.mluops_cli.reports.sample import HOSTILE, hostile_records, record, write_run


def timed(case: str, latency: float, status: str = "pass", ratio: float = 0.25, **more: Any) -> dict[str, Any]:
    made = record(case, status, latency_us=latency, device="cpu0", **more)
    made["outputs"]["y"]["bound_ratio"] = ratio
    return made


def run_of(out: Path, impl: str, records: list[dict[str, Any]]) -> FinishedRun:
    return read_run(write_run(out, [each | {"impl": impl} for each in records], impl=impl))


@pytest.fixture
def matrix(tmp_path: Path) -> Matrix:
    first = [
        timed("a/general/one", 10.0),
        timed("a/general/two", 20.0, ratio=0.5),
        timed("a/general/wrong", 5.0),
        timed("b/general/only", 1.0),
    ]
    second = [
        timed("a/general/one", 20.0),  # 2 x
        timed("a/general/two", 160.0),  # 8 x: the geometric mean is 4
        timed("a/general/wrong", 1.0, "fail", ratio=3.0),  # how fast a wrong answer comes says nothing
        timed("c/general/only", 1.0),
    ]
    return side_by_side([run_of(tmp_path / "1", "mine", first), run_of(tmp_path / "2", "theirs", second)])


def test_the_verdict_is_the_worst_status_and_empty_only_where_none_passed() -> None:
    assert Cell(Counter({"pass": 37, "empty": 1})).verdict == "pass"
    assert Cell(Counter({"empty": 2})).verdict == "empty"
    assert Cell(Counter({"pass": 3, "skip": 1, "empty": 1})).verdict == "skip"
    assert Cell(Counter({"pass": 3, "empty": 1, "fail": 1, "crash": 1})).verdict == "fail"
    assert Cell().verdict == ""


def test_verdicts_latency_ratios_and_bound_ratios(matrix: Matrix) -> None:
    assert [*matrix.rows] == ["a", "b", "c"]
    mine, theirs = matrix.rows["a"]
    assert mine is not None
    assert theirs is not None
    assert (mine.good, mine.cases, mine.verdict, mine.latency_ratio, mine.bound_ratio) == (3, 3, "pass", 1.0, 0.5)
    assert (theirs.good, theirs.cases, theirs.verdict, theirs.bound_ratio) == (2, 3, "fail", 3.0)
    assert theirs.latency_ratio == pytest.approx(4.0)
    assert [cell is None for cell in (*matrix.rows["b"], *matrix.rows["c"])] == [False, True, True, False]
    assert matrix.apart == {"a/general/wrong": ["pass", "fail"]}


def test_markdown_csv_and_html_say_the_same(matrix: Matrix) -> None:
    text = "".join(markdown_lines(matrix))
    assert "| operator | `mine` | `theirs` |\n| --- | --- | --- |\n" in text
    assert "| `a` | 3/3, 1 x (3 cases), bound 0.5 | 2/3, 1 fail, 4 x (2 cases), bound 3 |" in text
    assert "| `a/general/wrong` | pass | fail |" in text
    rows = [*csv.DictReader(io.StringIO("".join(csv_lines(matrix))))]
    assert [(row["op"], row["impl"], row["verdict"], row["cases"]) for row in rows] == [
        ("a", "mine", "pass", "3"),
        ("a", "theirs", "fail", "3"),
        ("b", "mine", "pass", "1"),
        ("c", "theirs", "pass", "1"),
    ]
    assert float(rows[1]["latency_ratio"]) == pytest.approx(4.0)
    assert (rows[1]["bound_ratio"], rows[1]["fail"]) == ("3.0", "1")
    words = re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", html_text(matrix).split("<body>")[1]))
    assert "a 3/3 1 x bound 0.5 2/3 1 failing 4 x bound 3" in words
    assert "a/general/wrong pass fail" in words


def test_latencies_of_other_devices_and_files_are_not_compared(tmp_path: Path) -> None:
    names = ("same", "device", "file", "problem")
    first = [timed(f"a/general/{name}", 10.0, case_hash="1") for name in names]
    second = [timed(f"a/general/{name}", 30.0, case_hash="1") for name in names]
    second[1]["device"] = "gpu0"
    second[2]["case_hash"] = "2"
    second[3]["perf"] = {"problem": "error of measurement: io efficiency 111.6%"}
    matrix = side_by_side([run_of(tmp_path / "1", "x", first), run_of(tmp_path / "2", "y", second)])
    cell = matrix.rows["a"][1]
    assert cell is not None
    assert (cell.ratios, cell.incomparable, matrix.other_files) == ([3.0], 3, ["a/general/file"])
    assert "3 latencies not compared" in "".join(markdown_lines(matrix))


def test_two_runs_of_one_implementation_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    runs = [run_of(tmp_path / name, "same", [timed("a/general/x", 1.0)]) for name in ("old", "new")]
    assert side_by_side(runs).names == (f"same ({tmp_path / 'old'})", f"same ({tmp_path / 'new'})")
    with pytest.raises(InputError, match="two implementations or more"):
        side_by_side(runs[:1])


def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    impls = (HOSTILE["script"], HOSTILE["formula"])
    matrix = side_by_side([run_of(tmp_path / str(at), impl, hostile_records()) for at, impl in enumerate(impls)])
    page = html_text(matrix)
    assert "<script" not in page
    assert "<img" not in page
    rows = list(csv.reader(io.StringIO("".join(csv_lines(matrix)))))
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "@", "\t"))]
    assert "<script" not in re.sub("`[^`]*`", "", "".join(markdown_lines(matrix)))
