"""The operator: a contract, a reference kernel and the theoretical work; and the registry of all of them."""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import generators.operators
from generators.contracts.model import Contract, Env, Params, Shape
from generators.contracts.expressions import parse_expression
from schemas.errors import InputError
from schemas.suggest import did_you_mean

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]


class Operator(ABC):
    """One operator. Subclasses state the contract as data and the reference kernel as short NumPy.

    cases is the YAML file with its specs; None means the file of the operator's name in the package `cases`.
    """

    contract: ClassVar[Contract]
    cases: ClassVar[Path | None] = None

    @abstractmethod
    def reference(self, inputs: Arrays, env: Env) -> Arrays:
        """The outputs by name for inputs by name; float64 inside, bit-exact for copies.

        env holds the parameters, and the sizes that the shapes of all tensors tell (Contract.bind).
        """

    def reference_in(self, dtype: type[np.floating[Any]], inputs: Arrays, env: Env) -> Arrays | None:
        """What reference computes, with every intermediate value in this dtype; None: there is no such computation.

        Dynamic thresholds come from it (generators/casegen/thresholds.py): how far off may a right kernel of that precision be?
        """
        return None

    def baseline(self, inputs: Arrays, shapes: Mapping[str, Shape], params: Params) -> Arrays:
        """The outputs of the reference kernel for a call with tensors of these shapes, outputs included."""
        return self.reference(inputs, self.contract.bind(shapes, params))

    def check_values(self, inputs: Arrays, env: Env) -> None:  # noqa: B027 - most operators take any values
        """InputError where the values of an input are outside the contract; the shapes are known to be right."""

    def draw(self, tensor: str, recipe: str, env: Env, rng: np.random.Generator, arrays: Arrays) -> Array | None:
        """Values of an input for a recipe (a distribution of the operator's own); None where it knows none such."""
        return None

    def theory_ops(self, env: Env, inputs: Arrays, outputs: Arrays) -> float:
        """Theoretical operations of one call (OPERATORS.md, theoretical work)."""
        return float(parse_expression(self.contract.theory_ops)(env))

    def theory_io_bytes(self, env: Env, inputs: Arrays, outputs: Arrays) -> float:
        """Theoretical bytes moved by one call: inputs and outputs once."""
        return float(sum(array.nbytes for array in (*inputs.values(), *outputs.values())))


@cache
def operators() -> dict[str, Operator]:
    """All operators by name: the modules of generators.operators, then the entry points `mluops.operators`."""
    found: dict[str, Operator] = {}
    for module in pkgutil.iter_modules(generators.operators.__path__):
        _register(found, importlib.import_module(f"generators.operators.{module.name}").OPERATORS)
    for entry in entry_points(group="mluops.operators"):
        loaded = entry.load()
        _register(found, loaded if isinstance(loaded, (list, tuple)) else (loaded,))
    return found


def add_operators(module: Any) -> None:
    """Register the OPERATORS of a plug-in module; a name that is taken is an InputError."""
    _register(operators(), getattr(module, "OPERATORS", ()))


def operator_named(name: str) -> Operator:
    """The operator of that name; InputError with a suggestion where there is none."""
    try:
        return operators()[name]
    except KeyError:
        raise InputError(f"unknown operator {name!r}{did_you_mean(name, operators())}") from None


def _register(found: dict[str, Operator], new: Any) -> None:
    for each in new:
        operator: Operator = each() if isinstance(each, type) else each
        name = operator.contract.op
        if name in found:
            raise InputError(f"operator {name!r} is registered twice")
        found[name] = operator
