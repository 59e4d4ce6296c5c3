"""The rows of the test report's tables, from the records of a run and the contracts of the operators."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from typing import Any, Final, NamedTuple

from generators.contracts.model import LARGE, Contract
from generators.operator_registry import operators
from mluops_cli.core.record import IDENTICAL, VARIES_WITHIN, Record
from mluops_cli.core.statuses import PASSING
from mluops_cli.reports.performance import rated
from mluops_cli.results.finished import FinishedRun, judged

ALIGNMENT: Final = 64  # elements of the innermost dimension that the device moves together


class Accuracy(NamedTuple):
    """One criterion of one output: its threshold, the sources of it, and the worst value of all cases."""

    output: str
    criterion: str
    threshold: float | None
    sources: str
    cases: int
    worst: float | None
    passed: int


class Check(NamedTuple):
    """One item of the checklist: the contract, and what was tested."""

    item: str
    contract: str
    tested: str


class Feature(NamedTuple):
    """One kind of case: how many there are, and how many of them are right."""

    item: str
    kind: str
    cases: int
    right: int


@dataclass(slots=True)
class _Measured:
    """The sums over all cases with one criterion."""

    cases: int = 0
    passed: int = 0
    worst: float | None = None
    sources: dict[str, None] = field(default_factory=dict)

    def add(self, criterion: Mapping[str, Any]) -> None:
        value = criterion.get("value")
        if value is not None and (self.worst is None or value > self.worst):
            self.worst = value
        self.cases += 1
        self.passed += bool(criterion.get("passed", True))
        self.sources[str(criterion.get("source", ""))] = None


class Kind(NamedTuple):
    """The properties that the tables count cases by; many cases have equal ones."""

    suite: str
    legal: bool
    right: bool
    identical: bool | None
    has_outputs: bool
    dtypes: tuple[str, ...]
    layouts: tuple[str, ...]
    ranks: tuple[int, ...]
    has_zero: bool
    is_large: bool
    remainder: bool


@dataclass(frozen=True)
class OperatorReport:
    """All tables of one operator.

    contract: None where the operator is unknown here. repeats: FinishedRun.repeats.
    """

    op: str
    records: Sequence[Record]
    contract: Contract | None
    hardware: str
    repeats: Mapping[str, str]

    @cached_property
    def kinds(self) -> Counter[Kind]:
        """How many cases there are of each kind, in the order of their first cases."""
        return Counter(map(_kind, self.records))

    @cached_property
    def _split(self) -> tuple[list[Record], list[Record]]:
        """The valid cases, and the invalid ones."""
        valid: list[Record] = []
        invalid: list[Record] = []
        for record in self.records:
            (valid if record.legal else invalid).append(record)
        return valid, invalid

    @property
    def category(self) -> str:
        """The operator's category, which decides its thresholds."""
        return self.contract.category if self.contract else "unknown"

    @property
    def counts(self) -> Counter[str]:
        """How many cases ended in each status."""
        return Counter(record.status for record in self.records)

    def accuracy(self) -> list[Accuracy]:
        """A row per output, criterion and threshold."""
        found: dict[tuple[Any, ...], _Measured] = defaultdict(_Measured)
        for record in self.records:
            for output, criterion in judged(record):
                get = criterion.get
                found[output, get("name"), get("part", ""), get("threshold")].add(criterion)
        rows = [((of, f"{name} {part}".strip(), limit), sums) for (of, name, part, limit), sums in found.items()]
        return [_accuracy(*row, sums) for row, sums in sorted(rows, key=lambda each: str(each[0]))]

    def checklist(self) -> list[Check]:
        """The contract's limits beside what was tested."""
        contract = self.contract
        tensors = list(contract.tensors.values()) if contract else []
        zero = ", ".join(f"{size} = 0: {status}" for size, status in contract.zero_elements.items()) if contract else ""
        large = " or ".join(contract.large) if contract else ""
        ranks = sorted({rank for kind in self.kinds for rank in kind.ranks})
        return [
            Check("hardware", "", self.hardware),
            Check("layouts", _words(t.layout for t in tensors), _words(w for kind in self.kinds for w in kind.layouts)),
            Check("multi-dimension", _words(str(len(tensor.dims)) for tensor in tensors), _words(map(str, ranks))),
            Check("zero elements", zero, str(self._count(lambda kind: kind.has_zero))),
            Check(
                "dtypes", _words(w for t in tensors for w in t.dtypes), _words(w for k in self.kinds for w in k.dtypes)
            ),
            Check("size limits", f"2^31: {large}" if large else "", str(self._count(lambda kind: kind.is_large))),
        ]

    def features(self) -> list[Feature]:
        """A row per kind of case."""
        rows = self._by_word("dtypes", lambda kind: kind.dtypes)
        rows += self._by_word("layouts", lambda kind: kind.layouts)
        rows += [self._feature(*row) for row in _FEATURES]
        repeated = self._count(lambda kind: kind.legal and kind.identical is not None)
        identical = self._count(lambda kind: kind.legal and bool(kind.identical))
        rows.append(Feature("stability", "bit-identical when repeated", repeated, identical))
        varying = self._varying()
        rounding = varying[IDENTICAL] + varying[VARIES_WITHIN]
        rows.append(Feature("stability", "varying by rounding at most when repeated", varying.total(), rounding))
        rows.append(Feature("platforms", self.hardware, len(self.records), self._count(lambda kind: kind.right)))
        rows.append(self._feature("leaks", "nothing written outside the outputs", lambda kind: kind.has_outputs))
        return rows

    def checks(self) -> list[Record]:
        """The cases that the operator must refuse."""
        return self._split[1]

    def performance(self) -> list[Record]:
        """The cases that were timed."""
        valid, _ = self._split
        return rated(valid) or [each for each in valid if each.latency_us is not None and each.suite == "network"]

    def _varying(self) -> Counter[str]:
        """Worst verdict on repeated calls -> valid cases."""
        if not self.repeats:
            return Counter()
        valid, _ = self._split
        return Counter(self.repeats[each.case] for each in valid if each.case in self.repeats)

    def _count(self, test: Callable[[Kind], bool]) -> int:
        return sum(number for kind, number in self.kinds.items() if test(kind))

    def _feature(self, item: str, words: str, test: Callable[[Kind], bool]) -> Feature:
        found = self._count(lambda kind: kind.legal and test(kind))
        return Feature(item, words, found, self._count(lambda kind: kind.legal and kind.right and test(kind)))

    def _by_word(self, item: str, words_of: Callable[[Kind], tuple[str, ...]]) -> list[Feature]:
        words = sorted({word for kind in self.kinds if kind.legal for word in words_of(kind)})
        return [self._feature(item, word, partial(_says, words_of, word)) for word in words]


