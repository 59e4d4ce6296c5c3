"""The implementations by name: bundled, of plug-in files, and of the entry points `mluops.implementations`."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points
from types import ModuleType
from typing import Final

from mluops_cli.implementations.base import Implementation
from schemas.errors import InputError, MluopsError, UnavailableError
from schemas.suggest import did_you_mean

DEFAULT: Final = "tiled"
_BUNDLED: Final = {
    "tiled": "mluops_cli.implementations.tiled:Tiled",
    "reference": "mluops_cli.implementations.reference:Reference",
    "python": "mluops_cli.implementations.python:Python",
    "torch": "mluops_cli.implementations.torch:Torch",
    "exec": "mluops_cli.implementations.exec:Exec",
    "capi": "mluops_cli.implementations.capi:CApi",
}
_added: dict[str, type[Implementation]] = {}


@dataclass(frozen=True, slots=True)
class Known:
    """One line of `mluops implementations`; problem says why it can't be used here, None where it can."""

    name: str
    needs: str
    problem: str | None
    operators: tuple[str, ...] | None


def implementation_named(text: str) -> Implementation:
    """The implementation of `NAME[:OPTIONS]`; InputError for an unknown name, UnavailableError for what is missing."""
    name, _, options = text.partition(":")
    if name not in _names():
        raise InputError(f"unknown implementation {name!r}{did_you_mean(name, _names())}")
    return _load(name)(options)


def known() -> Iterator[Known]:
    """Every implementation with what it needs and whether this machine has it."""
    for name in sorted(_names()):
        try:
            found = _load(name)
        except MluopsError as error:
            yield Known(name, "", str(error), ())
        else:
            yield Known(name, found.needs, found.unavailable(), found.operators())


def add_implementations(module: ModuleType) -> None:
    """Register the IMPLEMENTATIONS of a plug-in module; a name that is taken is an InputError."""
    for each in getattr(module, "IMPLEMENTATIONS", ()):
        if each.name in _names():
            raise InputError(f"implementation {each.name!r} is registered twice")
        _added[each.name] = each


def _names() -> set[str]:
    return {*_BUNDLED, *_added, *(entry.name for entry in entry_points(group="mluops.implementations"))}


def _load(name: str) -> type[Implementation]:
    if name in _added:
        return _added[name]
    try:
        if name in _BUNDLED:
            module, _, attribute = _BUNDLED[name].partition(":")
            found = getattr(importlib.import_module(module), attribute)
        else:
            (entry,) = entry_points(group="mluops.implementations", name=name)
            found = entry.load()
    except (ImportError, AttributeError) as error:
        raise UnavailableError(f"implementation {name!r} can't be loaded: {error}") from error
    if not (isinstance(found, type) and issubclass(found, Implementation)):
        raise UnavailableError(f"implementation {name!r} is {found!r}, expected a subclass of Implementation")
    return found
