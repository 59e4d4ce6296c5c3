"""Lists of case ids in a file, one a line; what follows a # is for people."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from difflib import get_close_matches
from pathlib import Path

from schemas.case_ids import is_case_id
from schemas.errors import InputError, SourceLocation
from schemas.suggest import did_you_mean


def read_case_list(path: Path) -> dict[str, int]:
    """The case ids of a file -> their lines; InputError where it can't be read or a line is no case id."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: can't be read: {getattr(error, 'strerror', None) or error}") from None
    found: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        name = line.partition("#")[0].strip()
        if name and not is_case_id(name):
            raise InputError(f"{name!r} is no case id, expected operator/suite/name", SourceLocation(str(path), number))
        if name:
            found.setdefault(name, number)
    return found


def check_known(listed: dict[str, int], known: Collection[str], path: Path) -> None:
    """InputError for a listed case that isn't there: a list that is out of date must not pass for a smaller suite."""
    for name, line in listed.items():
        if name not in known:
            near = did_you_mean(name, get_close_matches(name, known, n=1))
            raise InputError(f"no case {name} at the paths{near}", SourceLocation(str(path), line))


def case_list(cases: Collection[str], remarks: Collection[str]) -> Iterator[str]:
    """The lines of such a file."""
    yield from (f"# {remark}\n" for remark in remarks)
    yield from (f"{case}\n" for case in cases)
