"""What the report of a sanitizer (gcc and clang, -fsanitize=address and others) says, in one line."""

from __future__ import annotations

import re
from typing import Final

# Addresses differ from run to run: without them equal faults have equal reasons.
_ERROR: Final = re.compile(r"(?:ERROR|WARNING): \w+Sanitizer: (?:(?! on (?:unknown )?address| at pc | \(pid).)+")
_ACCESS: Final = re.compile(r"^(?:READ|WRITE) of size \d+", re.MULTILINE)
_MAP: Final = re.compile(r"^Shadow bytes around .*", re.MULTILINE | re.DOTALL)
_PLACE: Final = re.compile(r"^SUMMARY: \w+Sanitizer: [A-Za-z]\S* (\S.*)$", re.MULTILINE)
_FRAME: Final = re.compile(r"^ *#\d+ 0x[0-9a-f]+ in (.+) (/\S+:\d+)$", re.MULTILINE)
# Functions of a sanitizer that stand for memcpy, fread and others; newer ones have the plain names.
_OWN: Final = re.compile(r"\S*(?:libsanitizer|sanitizer_common|compiler-rt)/.*|.* in _+(?:interceptor|[a-z]+san)_\w+")


def sanitizer_report(printed: str) -> str:
    """The kind of fault, the access and the place in the source of the first report in a text; empty without one."""
    error = _ERROR.search(printed)
    if error is None:
        return ""
    access = _ACCESS.search(printed, error.end())
    parts = (error[0].rstrip(), access and access[0], _place(printed, error.end()))
    return ", ".join(each for each in parts if each)


def _place(printed: str, start: int) -> str:
    """The place in the source, the caller's where a function of the sanitizer met the fault; empty without one."""
    summary = _PLACE.search(printed, start)
    if summary is None:
        return ""
    place = summary[1].rstrip()
    if _OWN.fullmatch(place):
        frames = (f"{file} in {function}" for function, file in _FRAME.findall(printed, start, summary.start()))
        return next((each for each in frames if not _OWN.fullmatch(each)), place)
    return place


def without_map(printed: str) -> str:
    """The text without the map of memory, with its legend, that ends a report of AddressSanitizer."""
    return _MAP.sub("", printed) if _ERROR.search(printed) else printed
