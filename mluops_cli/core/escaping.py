"""Texts of others (names, reasons, what an implementation printed), made fit to be shown wherever they go.

Terminals, browsers and XML parsers act on characters nobody sees: escapes that colour or erase, marks that turn the
direction of reading, halves of surrogate pairs. All of them are shown as their escape, so nothing is lost or hidden.
"""

from __future__ import annotations

import re
from typing import Final

_UNSEEN: Final = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls but tab and line feed
    "\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff"  # marks of direction, separators, no width
    "\ud800-\udfff\ufffe\uffff"  # no characters at all
)
_IN_TEXT: Final = re.compile(f"[{_UNSEEN}]")
_IN_LINE: Final = re.compile(f"[\t\n{_UNSEEN}]")


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def visible(text: str) -> str:
    r"""The text with everything unseen as its escape (\x1b); lines stay lines."""
    return text if text.isprintable() else _IN_TEXT.sub(_escape, text)


def one_line(text: str, limit: int | None = None) -> str:
    r"""The text in one line, line feeds as \n, cut off after limit characters with a word on how many are left out."""
    if limit is not None and len(text) > limit:
        text = f"{text[:limit]} ... ({len(text) - limit} characters more)"
    return text if text.isprintable() else _IN_LINE.sub(_escape, text)


def clipped(text: str, limit: int) -> str:
    """The visible text without its middle, if it is longer than limit characters."""
    if len(text) > limit:
        half = limit // 2
        text = f"{text[:half]}\n... ({len(text) - 2 * half} characters left out)\n{text[-half:]}"
    return visible(text)
