"""What the mutants of an operator say about its cases: score, survivors, cases that kill nothing, the smallest set."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from mluops_cli.search.mutation.records import MutantRecord, OperatorMutants
from mluops_cli.search.set_cover import greedy_cover
from schemas.suggest import counted

HEADER = ("operator", "mutants", "killed", "survived", "allowed", "equivalent", "score")


def counts(found: OperatorMutants) -> Counter[str]:
    """Status -> how many mutants."""
    return Counter(each.status for each in found.mutants.values())


def survivors(found: OperatorMutants) -> list[MutantRecord]:
    """The mutants that are faults and that no case kills, in the order of the source."""
    alive = [each for each in found.mutants.values() if each.survives]
    return sorted(alive, key=lambda each: (each.file, each.line, each.mutant))


def score(number: Counter[str]) -> float | None:
    """Fraction of the mutants that are killed, allowed and equivalent ones not counted; None without any."""
    total = number.total() - number["equivalent"] - number["allowed"]
    return number["killed"] / total if total else None


def row(name: str, number: Counter[str]) -> tuple[str, ...]:
    """One row of the table under HEADER."""
    found = score(number)
    alive = number["survived"] + number["not_reached"]
    percent = "-" if found is None else f"{100 * found:.1f} %"
    shown = (number.total(), number["killed"], alive, number["allowed"], number["equivalent"])
    return name, *map(str, shown), percent


def survivor_lines(found: OperatorMutants) -> Iterator[str]:
    """The survivors for people: where, what kind, how it behaves, the diff; lines that no case runs once each."""
    alive = survivors(found)
    unreached = Counter((each.file, each.line) for each in alive if each.status == "not_reached")
    for record in alive:
        if record.status == "survived":
            yield f"{record.mutant}: {_behaviour(record)}"
            yield from (f"    {line}" for line in record.diff)
            if record.shown_by is not None:
                yield f"    {json.dumps(record.shown_by)}"
    for (file, line), number in unreached.items():
        yield f"{file}:{line}: no case runs this line; {counted(number, 'mutant')}"


def _behaviour(record: MutantRecord) -> str:
    differing = len(record.differing)
    if record.shown_by is not None:
        return f"no case shows it, a call does that was drawn from the contract ({record.reason})"
    if not differing:
        return f"{counted(record.run, 'case')} run it, none shows it"
    how = f"{counted(record.run, 'case')} run it, {differing} pass{'es' if differing == 1 else ''} with other bits"
    return f"{how}, such as {record.differing[0]}" + (f" ({record.reason})" if record.reason != "pass" else "")


def kills(found: OperatorMutants) -> dict[str, set[str]]:
    """Case -> the mutants that it kills; every case that was run has an entry."""
    killed: dict[str, set[str]] = defaultdict(set, {case: set() for case in found.cases.cases})
    for record in found.mutants.values():
        for case in record.killed_by:
            killed[case].add(record.mutant)
    return dict(killed)


def matrix_lines(found: OperatorMutants) -> Iterator[str]:
    """What only a matrix shows: the cases that kill nothing, and the smallest set that kills what all kill."""
    killed = kills(found)
    idle = sorted(case for case, mutants in killed.items() if not mutants)
    seconds = found.cases.cases
    if idle:
        yield f"{counted(len(idle), 'case')} of {len(killed)} kill no mutant:"
        yield from (f"  {case}" for case in idle)
    chosen = greedy_cover(killed, seconds)
    before, after = sum(seconds.values()), sum(seconds[case] for case in chosen)
    yield (
        f"{counted(len(chosen), 'case')} of {len(killed)} kill all that any kills, in {after:.2f} s of {before:.2f} s:"
    )
    yield from (f"  {case}: {len(killed[case])} mutants, {1000 * seconds[case]:.1f} ms" for case in chosen)


def total(found: Sequence[OperatorMutants]) -> Counter[str]:
    """The counts of all operators together."""
    return sum((counts(each) for each in found), Counter())
