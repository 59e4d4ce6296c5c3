"""Exceptions of an implementation under test, as text for a record; their own methods may fail, or raise anything."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from mluops_cli.core.escaping import cut

T = TypeVar("T")
_REASON: Final = 2000  # characters of an error's text that go into a record
_NAME: Final = 200  # characters of its type's name
_FRAMES: Final = 20  # frames of a traceback that are kept: the last ones
_OURS: Final = str(Path(__file__).parents[1])


def describe(raised: BaseException) -> str:
    """Return the type and the text of an exception, and the line that raised it."""
    frames = _frames(raised)
    place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return f"{summary(raised)}{place}"


def user_traceback(raised: BaseException) -> str:
    """Return the traceback of an exception as Python prints it, from the first frame outside of mluops on.

    Empty where there is none.
    """
    frames = _frames(raised)
    while frames and frames[0].filename.startswith(_OURS):
        del frames[0]
    if not frames:
        return ""
    lines: list[str] = _attempt(lambda: traceback.format_list(frames[-_FRAMES:]), [])
    left_out = [f"  ... ({len(frames) - _FRAMES} frames left out)\n"] if len(frames) > _FRAMES else []
    return "".join(["Traceback (most recent call last):\n", *left_out, *lines, f"{summary(raised)}\n"])


def summary(raised: BaseException) -> str:
    """Return the type and the text of an exception, both cut."""
    kind = type(raised).__name__[:_NAME]
    text = _attempt(lambda: str(raised), "an exception without a readable text")
    return f"{kind}: {cut(text, _REASON)}" if text else kind


def _frames(raised: BaseException) -> list[traceback.FrameSummary]:
    return _attempt(lambda: list(traceback.extract_tb(raised.__traceback__)), [])


def _attempt(ask: Callable[[], T], otherwise: T) -> T:
    try:
        return ask()
    except BaseException:
        return otherwise
