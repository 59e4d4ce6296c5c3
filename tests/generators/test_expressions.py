"""Expressions: their values, and that none of them can run away."""

from __future__ import annotations

from typing import Any

import pytest

from generators.expressions import parse_expression


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2**10*3", 3072), ("a*b*c", 30), ("-a**2", -4), ("2**-1", 0.5), ("a*1.5", 3.0), ("prod([a, b])*2", 12),
        ("10**1000", 10**1000), ("1 if a*b == 6 else 0", 1),
    ],
)  # fmt: skip
def test_powers_and_products_are_pythons(text: str, value: Any) -> None:
    assert parse_expression(text)({"a": 2, "b": 3, "c": 5}) == value


@pytest.mark.parametrize(
    "text", ["9**9**9**9", "(2**4000)**4000", "a**a", "*".join(["9**1000"] * 3), "prod([9**1000, 9**1000])"]
)
def test_a_value_too_large_is_refused_at_once(text: str) -> None:
    with pytest.raises(OverflowError, match="more than 4096 bits"):
        parse_expression(text)({"a": 10**18})


@pytest.mark.parametrize("text", ["[1]*10**10", "10**10*a", "a*2"])
def test_lists_are_not_multiplied(text: str) -> None:
    with pytest.raises(TypeError, match="a list is multiplied"):
        parse_expression(text)({"a": (1, 2)})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("+".join("1" * 5000), "an expression of 9999 characters, expected at most 1000"),
        ("-" * 999 + "1", "an expression of 1000 characters|nested too deep"),
        ("(" * 400 + "1" + ")" * 400, "not an expression"),
        ("'%99999999999d' % 1", "is no number"),
        ("1e400", "beyond the largest one"),
    ],
)
def test_what_could_exhaust_the_machine_is_no_expression(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_expression(text)
