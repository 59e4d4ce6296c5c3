"""What `run --perf` measured, in HTML, Markdown and CSV."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

from mluops_cli.reports.csv import csv_text
from mluops_cli.reports.html.page import html_text
from mluops_cli.reports.markdown.document import markdown_text
from mluops_cli.results.finished import FinishedRun, read_run
from tests.mluops_cli.reports.sample import HOSTILE, record, write_run

PERF: dict[str, Any] = {
    "runs": 12, "cache": "fresh", "timer": "host", "min_us": 90.0, "spread": 0.1, "relative_error": 0.015,
    "io_bytes": 1000.0, "ops": None, "peak_bandwidth": 1e9, "peak_ops": None, "peaks": "MLU370-X8",
    "bottleneck": "io", "file_latency_us": 80.0, "relative_latency": 1.25,
}  # fmt: skip
PROBLEM = "error of measurement: io efficiency 300.0% of the peak"
FAST: dict[str, Any] = {
    "latency_us": 100.0,
    "latency_interval_us": [98.0, 101.5],
    "interface_us": 130.0,
    "worker": "tcp://a:1",
}


def measured(name: str = "a", **more: Any) -> dict[str, Any]:
    return record(f"op/network/{name}", **(FAST | {"perf": PERF, "compute_efficiency": None} | more))


def impossible() -> dict[str, Any]:
    """As the meter leaves it: a problem, no efficiencies."""
    return measured("b", perf=PERF | {"problem": PROBLEM}, io_efficiency=None)


def run_of(folder: Path, *records: dict[str, Any]) -> FinishedRun:
    return read_run(write_run(folder, list(records)))


def words(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", html))


def rows_of(html: str) -> list[list[str]]:
    (table,) = re.findall(r'<table class="timed">.*?</table>', html, re.S)
    cells = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.S) for row in re.findall("<tr.*?</tr>", table, re.S)]
    return [[words(cell).strip() for cell in row] for row in cells]


def test_html_has_a_row_per_measured_case(tmp_path: Path) -> None:
    untimed = record("op/network/c", latency_us=None, io_efficiency=None, compute_efficiency=None)
    head, first, second = rows_of(html_text(run_of(tmp_path, measured(), impossible(), untimed)))
    assert dict(zip(head, first, strict=True)) == {
        "case": "op/network/a", "latency": "100 µs", "95 % interval": "98 µs – 102 µs", "interface time": "130 µs",
        "io efficiency": "45.0%", "compute efficiency": "–", "bounded by": "io", "workspace": "1.0 KiB", "worker": "tcp://a:1",
        "remark": "1.25 times the case file&#39;s latency",
    }  # fmt: skip
    assert (second[0], second[4], second[-1]) == ("op/network/b", "–", PROBLEM)


def test_html_compares_with_the_run_before(tmp_path: Path) -> None:
    base = run_of(tmp_path / "base", measured(latency_us=80.0))
    run = run_of(tmp_path / "new", measured(), measured("new"))
    head, first, second = rows_of(html_text(run, base))
    at = head.index("now / before")
    assert (first[at], second[at]) == ("1.25", "–")


def test_impossible_figures_are_no_dot_of_the_roofline(tmp_path: Path) -> None:
    assert html_text(run_of(tmp_path / "1", measured(), impossible())).count('<circle class="dot') == 1
    assert "Roofline" not in html_text(run_of(tmp_path / "2", impossible()))


def test_html_ends_the_table_somewhere_and_has_none_without_measurements(tmp_path: Path) -> None:
    text = html_text(run_of(tmp_path / "1", *(measured(str(number)) for number in range(503))))
    assert len(rows_of(text)) == 501
    assert "3 more are in the CSV file" in text
    plain = record("op/network/c", io_efficiency=None, compute_efficiency=None)
    assert '<table class="timed">' not in html_text(run_of(tmp_path / "2", plain))


def test_a_failing_case_tells_its_figures(tmp_path: Path) -> None:
    text = html_text(run_of(tmp_path, measured(status="fail", outputs_kept="out/failures/op/network/a~outputs.pb")))
    (section,) = re.findall(r"<article.*?</article>", text, re.S)
    told = words(section)
    for expected in ("98 µs – 102 µs", "130 µs", "45.0%", "tcp://a:1", "out/failures/op/network/a~outputs.pb"):
        assert expected in told


def test_hostile_texts_of_a_measurement_stay_texts(tmp_path: Path) -> None:
    for number, text in enumerate(HOSTILE.values()):
        run = run_of(tmp_path / str(number), measured(worker=text, perf=PERF | {"problem": text, "bottleneck": text}))
        page = html_text(run)
        assert len(re.findall("<script", page)) == 2
        assert "<img" not in page
        assert "\x1b" not in page + csv_text(run) + markdown_text(run)


def test_markdown_has_interval_and_remark(tmp_path: Path) -> None:
    run = run_of(tmp_path, measured(), impossible())
    text = markdown_text(run)
    shape = "`[2,50,64] -> [2,50,64]`"
    first = (
        f"| op | 100 | 130 | 45.0% | - | 1024 | float | {shape} | 98 µs – 102 µs | 1.25 times the case file's latency |"
    )
    assert first in text.splitlines()
    assert f"| op | 100 | 130 | - | - | 1024 | float | {shape} | 98 µs – 102 µs | {PROBLEM} |" in text.splitlines()
    assert "| 95 % 置信区间 | 备注 |" in markdown_text(run, "zh")


def test_csv_has_the_figures(tmp_path: Path) -> None:
    first, second, third = csv.DictReader(
        io.StringIO(csv_text(run_of(tmp_path, measured(), impossible(), record("op/network/c"))))
    )
    expected = {
        "latency_us": "100.0", "latency_low_us": "98.0", "latency_high_us": "101.5", "interface_us": "130.0",
        "worker": "tcp://a:1", "perf_bottleneck": "io", "perf_runs": "12", "perf_cache": "fresh",
        "perf_relative_error": "0.015", "perf_relative_latency": "1.25", "perf_peaks": "MLU370-X8", "perf_problem": "",
    }  # fmt: skip
    assert {name: first[name] for name in expected} == expected
    assert second["perf_problem"] == PROBLEM
    assert {third[name] for name in expected if name.startswith(("perf_", "latency_low"))} == {""}
