"""CSV and Markdown: the tables, their figures, and what hostile texts do to them."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from mluops_cli.core.escaping import visible
from mluops_cli.reports import csv as table
from mluops_cli.reports.csv import csv_text
from mluops_cli.reports.html.page import html_text
from mluops_cli.reports.markdown.document import TEMPLATES, code, markdown_text, plain, step_summary
from mluops_cli.reports.markdown.test_report import operator_reports
from mluops_cli.reports.markdown.translations import ZH, translator
from mluops_cli.results.finished import FinishedRun, read_run
from schemas.errors import InputError
from tests.mluops_cli.reports.sample import hostile_records, mixed_records, record, write_run


def run_of(tmp_path: Path, records: list[dict[str, Any]], **summary: Any) -> FinishedRun:
    return read_run(write_run(tmp_path, records, **summary))


def tensors(*dims: list[int], dtype: str = "float", layout: str = "NHWC") -> dict[str, Any]:
    return {f"t{n}": {"role": "input", "dtype": dtype, "layout": layout, "dims": each} for n, each in enumerate(dims)}


def test_csv_has_a_row_per_case_and_no_formulas(tmp_path: Path) -> None:
    written = [record("op/general/a", "fail", reason="=1+1"), record("op/general/b"), record("op/general/c", "crash")]
    rows = list(csv.DictReader(io.StringIO(csv_text(run_of(tmp_path, written)))))
    assert [row["case"] for row in rows] == ["op/general/a", "op/general/b", "op/general/c"]
    first = rows[0]
    assert first["reason"] == "'=1+1"
    assert (first["output"], first["criterion"], first["value"], first["threshold"]) == ("y", "diff1", "0.5", "0.003")
    assert (first["latency_us"], first["workspace_bytes"], first["place"]) == ("120.5", "1024", "cases/op.yaml:12")
    assert rows[2]["criterion"] == ""


def test_csv_of_hostile_texts_keeps_its_rows(tmp_path: Path) -> None:
    text = csv_text(run_of(tmp_path, hostile_records()))
    text.encode()
    rows = list(csv.reader(io.StringIO(text)))
    assert len(rows) == len(hostile_records()) + 1
    assert {len(row) for row in rows} == {41}
    assert not any(cell.startswith(("=", "+", "@")) for row in rows for cell in row)


def test_csv_reads_back_as_what_is_visible_in_any_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "_BATCH", 3)
    texts = ["a,b", 'say "x"', '"', "one\ntwo", "\r", "", " ", "'quoted'", "\x1b[0m", "中文, é", "-1", "plain", "plain"]
    written = [record(f"op/general/{n}", "skip", reason=text) for n, text in enumerate(texts)]
    rows = list(csv.DictReader(io.StringIO(csv_text(run_of(tmp_path, written)), newline="")))
    shown = [visible(text) for text in texts]
    assert [row["reason"] for row in rows] == [f"'{text}" if text == "-1" else text for text in shown]
    assert [row["case"] for row in rows] == [each["case"] for each in written]


def test_csv_has_figures_with_all_their_digits(tmp_path: Path) -> None:
    metrics: dict[str, Any] = {
        "latency_us": 1 / 3,
        "seconds": 1e-7,
        "workspace_bytes": 2**40,
        "bit_identical": True,
        "repeats": 3,
    }
    (row,) = csv.DictReader(io.StringIO(csv_text(run_of(tmp_path, [record("op/general/a", **metrics)]))))
    assert {name: row[name] for name in metrics} == {name: str(value) for name, value in metrics.items()}


def test_accuracy_rows_tell_threshold_source_and_worst_value(tmp_path: Path) -> None:
    written = [record("psamask_forward/general/a"), record("psamask_forward/general/b", "fail")]
    (report,) = operator_reports(run_of(tmp_path, written))
    (row,) = report.accuracy()
    assert row == ("y", "diff1", 0.003, "category composite", 2, 0.5, 1)
    assert report.category == "pure_io"


def test_features_count_cases_and_right_ones(tmp_path: Path) -> None:
    written = [
        record("psamask_forward/network/a", tensors=tensors([2, 128]), bit_identical=True, repeats=3),
        record("psamask_forward/boundary/b", "fail", tensors=tensors([2, 65]), bit_identical=False, repeats=3),
        record("psamask_forward/zero_element/c", "empty", tensors=tensors([0, 64], dtype="half")),
        record("psamask_forward/nan_inf/d", tensors=tensors([4, 64])),
        record("psamask_forward/invalid/e", expected_status=["BAD_PARAM"], tensors=tensors([2, 2**31])),
    ]
    (report,) = operator_reports(run_of(tmp_path, written))
    rows = {(row.item, row.kind): (row.cases, row.right) for row in report.features()}
    assert rows["dtypes", "float"] == (3, 2)
    assert rows["dtypes", "half"] == (1, 1)
    assert rows["layouts", "NHWC"] == (4, 3)
    assert rows["sizes", "innermost size a multiple of 64"] == (3, 3)
    assert rows["sizes", "innermost size with a remainder"] == (1, 0)
    assert rows["sizes", "network scale"] == (1, 1)
    assert rows["zero elements", "a size of 0"] == (1, 1)
    assert rows["nan / inf", "inputs with NaN or Inf"] == (1, 1)
    assert rows["stability", "bit-identical when repeated"] == (2, 1)
    assert [each.case for each in report.checks()] == ["psamask_forward/invalid/e"]
    checklist = {row.item: row for row in report.checklist()}
    assert checklist["dtypes"][1:] == ("float", "float, half")
    assert checklist["size limits"].tested == "1"
    assert checklist["zero elements"] == ("zero elements", "N = 0: SUCCESS, H = 0: SUCCESS, W = 0: SUCCESS", "1")


def test_the_report_has_every_table_and_every_failure(tmp_path: Path) -> None:
    written = mixed_records()
    written.append(
        record("psamask_forward/invalid/h_mask_0", expected_status=["BAD_PARAM"], operator_status="BAD_PARAM")
    )
    text = markdown_text(run_of(tmp_path, written))
    summary = text[: text.index("## Results")]
    assert "**Failed.** Passed on `tiled`: 301 of 308. 1 waived. 1 mistrusted. 5 failed:" in summary
    kind = (
        "| 3 | psamask\\_forward: y, zeros instead of values, tail of axis 2 |  | `psamask_forward/boundary/tail_0` |"
    )
    assert kind.replace("\\", "") in summary.replace("\\", "")
    for case in (
        "psamask_forward/boundary/tail_1",
        "roi_crop_forward/network/large",
        "roi_crop_backward/general/endless",
    ):
        assert f"`{case}`" in summary
    assert "| `invalid/h_mask_0` | BAD_PARAM | BAD_PARAM | pass |" in text
    assert "| psamask_forward | 120.5 | - | 45.0% | 20.0% | 1024 | float | `[2,50,64] -> [2,50,64]` |" in text
    for title in ("Accuracy standard", "Checklist", "Feature tests", "Parameter checks", "Performance"):
        assert text.count(f"### {title}") == 7
    assert "| hardware |  | linux-x86\\_64 |" in text or "| hardware |  | linux-x86_64 |" in text


def test_tables_have_as_many_cells_as_their_head(tmp_path: Path) -> None:
    for text in (markdown_text(run_of(tmp_path, hostile_records())), step_summary(read_run(tmp_path), 900_000)):
        text.encode()
        width = None
        for line in text.split("\n"):
            cells = len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) if line.startswith("|") else None
            assert cells is None or width is None or cells == width, line
            width = cells


def test_hostile_texts_are_no_markdown_and_no_html(tmp_path: Path) -> None:
    assert plain("<b> [x](y) | `c`\n# h & **z**") == "&lt;b&gt; \\[x\\](y) \\| \\`c\\`\\\\n\\# h \\& \\*\\*z\\*\\*"
    assert plain("psamask_forward: linux-x86_64") == "psamask_forward: linux-x86_64"
    assert code("a`b``c") == "```a`b``c```"
    assert code("`x|") == "`` `x\\| ``"
    text = markdown_text(run_of(tmp_path, hostile_records()))
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    assert "<script" not in outside
    assert "](javascript" not in outside.replace("\\](javascript", "")


STRANGERS = (
    "_x_", "__x__", "a _b c_ d", "*x*", "~~x~~", "http://evil.example", "see https://a.b/c?d=e_f_g", "www.evil.example",
    "WWW.evil.example", "ftp://x.y", "mailto:a@b.c", "a@b.example", "@name", "cc (@org/team)", "$x^2$", "$$x$$",
    "$`x`$", ":smile:", "#12", "owner/repo#12", "!12", "&12", "%12", "GH-12", "![i](j)", "[x]: y", "<http://a.b>",
    "`a` @b `c`",
)  # fmt: skip


@pytest.mark.parametrize("text", STRANGERS)
def test_b18_texts_of_strangers_are_inert_in_markdown(tmp_path: Path, text: str) -> None:
    """What a parser finds in them is text without anything that a server acts on, or code."""
    run = run_of(tmp_path, [record("op/general/a", "fail", reason=text, impl=text), record("op/general/b")])
    for made in (
        f"{plain(text)}\n",
        f"| a |\n| --- |\n| {plain(text)} |\n",
        markdown_text(run),
        step_summary(run, 900_000),
    ):
        tokens = MarkdownIt("commonmark").enable("table").enable("strikethrough").parse(made)
        inline = [each for token in tokens for each in token.children or ()]
        found = {each.type for each in inline} - {"html_inline"}
        assert found <= {"text", "code_inline", "softbreak", "strong_open", "strong_close"}
        assert {each.content for each in inline if each.type == "html_inline"} == set()
        told = " ".join(
            "".join(each.content for each in group.children or () if each.type == "text") for group in tokens
        )
        assert not re.search(r"[@$]|//|www|:\w+:|[#!&%]\d|GH-", told, re.IGNORECASE)


def test_every_word_of_the_templates_is_translated() -> None:
    said = set()
    for path in TEMPLATES.glob("*.md.j2"):
        said |= set(re.findall(r't\("([^"]+)"', path.read_text(encoding="utf-8")))
    assert said
    assert said - ZH.keys() == set()


def test_chinese(tmp_path: Path) -> None:
    text = markdown_text(run_of(tmp_path, mixed_records()), "zh")
    for words in ("# 测试报告", "## 总结", "### 精度验收标准", "### 功能测试", "### 参数检查", "### 性能测试", "用例"):
        assert words in text
    assert "300 个" in text
    english = set(re.findall(r"^#+ .*", text, re.M)) - {f"## {op}" for op in read_run(tmp_path).by_operator}
    assert not [line for line in english if re.search("[a-z]{4}", line) and "tiled" not in line]
    with pytest.raises(InputError, match="unknown language 'fr'"):
        translator("fr")


def test_c3_unexpected_answers_beyond_the_design_are_told(tmp_path: Path) -> None:
    reason = "answered SUCCESS, not BAD_PARAM: no design demands that"
    beyond = record("op/invalid/a", expected_status=["BAD_PARAM"], beyond_design=True, reason=reason)
    as_expected = beyond | {"case": "op/invalid/b", "operator_status": "BAD_PARAM", "reason": ""}
    run = run_of(tmp_path, [beyond, as_expected, record("op/general/c")])
    for text in (markdown_text(run), step_summary(run, 10_000)):
        assert "**Passed.** Passed on `tiled`: 3 of 3. Unexpected answers beyond the design: 1. Nothing failed." in text
    assert "意外返回" in markdown_text(run, "zh")
    assert "| `invalid/a` | BAD_PARAM | SUCCESS | pass (beyond the design) |" in markdown_text(run)
    (section,) = re.findall(r"<article.*?</article>", html_text(run), re.DOTALL)
    assert reason in section
    assert "no design demands the expected status" in section
    assert "1 unexpected answer beyond the design" in html_text(run)
    rows = [*csv.DictReader(io.StringIO(csv_text(run)))]
    assert [row["beyond_design"] for row in rows] == ["True", "True", "False"]
    assert run_of(tmp_path / "strict", [beyond], strict=True).verdict == "fail"


def test_a15_the_hardware_is_the_device_that_ran_not_the_processor(tmp_path: Path) -> None:
    environment = {"platform": "linux-x86_64", "cpu": "Some CPU", "device": "MLU370-X8, Some CPU"}
    on_device = record("op/general/a", device="MLU370-X8", platform="linux-aarch64")
    text = markdown_text(run_of(tmp_path / "1", [on_device], environment=environment))
    assert "| hardware |  | MLU370-X8, linux-aarch64 |" in text
    text = markdown_text(run_of(tmp_path / "2", [record("op/general/a")], environment=environment))
    assert "| hardware |  | MLU370-X8, Some CPU, linux-x86_64 |" in text


def test_a_run_cut_off_says_so(tmp_path: Path) -> None:
    run = run_of(tmp_path, [record("op/general/a")], not_run=7, interrupted=True)
    assert run.verdict == "incomplete"
    assert "**Incomplete.**" in markdown_text(run)
    assert "cases not run: 7." in markdown_text(run)


def test_nothing_validated_is_no_pass(tmp_path: Path) -> None:
    run = run_of(tmp_path, [record("op/general/a", "skip")])
    assert run.verdict == "fail"
    assert "Nothing was validated." in markdown_text(run)


def test_the_step_summary_keeps_its_limit(tmp_path: Path) -> None:
    run = run_of(tmp_path, [record(f"op/general/{n}", "fail", reason="é" * 200) for n in range(500)])
    text = step_summary(run, 20_000)
    assert 10_000 < len(text.encode()) <= 20_000
    assert "only in the report: " in text
    assert len(step_summary(run, 100).encode()) <= 100