def operator_reports(run: FinishedRun) -> list[OperatorReport]:
    """A report per operator of the run."""
    known = operators()
    environment = run.summary.get("environment") or {}
    return [
        OperatorReport(
            op, records, known[op].contract if op in known else None, _hardware(records, environment), run.repeats
        )
        for op, records in run.by_operator.items()
    ]


def _hardware(records: Sequence[Record], environment: Mapping[str, Any]) -> str:
    """The devices that ran the cases and their platforms; the summary of the run counts where no record says."""
    devices = _words(record.device for record in records if record.device)
    platforms = _words(record.platform for record in records if record.platform)
    device = devices or str(environment.get("device") or environment.get("cpu") or "")
    return ", ".join(filter(None, (device, platforms or str(environment.get("platform") or ""))))


def shapes(record: Record) -> str:
    """The shapes of the inputs, then of the outputs: [2,3] [4] -> [2,4]."""
    sides: dict[str, list[str]] = {"input": [], "output": []}
    for each in record.tensors.values():
        dims = ",".join(str(size) for size in each.get("dims", ()))
        sides.setdefault(each.get("role", "input"), []).append(f"[{dims}]")
    return " -> ".join(" ".join(side) for side in sides.values() if side)


def dtypes(record: Record) -> str:
    """The dtypes of the tensors, each once."""
    return _words(str(dtype) for each in record.tensors.values() if (dtype := each.get("dtype")))


def _accuracy(output: str, name: str, threshold: float | None, found: _Measured) -> Accuracy:
    more = f" (+{len(found.sources) - 3})" if len(found.sources) > 3 else ""
    sources = ", ".join(islice(found.sources, 3)) + more
    return Accuracy(output, name, threshold, sources, found.cases, found.worst, found.passed)


def _kind(record: Record) -> Kind:
    dtypes: dict[str, None] = {}
    layouts: dict[str, None] = {}
    ranks: list[int] = []
    has_zero = is_large = remainder = False
    for tensor in record.tensors.values():  # one loop for all properties: a loop for each takes twice the time
        if dtype := tensor.get("dtype"):
            dtypes[str(dtype)] = None
        if layout := tensor.get("layout"):
            layouts[str(layout)] = None
        if dims := tensor.get("dims"):
            ranks.append(len(dims))
            has_zero = has_zero or 0 in dims
            is_large = is_large or math.prod(dims) >= LARGE
            remainder = remainder or dims[-1] % ALIGNMENT > 0
    return Kind(
        record.suite, record.legal, record.status in PASSING, record.bit_identical, bool(record.outputs),
        tuple(dtypes), tuple(layouts), tuple(ranks), has_zero, is_large, remainder,
    )  # fmt: skip


def _says(words_of: Callable[[Kind], tuple[str, ...]], word: str, kind: Kind) -> bool:
    return word in words_of(kind)


def _words(words: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(words))


_FEATURES: Final[tuple[tuple[str, str, Callable[[Kind], bool]], ...]] = (
    ("sizes", f"innermost size a multiple of {ALIGNMENT}", lambda kind: bool(kind.ranks) and not kind.remainder),
    ("sizes", "innermost size with a remainder", lambda kind: kind.remainder),
    ("sizes", "network scale", lambda kind: kind.suite == "network"),
    ("sizes", "boundary", lambda kind: kind.suite == "boundary"),
    ("zero elements", "a size of 0", lambda kind: kind.has_zero),
    ("nan / inf", "inputs with NaN or Inf", lambda kind: "nan" in kind.suite or "inf" in kind.suite),
)
