"""The operators by name: bundled, of the entry points `mluops.operators`, and of plug-in files."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from importlib.metadata import entry_points
from typing import Any

import generators.operators
from generators.contracts.operator import Operator
from schemas.errors import InputError
from schemas.suggest import did_you_mean


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
