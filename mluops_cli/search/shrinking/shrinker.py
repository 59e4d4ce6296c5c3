"""Shrinking: numbers brought nearer to 0 by halves and then by one, values made simpler, while the call fails alike."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import numpy as np

from generators.contracts.model import Shape
from generators.contracts.negative_cases import broken
from generators.expressions import UNCOMPUTABLE
from mluops_cli.core.record import Record
from mluops_cli.lint.baselines import check_weakness
from mluops_cli.search.case_making import built_case, make_case
from mluops_cli.search.case_runner import CaseRunner
from mluops_cli.search.fuzz.factors import domain_of
from mluops_cli.search.fuzz.findings import Symptom
from mluops_cli.search.fuzz.number_classes import INT_MAX
from mluops_cli.search.shrinking.candidate import Candidate, Symbol
from mluops_cli.search.shrinking.simpler_values import simpler, simpler_elements, zeroed
from schemas.casefiles.reading import read_case
from schemas.dtypes import DTYPES
from schemas.errors import UnavailableError

_SEEDS: Final = 2  # further seeds that a smaller call with drawn values is tried with
_BLOCKS: Final = 8  # parts of given values that may be left out for a lower number
_PAIRED: Final = 12  # numbers that may still be lowered: with more of them no pairs are tried
_INTERRUPTED: Final = "interrupted"

Judge = Callable[[Record], Symptom | None]


@dataclass(frozen=True, slots=True)
class Budget:
    """What shrinking one call may take: runs of the implementation, and seconds."""

    runs: int = 600
    seconds: float = 60.0


_USUAL: Final = Budget()


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The smallest call found with its record, the call that it came from, and the runs that it took.

    ended: why smaller calls were left untried; empty where there are none.
    """

    candidate: Candidate
    record: Record
    start: Candidate
    runs: int
    ended: str = ""

    @property
    def interrupted(self) -> bool:
        """Whether a signal ended it."""
        return self.ended == _INTERRUPTED

    @property
    def line(self) -> str:
        """The inputs' shapes before and after, such as `2x64x32x32 -> 1x1x2x3, 41 runs`."""
        ended = f" ({self.ended})" if self.ended else ""
        runs = "1 run" if self.runs == 1 else f"{self.runs} runs"
        return f"{_shapes(self.start)} -> {_shapes(self.candidate)}, {runs}{ended}"

    @property
    def elements(self) -> int:
        """The number of elements of all inputs."""
        return sum(map(math.prod, _input_shapes(self.candidate)))


def _shapes(candidate: Candidate) -> str:
    return ", ".join("x".join(map(str, dims)) or "scalar" for dims in _input_shapes(candidate))


def _input_shapes(candidate: Candidate) -> list[Shape]:
    shapes = candidate.shapes()
    return [shapes[tensor.name] for tensor in candidate.contract.inputs]


class _Ended(Exception):  # noqa: N818  not an error
    """The budget is used up, or a signal came."""


class Shrinker:
    """Reduces calls with one runner; judge gives the symptom of a record that shows a fault, else None."""

    def __init__(
        self, runner: CaseRunner, judge: Judge, budget: Budget = _USUAL, stopped: Callable[[], bool] = lambda: False
    ) -> None:
        self._runner = runner
        self._judge = judge
        self._budget = budget
        self._stopped = stopped

    def shrink(self, start: Candidate, suite: str, wanted: Symptom | None = None) -> Shrunk | None:
        """The smallest call with the symptom that is wanted, by default that of the call itself.

        None where the call doesn't fail, or fails otherwise. InputError where it is no legal call.
        """
        return _Search(self._runner, self._judge, self._budget, self._stopped, suite).run(start, wanted)


