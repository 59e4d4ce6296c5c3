"""The power of cases by the mutants that they kill, from the results of `mluops mutate --matrix`."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from mluops_cli.search.mutation.records import MUTANTS, MutantRecord, read_mutants
from mluops_cli.search.mutation.summary import kills
from mluops_cli.search.subset.choice import PER_CASE, Element, Power
from schemas.errors import InputError


def killing_power(folder: Path, cases: Collection[str]) -> Power:
    """What these cases kill; those of operators without mutants, and those that were left out, kill nothing.

    InputError where the folder holds no results, results of another kind, or none of these cases.
    """
    found = read_mutants(folder)
    if not found:
        raise InputError(f"{folder / MUTANTS}: no results there; run mluops mutate --matrix --out {folder} first")
    power: dict[str, frozenset[Element]] = {case: frozenset() for case in cases}
    seconds = dict.fromkeys(cases, PER_CASE)
    known = False
    for op, each in found.items():
        mine = [case for case in cases if case in each.cases.cases]
        if mine and not each.cases.matrix:
            raise InputError(f"{folder / MUTANTS}: {op} was run without --matrix: not known what each case kills")
        killed = kills(each)
        for case in mine:
            known = True
            power[case] = frozenset(_element(each.mutants[name]) for name in killed[case])
            seconds[case] += each.cases.cases[case]
    if not known:
        raise InputError(f"{folder / MUTANTS}: none of the cases was run there")
    return Power(power, seconds, "mutants")


def _element(record: MutantRecord) -> Element:
    return Element(record.op, record.kind, f"{record.mutant}: {' '.join(line.strip() for line in record.diff)}")
