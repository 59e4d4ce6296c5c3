"""A finding of a check: severity, rule, place, message, and what to do about it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

ERROR: Final = "error"  # it will be refused, or is wrong
WARNING: Final = "warning"  # it works here, but probably not as intended, or not in other runners
NOTE: Final = "note"  # nothing to correct


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding; rule is its name in one word, place the file and the key path inside it."""

    severity: str
    rule: str
    place: str
    message: str
    fix: str = ""

    def as_record(self) -> dict[str, Any]:
        """Return the finding as JSON data."""
        return asdict(self)


def counts(findings: list[Finding]) -> dict[str, int]:
    """Return the number of findings of each severity, zeros included."""
    return {word: sum(each.severity == word for each in findings) for word in (ERROR, WARNING, NOTE)}
