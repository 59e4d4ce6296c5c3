"""The tables of the operator teams' test report, as plain rows, from a run's records and the operators' contracts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

from generators.contract import LARGE, Contract
from generators.operator import operators
from mluops_cli.reports.finished import FinishedRun, judged
from mluops_cli.reports.performance import rated
from mluops_cli.reports.record import Record
from schemas.status import SUCCESS

ALIGNMENT: Final = 64  # elements of the innermost dimension that the device moves at once
_RIGHT: Final = frozenset({"pass", "empty"})


class Accuracy(NamedTuple):
    """One criterion of one output: its threshold, where that comes from, and the worst value of all cases."""

    output: str
    criterion: str
    threshold: float | None
    sources: str
    cases: int
    worst: float | None
    passed: int


class Check(NamedTuple):
    """One item of the checklist: what the contract says and what was tested."""

    item: str
    contract: str
    tested: str


class Feature(NamedTuple):
    """One kind of case, how many there are and how many of them are right."""

    item: str
    kind: str
    cases: int
    right: int


@dataclass(slots=True)
class Case:
    """A record with what its tensors say, looked at once: large reports ask many times."""

    record: Record
    legal: bool
    right: bool
    dtypes: tuple[str, ...]
    layouts: tuple[str, ...]
    ranks: tuple[int, ...]
    has_zero: bool
    is_large: bool
    remainder: bool


@dataclass(frozen=True)
class OperatorReport:
    """All tables of one operator; contract is None for one we have none of."""

    op: str
    records: Sequence[Record]
    contract: Contract | None
    platform: str

    @cached_property
    def cases(self) -> list[Case]:
        """The records with what their tensors say."""
        return [_case(record) for record in self.records]

    @property
    def category(self) -> str:
        """What the operator's thresholds go by."""
        return self.contract.category if self.contract else "unknown"

    @property
    def counts(self) -> Counter[str]:
        """How many cases ended in each status."""
        return Counter(record.status for record in self.records)

    def accuracy(self) -> list[Accuracy]:
        """A row per output, criterion and threshold."""
        rows: dict[tuple[str, str, float | None], list[Any]] = {}
        for record in self.records:
            for each in judged(record):
                criterion = each.criterion
                name = f"{criterion.get('name')} {criterion.get('part', '')}".strip()
                rows.setdefault((each.output, name, criterion.get("threshold")), []).append(criterion)
        return [_accuracy(*key, found) for key, found in sorted(rows.items(), key=lambda row: str(row[0]))]

    def checklist(self) -> list[Check]:
        """What the contract allows against what was tested."""
        contract = self.contract
        tensors = list(contract.tensors.values()) if contract else []
        zero = ", ".join(f"{size} = 0: {status}" for size, status in contract.zero_elements.items()) if contract else ""
        large = " or ".join(contract.large) if contract else ""
        ranks = sorted({rank for case in self.cases for rank in case.ranks})
        return [
            Check("hardware", "", self.platform),
            Check("layouts", _words(t.layout for t in tensors), _words(w for case in self.cases for w in case.layouts)),
            Check("multi-dimension", _words(str(len(tensor.dims)) for tensor in tensors), _words(map(str, ranks))),
            Check("zero elements", zero, str(sum(case.has_zero for case in self.cases))),
            Check(
                "dtypes", _words(w for t in tensors for w in t.dtypes), _words(w for c in self.cases for w in c.dtypes)
            ),
            Check("size limits", f"2^31: {large}" if large else "", str(sum(case.is_large for case in self.cases))),
        ]

    def features(self) -> list[Feature]:
        """A row per kind of case."""
        legal = [case for case in self.cases if case.legal]
        rows = [*_by_kind("dtypes", legal, lambda case: case.dtypes)]
        rows += _by_kind("layouts", legal, lambda case: case.layouts)
        rows += [_feature(item, kind, [case for case in legal if test(case)]) for item, kind, test in _KINDS]
        repeated = [case.record for case in legal if case.record.bit_identical is not None]
        identical = sum(bool(record.bit_identical) for record in repeated)
        rows.append(Feature("stability", "bit-identical when repeated", len(repeated), identical))
        rows.append(_feature("platforms", self.platform, self.cases))
        rows.append(_feature("leaks", "nothing written outside the outputs", [c for c in legal if c.record.outputs]))
        return rows

    def checks(self) -> list[Record]:
        """The cases whose parameters the operator has to refuse."""
        return [case.record for case in self.cases if not case.legal]

    def performance(self) -> list[Record]:
        """The cases that were timed."""
        timed = [case.record for case in self.cases if case.legal and case.record.latency_us is not None]
        return rated(timed) or [record for record in timed if record.suite == "network"]


