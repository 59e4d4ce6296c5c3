"""The operators by name: bundled, of the entry points `mluops.operators`, and of plug-in files.

An entry point that fails is named (broken_entry_points); the other operators work.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

import numpy as np

import generators.operators
from generators.contract_mistakes import check_contract
from generators.contracts.operator import Operator
from schemas.errors import InputError, MluopsError
from schemas.protos.foreign_import import foreign_import
from schemas.suggest import did_you_mean

_GROUP: Final = "mluops.operators"
_broken: dict[str, str] = {}


@cache
def operators() -> dict[str, Operator]:
    """All operators by name: the modules of generators.operators, then the entry points `mluops.operators`."""
    found: dict[str, Operator] = {}
    for module in pkgutil.iter_modules(generators.operators.__path__):
        _register(found, importlib.import_module(f"generators.operators.{module.name}").OPERATORS)
    for entry in entry_points(group=_GROUP):
        _load(found, entry)
    return found


def broken_entry_points() -> Mapping[str, str]:
    """The entry points that give no operator: name -> what is wrong, with the package that has it."""
    operators()
    return _broken


def add_operators(module: Any) -> None:
    """Register the OPERATORS of a plug-in module; a name that is taken is an InputError."""
    _register(operators(), getattr(module, "OPERATORS", ()))


def operator_named(name: str) -> Operator:
    """The operator of that name; InputError with a suggestion where there is none."""
    try:
        return operators()[name]
    except KeyError:
        broken = "".join(f"; {text}" for text in _broken.values())
        raise InputError(f"unknown operator {name!r}{did_you_mean(name, operators())}{broken}") from None


def _load(found: dict[str, Operator], entry: EntryPoint) -> None:
    package = entry.dist.name if entry.dist is not None else entry.value
    try:
        with foreign_import(), np.errstate():
            loaded = entry.load()
            _register(found, loaded if isinstance(loaded, (list, tuple)) else (loaded,))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever a module of another package raises when it is imported
        told = str(error) if isinstance(error, MluopsError) else f"{type(error).__name__}: {error}"
        text = f"entry point {entry.name!r} of package {package} gives no operator: {' '.join(told.split())}"
        _broken[entry.name] = text


def _register(found: dict[str, Operator], new: Any) -> None:
    for each in new:
        operator = each() if isinstance(each, type) else each
        if not isinstance(operator, Operator):
            raise InputError(f"{each!r} is no Operator")
        check_contract(operator)
        name = operator.contract.op
        if name in found and not is_copy(type(operator), type(found[name])):
            files = [type(each).reference.__code__.co_filename for each in (found[name], operator)]
            raise InputError(f"operator {name!r} is registered twice, in {' and '.join(files)}")
        found.setdefault(name, operator)


def is_copy(new: type, known: type) -> bool:
    """Whether a class is a known one, of the same file: a plug-in file may be the module of an entry point too."""
    first, second = (sys.modules.get(each.__module__) for each in (new, known))
    if first is None or second is None or first is second or new.__qualname__ != known.__qualname__:
        return False
    files = [getattr(module, "__file__", None) for module in (first, second)]
    return None not in files and os.path.realpath(str(files[0])) == os.path.realpath(str(files[1]))
