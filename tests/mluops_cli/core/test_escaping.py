"""Texts of others, made visible."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mluops_cli.core.escaping import clipped, cut, one_line, visible
from mluops_cli.core.record import Record
from tests.mluops_cli.reports.sample import HOSTILE


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x00b", "a\\x00b"),
        ("\x1b[1m", "\\x1b[1m"),
        ("\ud800", "\\ud800"),
        ("a\u202eb", "a\\u202eb"),
        ("\r\n\t", "\\r\n\t"),
        ("x\ufffe", "x\\ufffe"),
        ("\x85\u2028", "\\x85\\u2028"),
        ("中文 é 😀 עברית", "中文 é 😀 עברית"),
        ("\ufeff", "\\ufeff"),
    ],
)
def test_what_nobody_sees_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_text_that_is_cut_ends_in_dots() -> None:
    assert [cut(text, 3) for text in ("", "abc", "abcd")] == ["", "abc", "abc ..."]


def test_one_line_stays_one_and_says_what_is_left_out() -> None:
    assert one_line("a\nb\tc") == "a\\nb\\tc"
    assert one_line("x" * 50, 10) == "x" * 10 + " ... (40 characters more)"
    assert clipped("a" * 30 + "b" * 30, 20) == "a" * 10 + "\n... (40 characters left out)\n" + "b" * 10


@given(st.text(st.characters(codec=None), max_size=40))
def test_it_is_always_text_that_xml_and_utf8_take(text: str) -> None:
    for shown in (visible(text), one_line(text), clipped(text, 10)):
        shown.encode()
        assert all(
            char in "\t\n" or " " <= char <= "\ud7ff" or "\ue000" <= char <= "\ufffd" or char > "\uffff"
            for char in shown
        )
    assert len(one_line(text).splitlines()) <= 1


@pytest.mark.parametrize("text", HOSTILE.values(), ids=list(HOSTILE))
def test_records_are_strict_json(tmp_path: Path, text: str) -> None:
    made = Record(
        text, "op", "s", text, "i", "fail", text, {"y": {"a": float("nan"), "b": [float("inf")]}}, printed=text
    )
    line = json.dumps(made.as_json(), allow_nan=False)
    read = json.loads(line, parse_constant=lambda word: pytest.fail(word))
    read["case"].encode()  # no half of a surrogate pair is left
    assert read["outputs"] == {"y": {"a": None, "b": [None]}}
    assert "\\ud8" not in line.replace("\\\\ud8", "")


def test_undecoded_bytes_of_a_file_name_are_read_as_utf_8() -> None:
    name = "ü漢.pb".encode().decode("ascii", "surrogateescape")
    assert (one_line(name), visible(name)) == ("ü漢.pb", "ü漢.pb")
    assert one_line("a\udcff\ud800") == "a\\udcff\\ud800"
    assert one_line(b"\xc2\x9b[31m".decode("ascii", "surrogateescape")) == "\\x9b[31m"
