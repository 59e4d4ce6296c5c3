"""The failing cases of a run by their symptoms: how many fail alike, the smallest of them, what they have in common."""

from __future__ import annotations

import math
from bisect import insort
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from mluops_cli.core.escaping import cut
from mluops_cli.core.record import Record
from mluops_cli.core.statuses import FAILING
from mluops_cli.results.common_traits import Seen, add_traits, in_common, may_distinguish
from mluops_cli.results.symptoms import IN_COMMENT, Symptom, reason_line, symptom_of
from schemas.suggest import counted

LISTED: Final = 10  # cases of a group that are named
_KINDS: Final = 500  # groups; cases of further kinds are only counted
_STEP: Final = 1000  # records of a finished run between looks at which groups may still get a common trait
_Size = tuple[
    float, str
]  # elements of all tensors (Inf where they aren't known), and the case id, by which cases are sorted


@dataclass(slots=True)
class FailureGroup:
    """Cases that fail alike: how many, the smallest one, and the ids of the smallest ones, which begin with it.

    what: what is wrong with all of them. which: `valid` or `invalid` where both kinds of cases fail so. common: what
    all have in common and no passing case of the operator has; empty where that is nothing simple.
    """

    what: str
    smallest: Record
    count: int = 0
    which: str = ""
    common: str = ""
    sizes: list[_Size] = field(default_factory=list)

    @property
    def cases(self) -> list[str]:
        """The ids of the smallest cases, the smallest first, LISTED at most."""
        return [case for _, case in self.sizes]

    @property
    def more(self) -> int:
        """The number of cases whose ids aren't in cases."""
        return self.count - len(self.sizes)

    @property
    def title(self) -> str:
        """What is wrong, and with which cases; for places where the number of cases stands elsewhere."""
        return f"{self.what} ({self.which} cases)" if self.which else self.what

    def __str__(self) -> str:
        common = f", {'both' if self.count == 2 else 'all'} with {self.common}" if self.common else ""
        return f"{counted(self.count, f'{self.which} case'.strip())}{common}: {self.what}"


@dataclass(slots=True)
class _Kind:
    group: FailureGroup
    seen: Seen


class FailureGroups:
    """Takes records one by one and groups those that fail. Memory grows with the kinds of failures, not with cases."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.further = 0  # failing cases of so many kinds that they are only counted
        self._kinds: dict[tuple[Symptom, bool], _Kind] = {}
        self._passing: dict[tuple[str, bool], Seen] = {}
        for record in records:
            self.add(record)

    def add(self, record: Record) -> None:
        """Count a record, whatever its status is."""
        if record.status == "pass":
            add_traits(self._passing.setdefault((record.op, record.legal), {}), record)
        elif record.status in FAILING:
            self._add_failing(record)

    def add_passing(self, records: Iterable[Record]) -> None:
        """Count the passing cases among the records of a run, after all failing ones: most can be left out then."""
        open_groups = set()
        for number, record in enumerate(records):
            if number % _STEP == 0:
                open_groups = self._open_groups()
                if not open_groups:
                    return
            if record.status == "pass" and (record.op, record.legal) in open_groups:
                self.add(record)

    def _open_groups(self) -> set[tuple[str, bool]]:
        """Operators, valid or invalid cases, whose passing cases may still decide what a group has in common."""
        return {
            (symptom.op, legal)
            for (symptom, legal), kind in self._kinds.items()
            if kind.group.count > 1 and may_distinguish(kind.seen, self._passing.get((symptom.op, legal), {}))
        }

    def _add_failing(self, record: Record) -> None:
        key = symptom_of(record), record.legal
        what = _what(record, key[0])
        if key not in self._kinds:
            if len(self._kinds) == _KINDS:
                self.further += 1
                return
            self._kinds[key] = _Kind(FailureGroup(what, record), {})
        kind = self._kinds[key]
        group = kind.group
        group.what = what if what == group.what else str(key[0])
        group.count += 1
        size = _elements(record), record.case
        insort(group.sizes, size)
        del group.sizes[LISTED:]
        if group.sizes[0] == size:
            group.smallest = record
        add_traits(kind.seen, record)

    def groups(self) -> list[FailureGroup]:
        """The groups, the one with the smallest case first."""
        counts = Counter(symptom for symptom, _ in self._kinds)
        for (symptom, legal), kind in self._kinds.items():
            kind.group.which = "" if counts[symptom] == 1 else "valid" if legal else "invalid"
            passing = self._passing.get((symptom.op, legal), {})
            kind.group.common = in_common(kind.seen, passing) if kind.group.count > 1 else ""
        return sorted((kind.group for kind in self._kinds.values()), key=lambda group: group.sizes[0])


def _what(record: Record, symptom: Symptom) -> str:
    """The symptom with the numbers of this case: `op: y, shifted by 1 along axis 2, tail of axis 1`."""
    kind = symptom.kind
    if not symptom.output and not symptom.of_relation:
        kind = cut(reason_line(record), IN_COMMENT)
    elif isinstance(output := record.outputs.get(symptom.output), dict):
        patterns = output.get("diagnosis", {}).get("patterns")
        kind = str(patterns[0].get("text") or kind) if patterns else kind
    return str(replace(symptom, kind=kind))


def _elements(record: Record) -> float:
    """The elements of all tensors; Inf where the record doesn't have them, as of a case that can't be read."""
    dims = [tensor.get("dims") for tensor in record.tensors.values()]
    return sum(math.prod(each) for each in dims if isinstance(each, list)) if dims else math.inf
