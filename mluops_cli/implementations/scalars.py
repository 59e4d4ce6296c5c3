"""The scalar results of an operator, such as num_act_out: what an implementation may answer with besides a status."""

from __future__ import annotations

from generators.operator_registry import operators


def scalar_names(op: str) -> tuple[str, ...] | None:
    """Their names; None, which is any, where the operator has no contract."""
    operator = operators().get(op)
    return None if operator is None else tuple(each.name for each in operator.contract.parameters if each.output)