class _Search:
    """One call being shrunk."""

    def __init__(
        self, runner: CaseRunner, judge: Judge, budget: Budget, stopped: Callable[[], bool], suite: str
    ) -> None:
        self._runner = runner
        self._judge = judge
        self._budget = budget
        self._stopped = stopped
        self._suite = suite
        self._runs = 0
        self._rejected: set[str] = set()
        self._rules: list[str] = []
        self._ranges: dict[str, tuple[int, int]] = {}
        self._wanted: Symptom | None = None
        self._weak = False  # whether the first call's baseline proves nothing
        self._end = time.monotonic() + budget.seconds

    def run(self, start: Candidate, wanted: Symptom | None) -> Shrunk | None:
        self._ranges = {each.text: (each.low, each.high) for each in domain_of(start.contract.op).numbers}
        if start.shaped:
            self._rules = self._broken(start)
        try:
            record = self._record(start, strict=True)
        except _Ended:
            return None
        found = None if record is None else self._judge(record)
        if record is None or found is None or (wanted is not None and found != wanted):
            return None
        self._wanted, self._now, self._record_now, ended = found, start, record, ""
        try:
            self._to_fixpoint()
        except _Ended as end:
            ended = str(end)
        return Shrunk(self._now, self._record_now, start, self._runs, ended)

    def _to_fixpoint(self) -> None:
        self._jump()
        before = ""
        while before != self._now.key:
            before = self._now.key
            self._lower_numbers()
            self._simplify_values()

    def _jump(self) -> None:
        """Try all numbers at their lowest, then with sizes of 1: what fails on any call is small at once."""
        for least in (0, 1):
            lowest = {
                symbol: max(self._simplest(symbol), least) if symbol.section == "sizes" else self._simplest(symbol)
                for symbol in self._lowerable()
            }
            if lowest and self._lowered(lowest):
                return

    # Numbers

    def _lower_numbers(self) -> None:
        before, first = "", True
        while before != self._now.key:
            before = self._now.key
            for group in self._lists():
                self._descend(group, first=first)
            for symbol in sorted(self._lowerable(), key=lambda each: -self._now.numbers[each]):
                self._descend([symbol], first=first)
            first = False
            left = self._lowerable()
            if before == self._now.key and len(left) <= _PAIRED:
                for pair in combinations(left, 2):
                    self._descend(pair, first=False)

    def _lists(self) -> list[list[Symbol]]:
        """The entries of each list that are not as low as can be."""
        found: dict[tuple[str, str], list[Symbol]] = {}
        for symbol in self._lowerable():
            if symbol.at is not None:
                found.setdefault(symbol[:2], []).append(symbol)
        return [group for group in found.values() if len(group) > 1]

    def _lowerable(self) -> list[Symbol]:
        return [symbol for symbol in self._now.numbers if self._excess(symbol)]

    def _excess(self, symbol: Symbol) -> int:
        """How far a number is from its simplest value: 0, or the legal one that is nearest to 0."""
        return abs(self._now.numbers[symbol] - self._simplest(symbol))

    def _simplest(self, symbol: Symbol) -> int:
        if self._now.shaped:  # an illegal call without elements would be another one: it may be answered as such
            return min(self._now.numbers[symbol], 0 if symbol.section == "params" else 1)
        low, high = self._ranges.get(str(symbol), (0, INT_MAX))
        return max(low, min(0, high))

    def _descend(self, group: Sequence[Symbol], *, first: bool) -> None:
        """Lower numbers together: at once as far as they go, then by halves of the rest, at last by one.

        first: they were not tried before; otherwise lowering them by one must work before more is tried.
        """
        if not first and not self._lowered(self._by(1, group)):
            return
        step = most = max(map(self._excess, group))
        while step > 0:
            if self._lowered(self._by(step, group), again=step in (1, most)):
                step = min(step, max(map(self._excess, group)))
            else:
                step //= 2

    def _by(self, step: int, group: Sequence[Symbol]) -> dict[Symbol, int]:
        """The numbers brought nearer to their simplest values by a step, or as far as they go."""
        found = {}
        for symbol in group:
            value, simplest = self._now.numbers[symbol], self._simplest(symbol)
            found[symbol] = max(value - step, simplest) if value > simplest else min(value + step, simplest)
        return found

    def _lowered(self, numbers: Mapping[Symbol, int], *, again: bool = True) -> bool:
        """Try a call with lower numbers.

        Values that are drawn are drawn anew, with other seeds if it is to be tried again; others lose some part.
        """
        try:
            candidate = self._now.with_numbers(numbers)
            if self._try(candidate):
                return True
            if candidate.drawn:
                return again and any(self._try(_reseeded(candidate, 1 + more)) for more in range(_SEEDS))
            blocks = range(_BLOCKS) if candidate.literal else ()
            return any(self._try(self._now.with_numbers(numbers, block)) for block in blocks)
        except UNCOMPUTABLE:
            return False

    # Values

    def _simplify_values(self) -> None:
        for tensor in self._now.contract.inputs:
            values = self._now.values.get(tensor.name)
            if values is None:
                continue
            signed = DTYPES[self._now.dtype_of(tensor)].kind != "unsigned"
            self._first(self._now.with_values(tensor.name, each) for each in simpler(values, signed=signed))
            if isinstance(self._now.values[tensor.name], np.ndarray):
                self._simplify_elements(tensor.name)

    def _first(self, candidates: Iterable[Candidate]) -> bool:
        return any(self._try(each) for each in candidates)

    def _simplify_elements(self, tensor: str) -> None:
        def values() -> np.ndarray[Any, Any]:
            return np.asarray(self._now.values[tensor])

        def changed(first: int, end: int, number: float) -> Candidate:
            flat = values().reshape(-1).copy()
            flat[first:end] = number
            return self._now.with_values(tensor, flat.reshape(values().shape))

        blocks = list(zeroed(values()))
        for first, end in blocks:
            if values().reshape(-1)[first:end].any():
                self._try(changed(first, end, 0))
        for index in range(values().size if blocks else 0):
            value = values().reshape(-1)[index]
            self._first(changed(index, index + 1, number) for number in simpler_elements(value))

    # Runs

    def _try(self, candidate: Candidate) -> bool:
        """Run a call; keep it, and return True, where it shows the symptom."""
        if candidate.key in self._rejected or candidate.key == self._now.key:
            return False
        record = self._record(candidate)
        if record is None or self._judge(record) != self._wanted:
            self._rejected.add(candidate.key)
            return False
        self._now, self._record_now = candidate, record
        return True

    def _record(self, candidate: Candidate, *, strict: bool = False) -> Record | None:
        """The record of a call; None where it is no legal case, or breaks other rules.

        None too where a right kernel's pass would prove nothing, if it proves something for the first call: an entry is
        kept to see that the kernel is mended. strict: this is the first call, errors are raised.
        """
        if self._stopped():
            raise _Ended(_INTERRUPTED)
        if self._runs >= self._budget.runs or time.monotonic() > self._end:
            raise _Ended("the budget is used up")
        try:
            if candidate.shaped and not strict and self._broken(candidate) != self._rules:
                return None
            entry = candidate.entry(self._runner.folder)
            case = make_case(candidate.contract.op, self._suite, entry, self._runner.folder)
        except UnavailableError:
            raise
        except Exception:  # the reference kernel may raise too: a smaller call is then left out
            if strict:
                raise
            return None
        self._runs += 1
        records: list[Record] = []

        def hear(record: Record) -> None:
            if strict:
                self._weak = proves_nothing(case.file, candidate)
            elif not self._weak and self._judge(record) == self._wanted and proves_nothing(case.file, candidate):
                return
            records.append(record)

        finished = self._runner.run([case], hear)
        if finished.interrupted:
            raise _Ended(_INTERRUPTED)
        return records[0] if records else None

    def _broken(self, candidate: Candidate) -> list[str]:
        """The rules that an illegal call breaks."""
        case = built_case(candidate.contract.op, self._suite, candidate.entry(self._runner.folder))
        return [violation.rule for violation in broken(case, candidate.contract)]


def proves_nothing(file: str, candidate: Candidate) -> bool:
    """Whether wrong outputs too would agree with the baseline of a case file."""
    with read_case(Path(file)) as case:
        return any(True for _ in check_weakness(case, candidate.operator))


def _reseeded(candidate: Candidate, more: int) -> Candidate:
    return replace(candidate, seed=(candidate.seed + more) % 2**64)
