"""Illegal calls: a rule of the contract broken, alone or with another one of the same statuses, from a legal call."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any, Final

from generators.contracts.case import Case, TensorPlan
from generators.contracts.model import LARGE, UNKNOWN
from generators.contracts.negative_cases import as_invalid, broken, illegal_variants
from generators.parameters import as_lists
from generators.specs.case_builder import CaseBuilder
from generators.specs.conversions import Problem, expect_words, fault_words, tensor_words
from mluops_cli.results.symptoms import BREAKS
from mluops_cli.search.fuzz.drawing import SUITE, Drawn, draw_call
from mluops_cli.search.fuzz.factors import Domain
from schemas.dtypes import DTYPES

_BYTES: Final = 16 << 10  # of the tensors of the legal call
_OF_ONE: Final = 16  # illegal calls that are made of one legal call
_ATTEMPTS: Final = 8


def draw_illegal(domain: Domain, seed: int, number: int) -> Drawn | None:
    """The number-th illegal call of an operator, as an entry; None where the legal call can't be broken.

    Rules take turns. Every second call breaks two where two of equal statuses can be broken at once.
    """
    base, rules = _broken(domain, seed, number // _OF_ONE)
    if base is None or not rules:
        return None
    rng = Random(f"{seed} {domain.contract.op} illegal {number}")
    for attempt in range(_ATTEMPTS):
        one = rng.choice(rules[(number // 2 + attempt) % len(rules)])
        case = one if number % 2 == 0 else _both(base, one, rng.choice(rng.choice(rules)), domain)
        entry = None if case is None else _entry(domain, case, f"seed{seed}_illegal{number}", seed)
        if entry is not None:
            return Drawn(entry, {})
    return None


@lru_cache(maxsize=4)
def _broken(domain: Domain, seed: int, number: int) -> tuple[Case | None, Sequence[Sequence[Case]]]:
    """A legal case, and per rule what breaks it alone; the rules are in an order of the seed."""
    drawn = draw_call(domain, seed, number, _BYTES)
    if drawn is None:
        return None, ()
    builder = CaseBuilder(domain.contract, Path(), seed)
    try:
        base = builder.case(drawn.plain().entry, SUITE, "base", "")
    except Problem:
        return None, ()
    with_rows = _with_rows(domain, base)
    if with_rows is None:
        return None, ()
    found: dict[str, list[Case]] = {}
    for case in illegal_variants(with_rows, domain.contract):
        found.setdefault(", ".join(each.rule for each in broken(case, domain.contract)), []).append(case)
    return with_rows, [found[rule] for rule in sorted(found, key=lambda rule: Random(f"{seed} {rule}").random())]


def _with_rows(domain: Domain, base: Case) -> Case | None:
    """The case with a size in place of each that depends on the data; None where none is legal."""
    if not any(UNKNOWN in plan.dims for plan in base.outputs):
        return base
    for rows in sorted({size for plan in base.plans for size in plan.dims if size > 0}):
        outputs = tuple(
            replace(plan, dims=tuple(rows if size == UNKNOWN else size for size in plan.dims)) for plan in base.outputs
        )
        found = replace(base, outputs=outputs)
        if not broken(found, domain.contract):
            return found
    return None


def _both(base: Case, one: Case, other: Case, domain: Domain) -> Case | None:
    """The case that differs from the base as both do; None where both change one thing, or they break other rules."""
    plans = [_merged(*each) for each in zip(base.plans, one.plans, other.plans, strict=True)]
    values = {name: _merged(value, one.params[name], other.params[name]) for name, value in base.params.items()}
    if any(each is None for each in (*plans, *values.values())):
        return None
    tensors = tuple(plan for plan in plans if plan is not None)
    merged = replace(
        base,
        params=values,
        inputs=tensors[: len(base.inputs)],
        outputs=tensors[len(base.inputs) :],
        faults=tuple(dict.fromkeys((*one.faults, *other.faults))),
    )
    return next(as_invalid(merged, domain.contract, 2), None)


def _merged(base: Any, one: Any, other: Any) -> Any:
    """What differs from the base; None where both differ from it and from each other."""
    if _same(base, one):
        return other
    return one if _same(base, other) or _same(one, other) else None


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, TensorPlan) and isinstance(other, TensorPlan):
        return one.descriptor == other.descriptor
    return bool(one == other)


def _entry(domain: Domain, case: Case, name: str, seed: int) -> dict[str, Any] | None:
    """The case as an entry of a spec; None where the grammar can't say it."""
    entry: dict[str, Any] = {"name": name, "seed": seed}
    if case.params:
        entry["params"] = as_lists(case.params)
    for role, plans in (("inputs", case.inputs), ("outputs", case.outputs)):
        entry[role] = {plan.name: _tensor(domain, plan, role == "inputs") for plan in plans}
    entry |= expect_words(case.expect, beyond_design=case.beyond_design)
    if case.breaks > 1:
        entry["breaks"] = case.breaks
    entry |= fault_words(case.faults)
    entry["tags"] = [f"{BREAKS}{violation.rule}" for violation in broken(case, domain.contract)]
    try:
        CaseBuilder(domain.contract, Path(), seed).case(entry, SUITE, name, "")
    except Problem:
        return None
    return entry


def _tensor(domain: Domain, plan: TensorPlan, drawn: bool) -> dict[str, Any]:
    """Everything of a tensor that the contract alone doesn't tell."""
    spec = domain.contract.tensors[plan.name]
    found = tensor_words(plan, None if spec.same_dtype_as else spec.dtypes[0], spec.layout)
    if drawn and math.prod(plan.dims) < LARGE:
        found["dist"] = {"uniform": [-1, 1]} if DTYPES[plan.dtype].is_float else {"integers": [0, 1]}
    return found
