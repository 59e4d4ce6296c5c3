"""The implementations by name: bundled, from plug-in files, and from the entry points `mluops.implementations`.

An entry point or a class that fails makes its own implementation unusable, and is named; the others work.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any, Final

from mluops_cli.core.case_options import CaseOptions
from mluops_cli.core.exceptions import describe
from mluops_cli.implementations.base import Implementation
from mluops_cli.implementations.loading import foreign_code, load_error
from schemas.errors import InputError, MluopsError, UnavailableError
from schemas.suggest import did_you_mean

DEFAULT: Final = CaseOptions.impl
_BUNDLED: Final = {
    "tiled": "mluops_cli.implementations.tiled:Tiled",
    "reference": "mluops_cli.implementations.reference:Reference",
    "python": "mluops_cli.implementations.python:Python",
    "torch": "mluops_cli.implementations.torch:Torch",
    "triton": "mluops_cli.implementations.triton:Triton",
    "exec": "mluops_cli.implementations.exec:Exec",
    "capi": "mluops_cli.implementations.capi:CApi",
}
_GROUP: Final = "mluops.implementations"
_added: dict[str, type[Implementation]] = {}


@dataclass(frozen=True, slots=True)
class Known:
    """One line of `mluops implementations`; problem says why it can't be used here, None where it can.

    operators is None where only a call can tell.
    """

    name: str
    needs: str
    problem: str | None
    operators: tuple[str, ...] | None


def implementation_named(text: str) -> Implementation:
    """Construct the implementation of `NAME[:OPTIONS]`.

    InputError for an unknown name or wrong options, UnavailableError for something that the machine lacks.
    """
    name, _, options = text.partition(":")
    if name not in _names():
        raise _unknown(name)
    return _load(name).chosen(options)(options)


def _unknown(name: str) -> InputError:
    hint = ": a program is exec:PROGRAM" if "/" in name or "{" in name else did_you_mean(name, _names())
    return InputError(f"unknown implementation {name!r}{hint}")


def is_implementation(name: str) -> bool:
    """Return whether there is an implementation of this NAME."""
    return name in _names()


def operators_of(text: str) -> tuple[str, ...]:
    """Return the operators of the implementation of `NAME[:OPTIONS]`, none where only a call can tell.

    InputError for an unknown name.
    """
    name, _, options = text.partition(":")
    if name not in _names():
        raise _unknown(name)
    return _load(name).chosen(options).operators() or ()


def known() -> Iterator[Known]:
    """Yield every implementation with what it needs and whether this machine can use it."""
    for name in sorted(_names()):
        needs = ""
        try:
            found = _load(name)
            needs = found.needs
            yield Known(name, needs, found.unavailable(), found.operators())
        except MluopsError as error:
            yield Known(name, needs, str(error), ())
        except Exception as error:  # a class of someone else
            yield Known(name, needs, f"raised {describe(error)}", ())


def add_implementations(module: ModuleType) -> None:
    """Register the IMPLEMENTATIONS of a plug-in module; InputError for a name that is taken or anything else."""
    from generators.operator_registry import is_copy  # here: it imports every operator

    listed = getattr(module, "IMPLEMENTATIONS", ())
    if not isinstance(listed, (tuple, list)):
        raise InputError(f"{module.__file__}: IMPLEMENTATIONS is {listed!r}, expected a tuple of classes")
    for each in listed:
        if not _is_implementation(each):
            raise InputError(
                f"{module.__file__}: IMPLEMENTATIONS has {each!r}, expected a named subclass of Implementation"
            )
        if each.name in _names() and not is_copy(each, _load(each.name)):
            raise InputError(f"implementation {each.name!r} is registered twice")
        _added[each.name] = each


def _names() -> set[str]:
    return {*_BUNDLED, *_added, *(entry.name for entry in entry_points(group=_GROUP))}


def _is_implementation(found: Any) -> bool:
    return (
        isinstance(found, type) and issubclass(found, Implementation) and isinstance(getattr(found, "name", None), str)
    )


def _load(name: str) -> type[Implementation]:
    if name in _added:
        return _added[name]
    if name in _BUNDLED:
        module, _, attribute = _BUNDLED[name].partition(":")
        try:
            found = getattr(importlib.import_module(module), attribute)
        except ImportError as error:
            raise load_error(f"implementation {name!r}", error) from error
    else:
        found = _load_entry(name, list(entry_points(group=_GROUP, name=name)))
    if not _is_implementation(found):
        raise UnavailableError(f"implementation {name!r} is {found!r}, expected a named subclass of Implementation")
    checked: type[Implementation] = found
    return checked


def _load_entry(name: str, entries: list[EntryPoint]) -> Any:
    """Return the object of the entry point; UnavailableError, which names its package, where that is impossible."""
    packages = " and ".join(sorted({entry.dist.name if entry.dist is not None else entry.value for entry in entries}))
    if len({entry.value for entry in entries}) > 1:
        raise UnavailableError(f"implementation {name!r} is registered by {packages}: one has to be uninstalled")
    try:
        with foreign_code(f"implementation {name!r} of {packages}"):
            return entries[0].load()
    except InputError as error:
        raise UnavailableError(str(error)) from error
