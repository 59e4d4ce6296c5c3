"""What the contract of a call's operator says about the call; operators without a contract allow everything."""

from __future__ import annotations

from generators.contracts import checks
from generators.contracts.conditions import Violation
from generators.operator_registry import operators
from generators.parameters import as_tuples
from mluops_cli.implementations.base import Call


def violations(call: Call) -> list[Violation]:
    """Return the rules of the contract that the call breaks."""
    operator = operators().get(call.op)
    if operator is None:
        return []
    params = as_tuples(call.params)
    return checks.violations(operator.contract, call.descriptors, params)


def scalar_names(op: str) -> tuple[str, ...] | None:
    """Return the names of the operator's scalar results, such as num_act_out; None (any) without a contract."""
    operator = operators().get(op)
    return None if operator is None else tuple(each.name for each in operator.contract.parameters if each.output)