def operator_reports(run: FinishedRun) -> list[OperatorReport]:
    """A report per operator of the run."""
    known = operators()
    environment = run.summary.get("environment") or {}
    platform = _words(str(environment[key]) for key in ("device", "cpu", "platform") if environment.get(key))
    return [
        OperatorReport(op, records, known[op].contract if op in known else None, platform)
        for op, records in run.by_operator.items()
    ]


def shapes(record: Record) -> str:
    """The shapes of the inputs, then of the outputs: [2,3] [4] -> [2,4]."""
    sides: dict[str, list[str]] = {"input": [], "output": []}
    for each in record.tensors.values():
        dims = ",".join(str(size) for size in each.get("dims", ()))
        sides.setdefault(each.get("role", "input"), []).append(f"[{dims}]")
    return " -> ".join(" ".join(side) for side in sides.values() if side)


def dtypes(record: Record) -> str:
    """The dtypes of the tensors, each once."""
    return _words(_case(record).dtypes)


def _accuracy(output: str, name: str, threshold: float | None, found: Sequence[Any]) -> Accuracy:
    sources = list(dict.fromkeys(str(each.get("source", "")) for each in found))
    more = f" (+{len(sources) - 3})" if len(sources) > 3 else ""
    values = [each["value"] for each in found if each.get("value") is not None]
    passed = sum(bool(each.get("passed", True)) for each in found)
    worst, told = max(values, default=None), ", ".join(sources[:3]) + more
    return Accuracy(output, name, threshold, told, len(found), worst, passed)


def _case(record: Record) -> Case:
    tensors = record.tensors.values()
    dims = [each["dims"] for each in tensors if each.get("dims")]
    return Case(
        record,
        not record.expected_status or record.expected_status == [SUCCESS],
        record.status in _RIGHT,
        tuple(dict.fromkeys(str(each["dtype"]) for each in tensors if each.get("dtype"))),
        tuple(dict.fromkeys(str(each["layout"]) for each in tensors if each.get("layout"))),
        tuple(map(len, dims)),
        any(0 in each for each in dims),
        any(math.prod(each) >= LARGE for each in dims),
        any(each[-1] % ALIGNMENT for each in dims),
    )


def _by_kind(item: str, cases: Sequence[Case], kinds_of: Callable[[Case], tuple[str, ...]]) -> Iterator[Feature]:
    kinds: dict[str, list[Case]] = {}
    for case in cases:
        for kind in kinds_of(case):
            kinds.setdefault(kind, []).append(case)
    return (_feature(item, kind, found) for kind, found in sorted(kinds.items()))


def _feature(item: str, kind: str, cases: Sequence[Case]) -> Feature:
    return Feature(item, kind, len(cases), sum(case.right for case in cases))


def _words(words: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(words))


_KINDS: Final[tuple[tuple[str, str, Callable[[Case], bool]], ...]] = (
    ("sizes", f"innermost size a multiple of {ALIGNMENT}", lambda case: bool(case.ranks) and not case.remainder),
    ("sizes", "innermost size with a remainder", lambda case: case.remainder),
    ("sizes", "network scale", lambda case: case.record.suite == "network"),
    ("sizes", "boundary", lambda case: case.record.suite == "boundary"),
    ("zero elements", "a size of 0", lambda case: case.has_zero),
    ("nan / inf", "inputs with NaN or Inf", lambda case: "nan" in case.record.suite or "inf" in case.record.suite),
)
