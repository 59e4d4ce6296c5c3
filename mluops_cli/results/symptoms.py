"""Symptoms: what a failing record shows, by which further failures of the same kind are known."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mluops_cli.core.escaping import cut
from mluops_cli.core.record import BROKEN, Record
from mluops_cli.judging.verdict import EXPECTED

BREAKS: Final = "breaks "  # starts a tag that names the rule of the contract that a call breaks
IN_COMMENT: Final = 300  # characters of a reason in a symptom or a comment
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
_RELATION: Final = "relation "  # how the kind of a symptom begins where a relation is broken


@dataclass(frozen=True, slots=True)
class Symptom:
    """What tells one kind of failure from another: the output that is wrong, how, and where."""

    op: str
    output: str
    kind: str
    region: str = ""

    @property
    def of_relation(self) -> bool:
        """Whether a relation is broken, while the outputs by themselves are right."""
        return self.kind.startswith(_RELATION)

    def __str__(self) -> str:
        return ", ".join(
            part for part in (f"{self.op}: {self.output}".removesuffix(": "), self.kind, self.region) if part
        )


def broken_relations(record: Record) -> list[str]:
    """The names of the relations that are broken; they are checked only where everything else is right."""
    return [name for name, verdict in record.relations.items() if str(verdict).startswith(BROKEN)]


def symptom_of(record: Record) -> Symptom:
    """The symptom of a failing record."""
    for name, output in record.outputs.items():
        if isinstance(output, dict) and "diagnosis" in output:
            found = output["diagnosis"]
            patterns, regions = found.get("patterns"), found.get("regions")
            kind = patterns[0]["word"] if patterns else "wrong values"
            return Symptom(record.op, name, kind, _region(regions[0]) if regions else "")
    if broken := broken_relations(record):
        return Symptom(record.op, "", f"{_RELATION}{broken[0]}")
    beyond = [
        name for name, output in record.outputs.items() if isinstance(output, dict) and output.get("bound_sentence")
    ]
    if record.status == "fail" and beyond:
        return Symptom(record.op, beyond[0], "beyond the error bound")
    if record.status == "fail" and record.reason.startswith(EXPECTED):
        rules = ", ".join(tag for tag in record.tags if tag.startswith(BREAKS))
        return Symptom(record.op, "", record.reason, rules)
    return Symptom(record.op, "", cut(_NUMBER.sub("N", reason_line(record)), IN_COMMENT))


def reason_line(record: Record) -> str:
    """The first line of the reason, with the status where that is another one than fail."""
    reason = record.reason.split("\n")[0]
    return reason if record.status == "fail" else f"{record.status}: {reason}"


def _region(region: Mapping[str, Any]) -> str:
    """The kind of a region and its axis, without the numbers of this call."""
    return region["kind"] if region["axis"] is None else f"{region['kind']} of axis {region['axis']}"
