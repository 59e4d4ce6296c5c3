"""The tables of the operator teams' test report, as plain rows, from a run's records and the operators' contracts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from generators.contract import LARGE, Contract
from generators.operator import operators
from mluops_cli.reports.finished import FinishedRun, judged
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


@dataclass(frozen=True)
class OperatorReport:
    """All tables of one operator; contract is None for one we have none of."""

    op: str
    records: Sequence[Record]
    contract: Contract | None
    platform: str

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
        tested = {key: _words(_described(self.records, key)) for key in ("layout", "dtype")}
        return [
            Check("hardware", "", self.platform),
            Check("layouts", _words(tensor.layout for tensor in tensors), tested["layout"]),
            Check("multi-dimension", _words(str(len(tensor.dims)) for tensor in tensors), _words(self._ranks())),
            Check("zero elements", zero, str(sum(map(_has_zero, self.records)))),
            Check("dtypes", _words(dtype for tensor in tensors for dtype in tensor.dtypes), tested["dtype"]),
            Check("size limits", f"2^31: {large}" if large else "", str(sum(map(_is_large, self.records)))),
        ]

    def _ranks(self) -> Iterator[str]:
        return (str(len(each["dims"])) for record in self.records for each in record.tensors.values() if "dims" in each)

    def features(self) -> list[Feature]:
        """A row per kind of case."""
        legal = [record for record in self.records if _legal(record)]
        rows = [*_by_kind("dtypes", legal, "dtype"), *_by_kind("layouts", legal, "layout")]
        for item, kind, test in _KINDS:
            found = [record for record in legal if test(record)]
            rows.append(Feature(item, kind, len(found), _right(found)))
        repeated = [record for record in legal if record.bit_identical is not None]
        identical = sum(bool(record.bit_identical) for record in repeated)
        rows.append(Feature("stability", "bit-identical when repeated", len(repeated), identical))
        rows.append(Feature("platforms", self.platform, len(self.records), _right(self.records)))
        called = [record for record in legal if record.outputs]
        rows.append(Feature("leaks", "nothing written outside the outputs", len(called), _right(called)))
        return rows

    def checks(self) -> list[Record]:
        """The cases whose parameters the operator has to refuse."""
        return [record for record in self.records if not _legal(record)]

    def performance(self) -> list[Record]:
        """The cases that were timed."""
        timed = [record for record in self.records if record.latency_us is not None and _legal(record)]
        rated = [r for r in timed if r.io_efficiency is not None or r.compute_efficiency is not None]
        return rated or [record for record in timed if record.suite == "network"]


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
    return _words(_described([record], "dtype"))


def _accuracy(output: str, name: str, threshold: float | None, found: Sequence[Any]) -> Accuracy:
    sources = list(dict.fromkeys(str(each.get("source", "")) for each in found))
    more = f" (+{len(sources) - 3})" if len(sources) > 3 else ""
    values = [each["value"] for each in found if each.get("value") is not None]
    passed = sum(bool(each.get("passed", True)) for each in found)
    worst, told = max(values, default=None), ", ".join(sources[:3]) + more
    return Accuracy(output, name, threshold, told, len(found), worst, passed)


def _by_kind(item: str, records: Sequence[Record], key: str) -> Iterator[Feature]:
    kinds: dict[str, list[Record]] = {}
    for record in records:
        for kind in dict.fromkeys(_described([record], key)):
            kinds.setdefault(kind, []).append(record)
    for kind, found in sorted(kinds.items()):
        yield Feature(item, kind, len(found), _right(found))


def _described(records: Iterable[Record], key: str) -> Iterator[str]:
    return (str(each[key]) for record in records for each in record.tensors.values() if each.get(key))


def _words(words: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(words))


def _right(records: Iterable[Record]) -> int:
    return sum(record.status in _RIGHT for record in records)


def _legal(record: Record) -> bool:
    return not record.expected_status or record.expected_status == [SUCCESS]


def _dims(record: Record) -> list[list[int]]:
    return [each["dims"] for each in record.tensors.values() if each.get("dims")]


def _has_zero(record: Record) -> bool:
    return any(0 in dims for dims in _dims(record))


def _is_large(record: Record) -> bool:
    return any(math.prod(dims) >= LARGE for dims in _dims(record))


def _aligned(record: Record) -> bool:
    dims = _dims(record)
    return bool(dims) and all(each[-1] % ALIGNMENT == 0 for each in dims)


def _remainder(record: Record) -> bool:
    return any(each[-1] % ALIGNMENT for each in _dims(record))


_KINDS: Final[tuple[tuple[str, str, Callable[[Record], bool]], ...]] = (
    ("sizes", f"innermost size a multiple of {ALIGNMENT}", _aligned),
    ("sizes", "innermost size with a remainder", _remainder),
    ("sizes", "network scale", lambda record: record.suite == "network"),
    ("sizes", "boundary", lambda record: record.suite == "boundary"),
    ("zero elements", "a size of 0", _has_zero),
    ("nan / inf", "inputs with NaN or Inf", lambda record: "nan" in record.suite or "inf" in record.suite),
)
