"""Spec -> cases, lazily: each entry's combinations are walked and checked against the contract."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from typing import Final

from generators.contracts.case import Case
from generators.contracts.negative_cases import derive_invalid
from generators.operator_registry import operator_named
from generators.specs.case_builder import CaseBuilder
from generators.specs.case_builder import check_case as check_case
from generators.specs.combinations import Assignment, Attempt, combinations
from generators.specs.conversions import Problem
from generators.specs.loader import Spec, load_spec, spec_files
from generators.specs.yaml_loader import KeyPath, together
from schemas.case_ids import case_id
from schemas.errors import InputError
from schemas.path_names import LONGEST_NAME

_PATIENCE: Final = 20  # entries in error after which no further ones are looked at


def expand_operator(op: str, suites: Collection[str] | None = None, seed: int = 1) -> Iterator[Case]:
    """The cases of an operator's built-in spec; see expand."""
    operator_named(op)
    for path in spec_files(op):
        yield from expand(load_spec(path), suites, seed)


def expand(spec: Spec, suites: Collection[str] | None = None, seed: int = 1) -> Iterator[Case]:
    """The cases of a spec, in its order; only those of the given suites, which may be names it lacks.

    seed is that of entries without one. InputError with every place where an entry breaks the contract: nothing is
    yielded after the first such entry; later entries are checked only to report all errors at once.
    """
    try:
        contract = operator_named(spec.op).contract
    except InputError as error:
        raise InputError(error.message, spec.place(("op",))) from None
    builder = CaseBuilder(contract, spec.path, seed)
    errors: list[InputError] = []
    for suite, entries in spec.suites.items():
        if suites is not None and suite not in suites:
            continue
        taken: dict[str, int] = {}  # name -> entry
        for index in range(len(entries)):
            cases = _cases(spec, builder, suite, index)
            try:
                for case in cases:
                    if len(case.name) > LONGEST_NAME:
                        message = (
                            f"case name {case.name!r} has {len(case.name)} letters, expected at most {LONGEST_NAME}"
                        )
                        raise InputError(message, spec.place(("suites", suite, index, "name")))
                    if case.name in taken:
                        line = entries[taken[case.name]].line
                        message = f"duplicate case name {case.name!r}, first of the entry in line {line}"
                        raise InputError(message, spec.place(("suites", suite, index, "name")))
                    taken[case.name] = index
                    if not errors:
                        yield case
            except InputError as error:
                errors.append(error)
            if len(errors) > _PATIENCE:
                break
    if errors:
        raise together(errors)


def _cases(spec: Spec, builder: CaseBuilder, suite: str, index: int) -> Iterator[Case]:
    """The cases of one entry; InputError with the place of the first combination that makes none."""
    at: KeyPath = ("suites", suite, index)
    entry = spec.entry(suite, index)
    unknown = [
        InputError(each.message, spec.place((*at, *each.path), at_key=True)) for each in builder.unknown_names(entry)
    ]
    if unknown:
        raise together(unknown)
    name, derive = entry["name"], entry.get("derive", False)
    place, names_vary = spec.suites[suite][index].place, builder.varies_section(entry)
    for suffix, attempts in combinations(entry, spec.lists, case_id(spec.op, suite, name)):
        try:
            case = _built(builder, attempts, suite, name + suffix, place, names_vary=names_vary)
            if derive and not case.valid:
                raise Problem(
                    ("derive",), f"only a valid case can be broken, this one expects {' or '.join(case.expect)}"
                )
        except Problem as problem:
            text = f"{problem.message} (case {name + suffix})" if suffix else problem.message
            raise InputError(text, spec.place((*at, *problem.path))) from None
        if not derive:
            yield case
            continue
        try:
            yield from derive_invalid(case, builder.contract)
        except InputError as error:
            raise InputError(error.message, spec.place((*at, "derive"))) from None


def _built(
    builder: CaseBuilder, attempts: Iterable[Attempt], suite: str, name: str, place: str, *, names_vary: bool
) -> Case:
    """The case of the first attempt that makes one; Problem, with the path where it was written, where none does."""
    problems: list[Problem] = []
    for combined, assignments in attempts:
        try:
            for problem in builder.unknown_names(combined) if names_vary else ():
                raise problem
            return builder.case(combined, suite, name, place)
        except Problem as problem:
            problems.append(Problem(_origin(problem.path, chain.from_iterable(assignments)), problem.message))
    last = problems[-1]
    if len(problems) > 1:
        raise Problem(last.path, f"none of {len(problems)} draws is a legal case, the last: {last.message}")
    raise last


def _origin(path: KeyPath, assignments: Iterable[Assignment]) -> KeyPath:
    """Where what stands at a key path below the entry was written: there, or in the matrix."""
    for dotted, where in assignments:
        steps = tuple(dotted.split("."))
        if steps == path[: len(steps)]:
            return (*where, *path[len(steps) :])
    return path
