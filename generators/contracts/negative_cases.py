"""Invalid cases: each rule of a contract broken alone, derived from one legal case.

A derived case breaks exactly one rule, so the order in which an implementation checks never decides its status. A
written case may break several rules that share their statuses (`breaks`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from generators.contracts import variants
from generators.contracts.case import Case
from generators.contracts.checks import violations
from generators.contracts.conditions import Violation
from generators.contracts.faults import WORKSPACE_SHORT, tensors_with
from generators.contracts.model import DESIGN, OURS, VENDOR, Contract
from generators.contracts.variants import Variants
from generators.data.distributions import plain_values
from schemas.errors import InputError
from schemas.status import BAD_PARAM


def broken(case: Case, contract: Contract) -> list[Violation]:
    """Everything that is wrong with a case: the contract's violations, then a violation per fault."""
    absent = tensors_with("null_descriptor", case.faults)
    descriptors = {plan.name: None if plan.name in absent else plan.descriptor for plan in case.plans}
    return [
        *violations(contract, descriptors, case.params),
        *(
            Violation(str(fault), (BAD_PARAM,), fault.text, OURS if fault == WORKSPACE_SHORT else DESIGN)
            for fault in case.faults
            if fault.kind != "null_descriptor"  # already among the contract's violations
        ),
    ]


def check_invalid(case: Case, contract: Contract) -> None:
    """InputError unless the case breaks `breaks` rules, and expects the statuses that the contract has for them.

    Several rules must share their statuses: then the order in which an implementation checks doesn't decide.
    """
    found = broken(case, contract)
    if len(found) != case.breaks:
        listed = "; ".join(violation.text for violation in found) or "nothing is wrong with it"
        number = "one rule" if case.breaks == 1 else f"{case.breaks} rules"
        raise InputError(f"case {case.id} must break exactly {number}, found {len(found)}: {listed}")
    answers = {violation.statuses for violation in found}
    if len(answers) > 1:
        listed = "; ".join(f"{each.text}: {' or '.join(each.statuses) or 'no status'}" for each in found)
        raise InputError(f"case {case.id} breaks rules with different statuses: {listed}")
    if set(case.expect) != set(found[0].statuses):
        expected = " or ".join(found[0].statuses) or "that no case may break this rule"
        raise InputError(f"case {case.id} expects {' or '.join(case.expect)}, the contract says {expected}")
    demanded = [violation for violation in found if violation.origin != OURS]
    if case.beyond_design == bool(demanded):
        given, right = ("expect_beyond_design", "expect") if case.beyond_design else ("expect", "expect_beyond_design")
        decisive = demanded[0] if demanded else found[0]
        text = f"{decisive.text} (this rule stands in {_standing(decisive.origin)})"
        raise InputError(f"case {case.id} has {given}, expected {right}: {text}")


def derive_invalid(base: Case, contract: Contract) -> Iterator[Case]:
    """Cases that break one rule each, named `<base>_<rule>`, from a legal base case.

    Nothing is computed on their data: they get plain values. A rule that this base can't break alone yields no case.
    """
    yield from _each(base, contract, (*variants.OF_TENSORS, _of_rules, *variants.OF_CALLS))


def illegal_variants(base: Case, contract: Contract) -> Iterator[Case]:
    """What derive_invalid yields, and sizes of 0; from any legal case, for mluops fuzz.

    What a rule lists in `breaks` is left out where it breaks another rule or none on this base.
    """
    yield from _each(base, contract, (*variants.OF_TENSORS, variants.zero_sizes, _listed, *variants.OF_CALLS))


def _each(base: Case, contract: Contract, kinds: Iterable[Variants]) -> Iterator[Case]:
    given = contract.given(base.params)
    plain = replace(base, inputs=tuple(replace(plan, values=plain_values(plan.dtype)) for plan in base.inputs))
    for variants_of in kinds:
        for variant in variants_of(plain, given):
            case = _with_own_tensors(variant, contract)
            if case is not None:
                yield from as_invalid(case, contract, 1)


def _with_own_tensors(case: Case, contract: Contract) -> Case | None:
    """The case without the tensors that don't exist with its parameters; None where it lacks one that does."""
    tensors = contract.given(case.params).tensors
    if tensors.keys() == {plan.name for plan in case.plans}:
        return case
    inputs, outputs = (tuple(plan for plan in plans if plan.name in tensors) for plans in (case.inputs, case.outputs))
    if len(inputs) + len(outputs) < len(tensors):
        return None
    criteria = {plan.name: case.criteria[plan.name] for plan in outputs}
    return replace(case, inputs=inputs, outputs=outputs, criteria=criteria)


def _of_rules(base: Case, contract: Contract) -> Iterator[Case]:
    """What Rule.breaks lists; InputError where such a case breaks another rule, or none."""
    for rule, values, case in variants.listed(base, contract):
        found = [] if case is None else broken(case, contract)
        if case is None or [violation.rule for violation in found] != [rule.text]:
            stands = ", ".join(violation.rule for violation in found) or "nothing"
            raise InputError(f"{base.id}: {dict(values)} should break {rule.text!r} alone, it breaks {stands}")
        yield case


def _listed(base: Case, contract: Contract) -> Iterator[Case]:
    """What Rule.breaks lists."""
    return (case for _, _, case in variants.listed(base, contract) if case is not None)


def as_invalid(case: Case, contract: Contract, breaks: int) -> Iterator[Case]:
    """The case with the statuses expected of it; nothing where it doesn't break so many rules of one status."""
    found = broken(case, contract)
    if len(found) == breaks and found[0].statuses and len({violation.statuses for violation in found}) == 1:
        beyond = all(violation.origin == OURS for violation in found)
        yield replace(case, expect=found[0].statuses, beyond_design=beyond, breaks=breaks)


def _standing(origin: str) -> str:
    if origin == OURS:
        return "neither the design nor the vendor's library"
    return "the vendor's library" if origin == VENDOR else f"the {origin}"
