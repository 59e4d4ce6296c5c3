"""Case ids: operator/suite/name, the same in specs, case files, results, JUnit and waivers."""

from __future__ import annotations


def case_id(op: str, suite: str, name: str) -> str:
    """The id of a case; its name may have further parts."""
    return f"{op}/{suite}/{name}"


def id_parts(case: str) -> tuple[str, str, str]:
    """Operator, suite and name of an id; ValueError where it has fewer parts."""
    op, suite, name = case.split("/", 2)
    return op, suite, name


def is_case_id(text: str) -> bool:
    """Whether the text has all three parts, none of them empty."""
    return len([part for part in text.split("/", 2) if part]) == 3
