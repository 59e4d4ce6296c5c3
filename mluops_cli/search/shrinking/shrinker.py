"""Shrinking: numbers brought nearer to 0 by halves and then by one, values made simpler, while the call fails alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Final

import numpy as np

from generators.contracts.model import Shape
from generators.expressions import UNCOMPUTABLE
from mluops_cli.core.record import Record
from mluops_cli.results.symptoms import Symptom
from mluops_cli.search.case_runner import CaseRunner
from mluops_cli.search.fuzz.factors import domain_of
from mluops_cli.search.fuzz.number_classes import INT_MAX
from mluops_cli.search.shrinking.attempts import INTERRUPTED, Attempts, Budget, Ended, Judge
from mluops_cli.search.shrinking.candidate import Candidate, Symbol
from mluops_cli.search.shrinking.simpler_values import simpler, simpler_elements, zeroed
from schemas.dtypes import DTYPES
from schemas.seeds import SEEDS

_SEEDS: Final = 2  # further seeds that a smaller call with drawn values is tried with
_BLOCKS: Final = 8  # parts of given values that may be left out for a lower number
_PAIRED: Final = 12  # numbers that may still be lowered: with more of them no pairs are tried
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
        return self.ended == INTERRUPTED

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

        None where the call doesn't fail, fails otherwise, or was interrupted. InputError where it is no legal call,
        UnavailableError where the implementation can't be loaded.
        """
        attempts = Attempts(self._runner, self._judge, self._budget, self._stopped, suite)
        if not attempts.begin(start, wanted):
            return None
        ended = ""
        try:
            _Reduction(attempts).to_fixpoint()
        except Ended as end:
            ended = str(end)
        return Shrunk(attempts.now, attempts.record, start, attempts.runs, ended)


class _Reduction:
    """Steps from a failing call to simpler ones, each as long as it is accepted."""

    def __init__(self, attempts: Attempts) -> None:
        self._attempts = attempts
        self._try = attempts.accept
        numbers = domain_of(attempts.now.contract.op).numbers
        self._ranges = {each.text: (each.low, each.high) for each in numbers}

    @property
    def _now(self) -> Candidate:
        return self._attempts.now

    def to_fixpoint(self) -> None:
        """Lower numbers and simplify values until nothing changes."""
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
        value: Any = self._now.numbers[symbol]
        return 0 if isinstance(value, str) else abs(value - self._simplest(symbol))  # a parameter may be a text

    def _simplest(self, symbol: Symbol) -> int:
        if self._now.shaped:  # an illegal call without elements would be another one: it may be answered as such
            return min(self._now.numbers[symbol], 0 if symbol.section == "params" else 1)
        low, high = self._ranges.get(str(symbol), (0, INT_MAX))
        return max(low, min(0, high))

    def _descend(self, group: Sequence[Symbol], *, first: bool) -> None:
        """Lower numbers together: at once as far as they go, then by halves of the rest, at last by one or two.

        Two: the number may have to be odd or even. Steps grow again while one after the other works: another seed may
        allow much lower numbers. first: they were not tried before; otherwise lowering them by one or two must work
        before more is tried.
        """
        while first or any(self._lowered(self._by(step, group)) for step in (1, 2)):
            first, worked = False, False
            step = most = max(map(self._excess, group))
            while step > 0:
                if self._lowered(self._by(step, group), again=step in (1, most)):
                    step = min(2 * step if worked else step, max(map(self._excess, group)))
                    worked = True
                else:
                    step //= 2
                    worked = False

    def _by(self, step: int, group: Sequence[Symbol]) -> dict[Symbol, int]:
        """The numbers brought nearer to their simplest values by a step, or as far as they go."""
        found = {}
        for symbol in group:
            value, simplest = self._now.numbers[symbol], self._simplest(symbol)
            found[symbol] = max(value - step, simplest) if value > simplest else min(value + step, simplest)
        return found

    def _lowered(self, numbers: Mapping[Symbol, int], *, again: bool = True) -> bool:
        """Try a call with lower numbers.

        Values that are drawn are drawn anew, with other seeds too if it is to be tried again: that is luck, and
        gets half of the budget at most. Others lose some part.
        """
        if numbers.items() <= self._now.numbers.items():
            return False
        try:
            candidate = self._now.with_numbers(numbers)
            if self._try(candidate):
                return True
            if candidate.drawn:
                luck = again and self._attempts.ample
                return luck and any(self._try(_reseeded(candidate, 1 + more)) for more in range(_SEEDS))
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


def _reseeded(candidate: Candidate, more: int) -> Candidate:
    return replace(candidate, seed=(candidate.seed + more) % SEEDS)
