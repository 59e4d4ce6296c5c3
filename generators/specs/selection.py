"""Which cases a command means: operators, suites and spec files into a checked list of cases."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from generators.contracts.case import Case
from generators.operator_registry import operator_named
from generators.specs.expansion import expand
from generators.specs.fields import MOST_CASES
from generators.specs.loader import Spec, find_specs, load_spec, spec_files
from generators.specs.yaml_loader import together
from schemas.errors import InputError
from schemas.suggest import did_you_mean

LARGE_SUITE: Final = "network"  # of the sizes of published networks: files of many GiB


def small_suites() -> frozenset[str]:
    """The suites of the built-in specs without the large one."""
    return frozenset(suite for path in spec_files() for suite in load_spec(path).suites) - {LARGE_SUITE}


def select_cases(ops: Sequence[str], suites: Collection[str], specs: Sequence[Path], seed: int) -> list[Case]:
    """The cases of the operators (all if none is named) and suites (likewise), from the specs or the built-in ones.

    Sorted by id, so the order of specs doesn't matter. A suite that an operator lacks selects nothing there. One
    InputError with everything that is wrong: specs, cases, two cases of one id, unknown operators, unknown suites.
    """
    for op in ops:
        operator_named(op)
    errors: list[InputError] = []
    loaded: list[Spec] = []
    cases: dict[str, Case] = {}
    for path in selected_files(ops, specs):
        try:
            spec = load_spec(path)
            loaded.append(spec)
            if ops and spec.op not in ops:
                continue
            for case in expand(spec, suites or None, seed):
                _add(cases, case)
                if len(cases) > MOST_CASES:
                    raise InputError(
                        f"more than {MOST_CASES} cases are selected, expected fewer suites or specs at once"
                    )
        except InputError as error:
            errors.append(error)
    if errors:
        raise together(errors)
    check_suites(suites, {suite for spec in loaded for suite in spec.suites})
    return [cases[key] for key in sorted(cases)]


def selected_files(ops: Sequence[str], specs: Sequence[Path]) -> list[Path]:
    """The spec files that select_cases reads for these arguments, without those that they include."""
    if specs:
        return find_specs(specs)
    return [path for op in dict.fromkeys(ops) for path in spec_files(op)] if ops else spec_files()


def _add(cases: dict[str, Case], case: Case) -> None:
    other = cases.setdefault(case.id, case)
    if other is not case:
        raise InputError(f"{case.place}: case {case.id} is defined twice, first at {other.place}")


def check_suites(suites: Collection[str], known: Collection[str]) -> None:
    """InputError for a suite that is neither known nor one of the built-in specs of any operator."""
    known = set(known)
    if set(suites) <= known:
        return
    known |= {suite for path in spec_files() for suite in load_spec(path).suites}
    for suite in sorted(set(suites) - known):
        raise InputError(f"unknown suite {suite!r}{did_you_mean(suite, known)}")
