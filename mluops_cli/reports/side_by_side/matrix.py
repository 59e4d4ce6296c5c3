"""Runs of several implementations as one matrix: operators by implementations."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from mluops_cli.core.statuses import FAILING, PASSING, STATUSES
from mluops_cli.results.compare import incomparable
from mluops_cli.results.finished import FinishedRun
from schemas.errors import InputError

APART: Final = 200  # cases with different verdicts that a page lists


@dataclass(slots=True)
class Cell:
    """What one implementation makes of one operator's cases.

    bound_ratio: the largest error in units of its error bound. ratios: latency by that of the first implementation, of
    each case that both measured on one device. incomparable: cases whose latencies can't be compared.
    """

    counts: Counter[str] = field(default_factory=Counter)
    bound_ratio: float | None = None
    ratios: list[float] = field(default_factory=list)
    incomparable: int = 0

    @property
    def cases(self) -> int:
        """The number of cases with a result."""
        return self.counts.total()

    @property
    def good(self) -> int:
        """The number of cases that passed or are empty."""
        return sum(self.counts[status] for status in PASSING)

    @property
    def failing(self) -> int:
        """The number of failing cases."""
        return sum(self.counts[status] for status in FAILING)

    @property
    def verdict(self) -> str:
        """The worst status, an empty string without cases. `empty` says nothing where a case passed."""
        return next((status for status in STATUSES if self.counts[status] and not self._hidden(status)), "")

    def _hidden(self, status: str) -> bool:
        return status == "empty" and bool(self.counts["pass"])

    @property
    def latency_ratio(self) -> float | None:
        """The geometric mean of the ratios: below 1 is faster than the first implementation."""
        if not self.ratios:
            return None
        return math.exp(sum(map(math.log, self.ratios)) / len(self.ratios))


@dataclass(frozen=True, slots=True)
class Matrix:
    """Cells by operator, in the order of the implementations' names; None where one ran no case of the operator.

    apart: cases on which implementations that ran them don't agree whether they fail, with their statuses (empty: not
    run). other_files: cases of which the runs had different files.
    """

    names: tuple[str, ...]
    runs: tuple[FinishedRun, ...]
    rows: dict[str, list[Cell | None]]
    apart: dict[str, list[str]]
    other_files: list[str]


def side_by_side(runs: Sequence[FinishedRun]) -> Matrix:
    """The matrix of runs, each of one implementation; InputError for fewer than two."""
    if len(runs) < 2:
        raise InputError("side by side: expected the results of two implementations or more")
    ops = sorted({op for run in runs for op in run.by_operator})
    first = runs[0]
    rows = {op: [_cell(first, run, op) for run in runs] for op in ops}
    cases = dict.fromkeys(case for run in runs for case in run.by_case)
    apart: dict[str, list[str]] = {}
    other_files = []
    for case in sorted(cases):
        records = [run.by_case.get(case) for run in runs]
        if len({record.status in FAILING for record in records if record is not None}) > 1:
            apart[case] = [record.status if record is not None else "" for record in records]
        if len({record.case_hash for record in records if record is not None and record.case_hash}) > 1:
            other_files.append(case)
    return Matrix(_names(runs), tuple(runs), rows, apart, other_files)


def _cell(first: FinishedRun, run: FinishedRun, op: str) -> Cell | None:
    if op not in run.by_operator:
        return None
    cell = Cell()
    for record in run.by_operator[op]:
        cell.counts[record.status] += 1
        ratio = record.bound_ratio
        if ratio is not None:
            cell.bound_ratio = max(ratio, cell.bound_ratio or 0.0)
        base = first.by_case.get(record.case)
        if base is None or not base.latency_us or not record.latency_us or {base.status, record.status} - {"pass"}:
            continue
        mismeasured = any("problem" in (each.perf or {}) for each in (base, record))
        if mismeasured or incomparable((first, base), (run, record)):
            cell.incomparable += 1
        else:
            cell.ratios.append(record.latency_us / base.latency_us)
    return cell


def _names(runs: Sequence[FinishedRun]) -> tuple[str, ...]:
    """The implementations' names, with the folder of the results where two runs are of the same one."""
    counts = Counter(run.impl for run in runs)
    return tuple(run.impl if counts[run.impl] == 1 else f"{run.impl} ({run.out})" for run in runs)
