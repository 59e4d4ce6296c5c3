"""The HTML report as a text: complete, inert, self-contained. How it behaves is in test_browser.py."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

from mluops_cli.reports.dispatch import ReportFiles
from mluops_cli.reports.html.charts import Point, decade_histogram, density_strip, latency_ratios, roofline
from mluops_cli.reports.html.page import html_text
from mluops_cli.results.finished import read_run
from tests.mluops_cli.reports.sample import HOSTILE, hostile_records, mixed_records, record, write_run


class Page(HTMLParser):
    """Elements with their attributes, and the texts of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.texts: list[str] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        (self.scripts if self._inside == "script" else self.texts).append(data)


def page(tmp_path: Path, records: list[dict[str, object]]) -> tuple[str, Page]:
    text = html_text(read_run(write_run(tmp_path, records)))
    return text, Page(text)


def test_it_needs_nothing_else(tmp_path: Path) -> None:
    text, read = page(tmp_path, mixed_records())
    for tag, attributes in read.elements:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form")
        assert not attributes.get("src")
        href = attributes.get("href")
        assert href is None or href.startswith("#")
    assert "http" not in re.sub("http-equiv", "", text)
    assert "url(" not in text
    assert "@import" not in text


def test_only_our_script_may_run(tmp_path: Path) -> None:
    text, read = page(tmp_path, hostile_records())
    data, script = read.scripts
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = (a["content"] for tag, a in read.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert not [name for _, attributes in read.elements for name in attributes if name.startswith("on")]
    assert len(re.findall("<script", text)) == 2
    assert json.loads(data)["rows"]


def test_hostile_texts_make_no_elements(tmp_path: Path) -> None:
    _, tame = page(tmp_path / "a", [record("op/network/a", "fail")])
    text, read = page(tmp_path / "b", hostile_records())
    assert {tag for tag, _ in read.elements} <= {tag for tag, _ in tame.elements} | {"details", "summary", "pre", "a"}
    text.encode()
    assert "\x00" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    shown = "".join(read.texts)
    assert HOSTILE["script"] in shown
    assert "half \\ud800 pair" in shown


def test_the_verdict_comes_first_then_matrix_cases_and_failures(tmp_path: Path) -> None:
    text, read = page(tmp_path, mixed_records())
    order = ["<h1>", "Operators and suites", ">Cases<", "Failing and doubtful cases", ">Performance<", ">Environment<"]
    places = [text.index(each) for each in order]
    assert places == sorted(places)
    assert "300 of 307 cases passed" in re.sub(r"\s+", " ", re.sub("<[^>]+>", "", text))
    cells = [a for tag, a in read.elements if tag == "button" and "cell" in (a.get("class") or "")]
    assert len(cells) == 42
    assert {"class": "cell fail", "title": "7 pass, 3 fail"}.items() <= next(
        a for a in cells if (a["data-op"], a["data-suite"]) == ("psamask_forward", "boundary")
    ).items()


def test_a_section_per_failing_case_tells_all(tmp_path: Path) -> None:
    text, _ = page(tmp_path, mixed_records())
    sections = re.findall(r"<article.*?</article>", text, re.S)
    assert len(sections) == 7  # 3 fail, crash, timeout, mistrusted, waived
    words = re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", sections[0]))
    for expected in (
        "psamask_forward/boundary/tail_0",
        "mluops run cases/psamask_forward/boundary/tail_0.pb --impl tiled",
        "diff1 0.5 0.003 166.667 0.5 category composite",
        "96 of 6400 elements wrong",
        "Positions of the wrong elements",
        "Relative error",
        "first [0, 0, 61] 0 0.25 1048576",
        "worst [1, 3, 63] NaN or Inf 0.96",
        "cases/psamask_forward.yaml:12",
    ):
        assert expected in words, expected
    assert "\\x1b[31mboom" in "".join(sections)


def test_d16_anchors_are_ids_and_the_parameters_are_told(tmp_path: Path) -> None:
    made = [
        record("op/general/a", "fail", params={"h_mask": 3, "pad": [1, 1]}),
        record("op/general/a b", "fail"),
        record("op/general/a_b", "fail"),
        record("op/zero_element/none", "empty"),
    ]
    text, read = page(tmp_path, made)
    anchors: list[str] = [str(attributes["id"]) for tag, attributes in read.elements if tag == "article"]
    assert anchors == ["case-op/general/a", anchors[1], "case-op/general/a_b"]
    assert re.fullmatch(r"case-op/general/a_b~[0-9a-f]{8}", anchors[1])
    assert "<dt>parameters</dt><dd><bdi>h_mask=3, pad=[1, 1]</bdi></dd>" in text
    assert "3 failed</strong>, 1 empty" in text
    assert "op: y, zeros instead of values, tail of axis 2" in text


def test_the_list_has_every_case(tmp_path: Path) -> None:
    records = mixed_records()
    _, read = page(tmp_path, records)
    data = json.loads(read.scripts[0], parse_constant=lambda word: 1 / 0)
    assert [row[0] for row in data["rows"]] == [each["case"] for each in records]
    assert [data["status"][row[3]] for row in data["rows"]] == [each["status"] for each in records]


def test_sections_end_somewhere(tmp_path: Path) -> None:
    text, _ = page(tmp_path, [record(f"op/general/{n}", "crash") for n in range(1005)])
    assert text.count("<article") == 1000
    assert "5 more are in the list of cases" in text


def test_latency_against_a_base_run(tmp_path: Path) -> None:
    base = read_run(write_run(tmp_path / "base", [record("op/network/a", latency_us=100.0)]))
    run = read_run(write_run(tmp_path / "new", [record("op/network/a", latency_us=200.0)]))
    text = html_text(run, base)
    assert "op/network/a: 100 µs before, 200 µs now" in text
    assert 'class="dot slow"' in text
    assert "Latency against" not in html_text(run)


def test_a_base_run_read_for_a_report_is_enough(tmp_path: Path) -> None:
    base, out = write_run(tmp_path / "base", mixed_records()), write_run(tmp_path / "new", mixed_records()[::2])
    (path,) = ReportFiles(out, html=tmp_path / "r.html", base=base).write(read_run(out))
    assert path.read_text(encoding="utf-8") == html_text(read_run(out), read_run(base))


def test_pictures_put_things_where_they_belong() -> None:
    strip = density_strip([0, 0, 5, 10], 400)
    cells = re.findall(r'class="heat" x="([\d.]+)" y="0" width="([\d.]+)" height="22" fill-opacity="([\d.]+)"', strip)
    assert [(float(x), float(o)) for x, _, o in cells] == [(320.0, 0.575), (480.0, 1.0)]
    bars = re.findall(
        r'class="bar" x="([\d.]+)" y="([\d.]+)" width="[\d.]+" height="([\d.]+)"', decade_histogram([[-2, 5], [0, 10]])
    )
    assert [tuple(map(float, bar)) for bar in bars] == [(10.0, 45.0, 35.0), (106.0, 10.0, 70.0)]
    dots = re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', roofline([Point(1.0, 1.0, "<b>"), Point(1e9, 1e-9, "x")]))
    assert len(dots) == 2
    assert float(dots[1][0]) == 620.0  # what lies outside is drawn at the edge
    assert "&lt;b&gt;" in roofline([Point(1.0, 1.0, "<b>")])
    assert latency_ratios([Point(5.0, 1.0, "a")], [5.0]).count("<circle") == 1
    assert decade_histogram([]) == ""
    assert roofline(Point(1.0, 0.5, str(n)) for n in range(3001)).count("<circle") == 3000
