"""Whether a mutant that no case tells from the right source is equivalent: legal calls drawn from the contract say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from generators.operator_registry import operators
from mluops_cli.core.discovery import PlannedCase
from mluops_cli.execution.case.calls import GOES_ON
from mluops_cli.execution.interrupt import Interrupt
from mluops_cli.search.case_making import Entry
from mluops_cli.search.case_runner import case_folder
from mluops_cli.search.fuzz.supply import Search, supplied
from mluops_cli.search.mutation.mutants import Mutant
from mluops_cli.search.mutation.runner import TrialRunner
from mluops_cli.search.mutation.trial import CaseResult, Trial

_SEED: Final = 1
_MOST: Final = 256 << 10  # bytes of the tensors of a drawn call
_LIMIT: Final = 10.0  # seconds of the processor for a call: mutants that are only slower give the same answers


@dataclass(frozen=True, slots=True)
class Comparison:
    """A mutant against the right source: on how many calls; the first that differs as an entry of a spec, if any."""

    mutant: Mutant
    calls: int
    entry: dict[str, Any] | None = None
    result: CaseResult | None = None


def compared(runner: TrialRunner, op: str, count: int, mutants: Sequence[Mutant], jobs: int) -> Iterator[Comparison]:
    """Compare each mutant with the right source, bit by bit, on so many drawn calls of an operator, in any order.

    Calls that the right source fails, or answers otherwise each time, are left out; an operator without a contract has
    none. Ends early after an interrupt.
    """
    with case_folder(_MOST) as folder:
        calls = list(_drawn(op, count, folder, runner.interrupt)) if op in operators() else []
        entries = dict(zip(runner.add([planned for _, planned in calls]), (entry for entry, _ in calls), strict=True))
        answers = _answers(runner, entries)
        cases, right = tuple(answers), tuple(answers.values())
        trials = (
            Trial(number, mutant.mutation, cases, (_LIMIT,) * len(cases), answers=right)
            for number, mutant in enumerate(mutants)
        )
        for found in runner.run(trials, jobs) if cases else ():
            mutant, last = mutants[found.number], found.results[-1]
            same = not last.killing and last.answer == answers[last.case]
            yield (
                Comparison(mutant, len(cases))
                if same
                else Comparison(mutant, len(found.results), dict(entries[last.case]), last)
            )


def _drawn(op: str, count: int, folder: Path, interrupt: Interrupt) -> Iterator[tuple[Entry, PlannedCase]]:
    """The first calls of an operator: each as an entry and as a case file."""
    for number in range(count):
        if interrupt.is_set():
            return
        call = supplied(Search((op,), _SEED, _MOST), number, folder)
        if call is not None and call.planned is not None:
            yield call.drawn.entry, call.planned


def _answers(runner: TrialRunner, calls: Iterable[int]) -> dict[int, str]:
    """Call -> answer of the right source, in the order of the drawing: the same call shows a mutant in every run."""
    usable = tuple(index for index in calls if index not in runner.problems)
    limits = (_LIMIT,) * len(usable)
    first, second = (runner.one(Trial(0, None, usable, limits, first=False)) for _ in range(2))
    if first is None or second is None:
        return {}
    before = {each.case: each.answer for each in first.results}
    steady = [each for each in second.results if each.status in GOES_ON and before.get(each.case) == each.answer]
    return {each.case: each.answer for each in steady}
