"""What a call breaks of its operator's contract: such a call is made without asking for the size of a workspace."""

from __future__ import annotations

from generators.contracts.model import Violation
from generators.operator_registry import operators
from mluops_cli.implementations.base import Call


def violations(call: Call) -> list[Violation]:
    """The broken rules; none of an operator without a contract."""
    operator = operators().get(call.op)
    if operator is None:
        return []
    params = {name: tuple(value) if isinstance(value, list) else value for name, value in call.params.items()}
    return operator.contract.violations(call.descriptors, params)
