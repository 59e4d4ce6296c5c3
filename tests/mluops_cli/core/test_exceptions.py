"""What a record says of an exception that an implementation raised."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mluops_cli.core.exceptions import describe, user_traceback


class Hostile(Exception):  # noqa: N818
    def __str__(self) -> str:
        raise SystemExit("no text")


def raised_by(action: Callable[[], Any]) -> BaseException:
    """The exception as a worker catches it."""
    with pytest.raises(BaseException) as caught:  # noqa: PT011
        action()
    return caught.value


def deep(levels: int) -> None:
    if not levels:
        raise ValueError("at the bottom")
    deep(levels - 1)


def test_it_names_the_line_that_raised() -> None:
    raised = raised_by(lambda: deep(2))
    assert describe(raised) == f"ValueError: at the bottom ({__file__}:{deep.__code__.co_firstlineno + 2})"
    assert describe(KeyError()) == "KeyError"
    assert describe(ValueError("x" * 3000)) == f"ValueError: {'x' * 2000} ..."


def test_a_hostile_exception_is_described() -> None:
    def fails() -> None:
        raise Hostile

    raised = raised_by(fails)
    assert describe(raised).startswith("Hostile: an exception without a readable text (")
    assert user_traceback(raised).endswith("Hostile: an exception without a readable text\n")


def test_d3_the_traceback_begins_with_the_users_frames() -> None:
    from mluops_cli.core.filters import parse_keywords

    def user() -> None:
        raise ZeroDivisionError("in the kernel")

    def calls_user(case: str) -> None:
        user()

    class Text(str):
        def lower(self) -> str:  # called in a frame of mluops
            user()
            return ""

    text = user_traceback(raised_by(lambda: parse_keywords(Text("a"))("x")))
    lines = text.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert 'raise ZeroDivisionError("in the kernel")' in text
    assert lines[-1] == "ZeroDivisionError: in the kernel"
    assert user_traceback(ValueError("never raised")) == ""


def test_a_deep_traceback_is_cut() -> None:
    text = user_traceback(raised_by(lambda: deep(500)))
    assert "frames left out" in text
    assert len(text.splitlines()) < 50
    assert text.endswith("ValueError: at the bottom\n")
