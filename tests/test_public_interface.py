"""The two public interfaces: every name is there, documented, and costs nothing until it is used."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from types import ModuleType

import pytest

import generators
import mluops_cli
from tests.conftest import PROJECT

INTERFACES = (generators, mluops_cli)
NAMES = [(module, name) for module in INTERFACES for name in module.__all__]
PLAIN = {"Array", "Arrays", "Env", "Params", "Shape"}  # names of types, explained where they stand


def members(cls: type) -> Iterator[tuple[str, object]]:
    """The public methods and properties that a class defines itself."""
    for name, value in vars(cls).items():
        if not name.startswith("_") and (inspect.isroutine(value) or isinstance(value, (property, classmethod))):
            yield name, value


@pytest.mark.parametrize(("module", "name"), NAMES, ids=[f"{module.__name__}.{name}" for module, name in NAMES])
def test_a_public_name_exists_and_is_documented(module: ModuleType, name: str) -> None:
    value = getattr(module, name)
    if name in PLAIN:
        return
    text = inspect.getdoc(value) or ""
    assert text.endswith((".", ":")), f"{name} has no docstring"
    assert "(" not in text.split("\n")[0] or not text.startswith(f"{name}("), f"{name} has a generated docstring alone"
    undocumented = [member for member, found in members(value) if not inspect.getdoc(found)]
    assert undocumented == []


@pytest.mark.parametrize("module", INTERFACES, ids=lambda module: module.__name__)
def test_names_are_sorted_and_nothing_else_is_offered(module: ModuleType) -> None:
    assert module.__all__ == sorted(module.__all__, key=str.lower) or module.__all__ == sorted(module.__all__)
    assert set(module._HOMES) == set(module.__all__)
    assert dir(module) == sorted(module.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        module.nothing  # noqa: B018 - the access is what is tested


@pytest.mark.parametrize("module", INTERFACES, ids=lambda module: module.__name__)
def test_importing_an_interface_imports_no_numpy(module: ModuleType) -> None:
    heavy = "{'numpy', 'yaml', 'google.protobuf', 'pydantic'}"
    code = f"import sys, {module.__name__}; assert not {heavy} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=PROJECT, check=True)


@pytest.mark.parametrize("package", ["schemas", "generators", "mluops_cli", "cases"])
def test_the_packages_are_typed(package: str) -> None:
    assert files(package).joinpath("py.typed").is_file()
