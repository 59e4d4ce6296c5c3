"""The interface for people who write operators: `from generators import Operator, Contract, TensorSpec, ...`.

An operator is a class derived from Operator with a `contract` and a `reference` kernel, in a package that registers it
under the entry point group `mluops.operators`, or in a file given with `--plugin`. What this module does not name in
`__all__` is private and may change in any release. Names are imported when they are first used.

Names of types: Array, a NumPy array; Arrays, tensor name -> array; Shape, the dims of a tensor; Params, parameter name
-> int, float or tuple of ints; Env, sizes and parameters by name.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from generators.contracts.model import Contract, Coordinate, Env, Parameter, Params, RowSum, Rule, Shape, TensorSpec
    from generators.contracts.operator import Array, Arrays, Operator
    from generators.contracts.relations import Relation
    from generators.error_bounds.precision import rounding
    from generators.error_bounds.sums import sum_bound
    from schemas.criteria import Criterion
    from schemas.errors import InputError

__all__ = [
    "Array",
    "Arrays",
    "Contract",
    "Coordinate",
    "Criterion",
    "Env",
    "InputError",
    "Operator",
    "Parameter",
    "Params",
    "Relation",
    "RowSum",
    "Rule",
    "Shape",
    "TensorSpec",
    "rounding",
    "sum_bound",
]

_HOMES: Final = {
    "Array": "generators.contracts.operator",
    "Arrays": "generators.contracts.operator",
    "Contract": "generators.contracts.model",
    "Coordinate": "generators.contracts.model",
    "Criterion": "schemas.criteria",
    "Env": "generators.contracts.model",
    "InputError": "schemas.errors",
    "Operator": "generators.contracts.operator",
    "Parameter": "generators.contracts.model",
    "Params": "generators.contracts.model",
    "Relation": "generators.contracts.relations",
    "RowSum": "generators.contracts.model",
    "Rule": "generators.contracts.model",
    "Shape": "generators.contracts.model",
    "TensorSpec": "generators.contracts.model",
    "rounding": "generators.error_bounds.precision",
    "sum_bound": "generators.error_bounds.sums",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
