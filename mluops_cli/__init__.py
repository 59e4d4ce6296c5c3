"""The interface for people who write implementations: `from mluops_cli import Implementation, Call, Outcome, ...`.

An implementation is a class derived from Implementation, in a package that registers it under the entry point group
`mluops.implementations`, or in a file given with `--plugin`. A kernel that Python can call needs no class: see
`--impl python:`. What this module does not name in `__all__` is private and may change in any release. Names are
imported when they are first used, so that `mluops --help` stays quick. Array is the type of a NumPy array.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from generators.contracts.faults import Fault
    from mluops_cli.implementations.base import (
        AdapterError,
        Array,
        BadAnswer,
        Call,
        CannotShow,
        Crashed,
        Implementation,
        Outcome,
        OutOfBounds,
    )
    from schemas.errors import InputError, UnavailableError
    from schemas.tensor_descriptor import Descriptor

__all__ = [
    "AdapterError",
    "Array",
    "BadAnswer",
    "Call",
    "CannotShow",
    "Crashed",
    "Descriptor",
    "Fault",
    "Implementation",
    "InputError",
    "OutOfBounds",
    "Outcome",
    "UnavailableError",
]

_HOMES: Final = {
    "AdapterError": "mluops_cli.implementations.base",
    "Array": "mluops_cli.implementations.base",
    "BadAnswer": "mluops_cli.implementations.base",
    "Call": "mluops_cli.implementations.base",
    "CannotShow": "mluops_cli.implementations.base",
    "Crashed": "mluops_cli.implementations.base",
    "Descriptor": "schemas.tensor_descriptor",
    "Fault": "generators.contracts.faults",
    "Implementation": "mluops_cli.implementations.base",
    "InputError": "schemas.errors",
    "OutOfBounds": "mluops_cli.implementations.base",
    "Outcome": "mluops_cli.implementations.base",
    "UnavailableError": "schemas.errors",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
