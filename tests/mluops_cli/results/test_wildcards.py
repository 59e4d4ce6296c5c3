"""Patterns: what is a wildcard, what is literal; and that a table finds what trying every pattern finds."""

from __future__ import annotations

import random
from fnmatch import fnmatchcase

import pytest

from mluops_cli.results.wildcards import PatternTable, matches


@pytest.mark.parametrize(("text", "pattern", "expected"), [
    ("op/s/a[1]", "op/s/a[1]", True), ("op/s/a1", "op/s/a[1]", False), ("op/s/a[1]", "*[?]", True),
    ("op/s/]x", "op/s/]*", True), ("a!b", "a[!x]b", False), ("a[!x]b", "a[!x]b", True), ("a.b", "a?b", True),
    ("axb", "a.b", False), ("a\nb", "a*b", True), ("ab", "a?b", False), ("A", "a", False), ("", "*", True),
    ("x", "", False), ("", "", True), ("a\\b", "a\\b", True), ("axxb", "a*", True), ("a" * 60, "*a" * 20 + "b", False),
])  # fmt: skip
def test_d26_only_star_and_question_mark_are_wildcards(text: str, pattern: str, expected: bool) -> None:
    assert matches(text, pattern) is expected


def test_f12_a_table_finds_what_trying_every_pattern_finds() -> None:
    draw = random.Random(3)
    patterns = ["".join(draw.choice("ab?*/") for _ in range(draw.randrange(6))) for _ in range(300)]
    table = PatternTable([*enumerate(patterns)], lambda each: each[1])
    for _ in range(300):
        text = "".join(draw.choice("ab/") for _ in range(draw.randrange(8)))
        expected = [(n, pattern) for n, pattern in enumerate(patterns) if fnmatchcase(text, pattern)]
        assert table.find(text) == expected
