"""What a check found: how bad, where, what, and what to do about it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

ERROR: Final = "error"  # it will be refused, or means something else than it says
WARNING: Final = "warning"  # it works here, but hardly as meant, or not elsewhere
NOTE: Final = "note"  # worth knowing, nothing to mend


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding; rule is its name in one word, place the file and the key path inside it."""

    severity: str
    rule: str
    place: str
    message: str
    fix: str = ""

    def as_record(self) -> dict[str, Any]:
        """The finding as JSON."""
        return asdict(self)


def counts(findings: list[Finding]) -> dict[str, int]:
    """How many findings of each severity, all three named."""
    return {word: sum(each.severity == word for each in findings) for word in (ERROR, WARNING, NOTE)}
