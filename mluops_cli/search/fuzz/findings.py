"""What a search makes of a failing call: whether it is a fault of the implementation, and how it is kept."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from generators.operator_registry import operator_named
from mluops_cli.core.escaping import cut
from mluops_cli.core.record import Record
from mluops_cli.results.symptoms import IN_COMMENT, Symptom, broken_relations
from mluops_cli.search.fuzz.drawing import SUITE
from mluops_cli.search.spec_saving import SavedEntry

_SLOWER: Final = 20.0  # a right kernel takes less than so many times the baseline's time, on a loaded machine too


@dataclass(frozen=True, slots=True)
class Finding:
    """The first call with a symptom; shrunk says how much smaller it was made, where that was tried."""

    symptom: Symptom
    entry: Mapping[str, Any]
    record: Record
    shrunk: str = ""

    @property
    def saved(self) -> SavedEntry:
        """The entry as it is saved: with the symptom, the reason and how it was shrunk above it."""
        comments = (str(self.symptom), cut(self.record.reason, IN_COMMENT), *filter(None, (self.shrunk,)))
        return SavedEntry(self.symptom.op, SUITE, self.entry, comments)

    def same_call(self, other: Finding) -> bool:
        """Whether both are of one call: their entries differ in the name at most."""
        mine, its = ({**each.entry, "name": ""} for each in (self, other))
        return self.symptom.op == other.symptom.op and mine == its


@dataclass(frozen=True, slots=True)
class Reduced:
    """A finding after shrinking, and whether a signal ended that."""

    finding: Finding
    interrupted: bool


def is_finding(record: Record) -> bool:
    """Whether the record shows a fault of the implementation."""
    return record.fails_by_implementation


def is_doubtful(record: Record) -> bool:
    """Whether other processes may be why the case fails: it counts when it fails alone too."""
    return record.status == "timeout" or (record.status == "crash" and "out of memory" in record.reason)


def set_right(record: Record, ops: Collection[str]) -> None:
    """Make a record a pass where no fault was proven.

    It fails for an adjoint operator alone that is not searched (a callable may hold the kernel of one operator only,
    whatever operator it is called for), or its outputs are beyond thresholds and within their error bounds: a correct
    kernel may compute them.
    """
    adjoints = {each.name: each.adjoint for each in operator_named(record.op).contract.relations}
    broken = broken_relations(record)
    foreign = broken and all(adjoints.get(name) and adjoints[name] not in ops for name in broken)
    if record.status == "fail" and (foreign or (not broken and _within_bounds(record))):
        record.status, record.reason = "pass", ""


def excuse_slowness(record: Record, seconds: float, timeout: float) -> None:
    """Make a time-out a skip where a right kernel may need that long: making the call alone took so many seconds."""
    if record.status == "timeout" and _SLOWER * seconds > timeout:
        record.status = "skip"
        record.reason += f"; its baseline took {seconds:.2g} s of the processor: a right kernel may be as slow"


def _within_bounds(record: Record) -> bool:
    """Whether every output that is wrong by its thresholds has an error bound and isn't beyond it."""
    wrong = [output for output in record.outputs.values() if isinstance(output, dict) and "diagnosis" in output]
    held = [output.get("bound_ratio") is not None and not output.get("bound_sentence") for output in wrong]
    return bool(held) and all(held)
