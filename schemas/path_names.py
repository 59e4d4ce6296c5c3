"""The check of names and relative paths that others wrote, before they become part of a path."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath, PureWindowsPath
from typing import Final

from schemas.errors import InputError, SourceLocation

LONGEST_NAME: Final = 200
"""Bytes of a name. File systems take 255: the rest is for suffixes such as `.out12.0123456789abcdef.bin.zst`."""


def check_name(name: str, what: str, place: SourceLocation | None = None) -> str:
    r"""Return the name of an operator, a suite, a case or a file if it can be one part of a path.

    Refused with InputError: an empty name, `/` and `\`, `.` and `..`, a leading dot, characters that can't be printed,
    more than LONGEST_NAME bytes. what says in the message what the name is for, such as "suite".
    """
    for problem in _problems(name):
        raise InputError(f"{what} {_shown(name)} can't be part of a path: {problem}", place)
    return name


def check_case_name(suite: str, name: str, place: SourceLocation | None = None) -> None:
    """InputError where a suite or a case's name can't be part of a path; / separates folders in a case's name."""
    check_name(suite, "suite", place)
    for part in name.split("/"):
        check_name(part, "case name", place)


def _problems(name: str) -> Iterator[str]:
    if not name:
        yield "it is empty"
    if not name.isprintable():
        yield "it holds control characters"
    if "/" in name or "\\" in name:
        yield "it holds a separator, / or \\"
    if name.startswith("."):
        yield "it starts with a dot"
    size = len(name.encode(errors="replace"))
    if size > LONGEST_NAME:
        yield f"it has {size} bytes, at most {LONGEST_NAME} are allowed"


def check_relative_path(path: str, what: str, base: str, place: SourceLocation | None = None) -> str:
    """Return the path if it stays below its base folder by its parts alone; links are not looked at.

    Parts `..` are allowed where what comes before them makes up for them. A backslash counts as a separator too, so
    that the path means nothing worse elsewhere. Refused with InputError: an empty or absolute path, one with a drive,
    one that leads outside, characters that can't be printed. base names the folder in the message.
    """
    problem = ""
    if not path:
        problem = "is empty"
    elif not path.isprintable():
        problem = "holds control characters"
    elif PurePosixPath(path).is_absolute() or PureWindowsPath(path).drive or PureWindowsPath(path).root:
        problem = "is absolute"
    elif _climbs(PurePosixPath(path).parts) or _climbs(PureWindowsPath(path).parts):
        problem = "leads outside"
    if problem:
        raise InputError(f"{what} {_shown(path)} {problem}, expected one below {base}", place)
    return path


def path_part(text: str, most: int) -> str:
    """Return a text as one part of a path: other characters than of names become _, and it has so many bytes at most.

    Texts that differ may give the same part, which may be empty or begin with a dot.
    """
    return re.sub(r"[^\w.+~@=,-]+", "_", text).encode(errors="replace")[:most].decode(errors="ignore")


def _climbs(parts: tuple[str, ...]) -> bool:
    """Whether a relative path leaves its folder, at its end or on the way."""
    depth = 0
    for part in parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return True
    return False


def _shown(text: str) -> str:
    """The text in quotes, with escapes, cut where it is long."""
    return repr(text) if len(text) <= 80 else f"{text[:60]!r}... ({len(text)} characters)"
