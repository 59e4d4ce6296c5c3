"""The modules that an implementation's source is in, and how a process loads a changed one in their place."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from mluops_cli.implementations.loading import foreign_code, module_name
from mluops_cli.implementations.on_device.device_options import split_target
from schemas.errors import InputError

_PACKAGES: Final = {
    name: (f"mluops_cli.implementations.{name}.", "mluops_cli.implementations.preconditions.")
    for name in ("tiled", "torch")
}


@dataclass(frozen=True, slots=True)
class SourceModule:
    """A module of an implementation: its name, its file, its text."""

    name: str
    file: str
    text: str


@dataclass(frozen=True, slots=True)
class Mutation:
    """The text that a module is loaded with."""

    module: str
    file: str
    text: str


def source_modules(impl: str) -> tuple[str, ...]:
    """The names of the modules with the source of `--impl NAME[:OPTIONS]`; one that ends in a dot: all below it.

    InputError where the implementation isn't Python, or its source isn't known.
    """
    name, _, options = impl.partition(":")
    if name == "torch" and (target := split_target(options)[0]):
        name, options = "python", target
    if name in _PACKAGES:
        return _PACKAGES[name]
    if name != "python":
        known = ", ".join(("python:FILE.py:NAME", *_PACKAGES))
        raise InputError(f"--impl {impl}: only the source of {known} can be mutated; --catalogue needs no source")
    source, _, wanted = options.rpartition(":")
    if not source or not wanted:
        raise InputError(f"--impl {impl} names no object: expected python:FILE.py:NAME or python:package.module:NAME")
    return (module_name(Path(source)) if source.endswith(".py") else source,)


def loaded_sources(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The name and the file of every loaded module that these names mean."""
    for name, module in sorted(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and file.endswith(".py") and is_source(name, names):
            yield name, file


def is_source(module: str, names: Sequence[str]) -> bool:
    """Whether a module is one of those that these names mean."""
    return any(module == each or (each.endswith(".") and module.startswith(each)) for each in names)


def load_mutation(mutation: Mutation, names: Sequence[str]) -> None:
    """Load the changed module under its own name; modules that hold parts of the right one are loaded anew.

    InputError or UnavailableError where it can't be loaded.
    """
    packages = {each.rstrip(".") for each in names}
    for name in [name for name in sys.modules if name in packages or is_source(name, names)]:
        del sys.modules[name]
    for folder in (os.path.dirname(mutation.file), os.getcwd()):  # as loading does, for the modules beside it
        if folder not in sys.path:
            sys.path.append(folder)
    sys.meta_path.insert(0, _Finder(mutation))
    with foreign_code(mutation.file):
        importlib.import_module(mutation.module)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds and loads one module, with a text of ours."""

    def __init__(self, mutation: Mutation) -> None:
        self.mutation = mutation

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        """The module, as if it came from its file."""
        if name != self.mutation.module:
            return None
        package = os.path.basename(self.mutation.file) == "__init__.py"
        where = [os.path.dirname(self.mutation.file)] if package else None
        return importlib.util.spec_from_file_location(
            name, self.mutation.file, loader=self, submodule_search_locations=where
        )

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """An ordinary module."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Run the text."""
        exec(compile(self.mutation.text, self.mutation.file, "exec"), vars(module))
