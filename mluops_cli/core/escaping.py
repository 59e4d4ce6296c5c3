"""Foreign text (names, reasons, what an implementation printed) made safe to show.

Terminals, browsers and XML parsers act on invisible characters: control sequences, marks that change the reading
direction, halves of surrogate pairs. All of them are shown as escapes, so that nothing is lost or hidden.
"""

from __future__ import annotations

import re
from typing import Final

_INVISIBLE: Final = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls except tab and line feed
    "\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff"  # reading direction, separators, zero width
    "\ud800-\udfff\ufffe\uffff"  # not characters
)
_IN_TEXT: Final = re.compile(f"[{_INVISIBLE}]")
_IN_LINE: Final = re.compile(f"[\t\n{_INVISIBLE}]")


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def _decoded(text: str) -> str:
    """The text with the bytes of a file name that Python could not decode in this locale read as UTF-8."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # other halves of surrogate pairs
        return text


def visible(text: str) -> str:
    r"""Return the text with invisible characters as escapes (\x1b); tabs and line feeds stay."""
    return text if text.isprintable() else _IN_TEXT.sub(_escape, _decoded(text))


def one_line(text: str, limit: int | None = None) -> str:
    r"""Return the text in one line, line feeds as \n, cut after limit characters, with the number of those left out."""
    if limit is not None and len(text) > limit:
        text = f"{text[:limit]} ... ({len(text) - limit} characters more)"
    return text if text.isprintable() else _IN_LINE.sub(_escape, _decoded(text))


def cut(text: str, limit: int) -> str:
    """Return the first limit characters of a text; " ..." follows where there are more."""
    return text if len(text) <= limit else f"{text[:limit]} ..."


def clipped(text: str, limit: int) -> str:
    """Return the visible text, without its middle if it is longer than limit characters."""
    if len(text) > limit:
        half = limit // 2
        text = f"{text[:half]}\n... ({len(text) - 2 * half} characters left out)\n{text[-half:]}"
    return visible(text)
