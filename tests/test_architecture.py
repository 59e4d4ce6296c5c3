"""ARCHITECTURE.md: what it names is there, and its packages stand in the order of the import contracts."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import PROJECT

pytestmark = pytest.mark.checkout

PAGE = (PROJECT / "ARCHITECTURE.md").read_text(encoding="utf-8")
LINES = 80  # of the page
CODE = ("schemas", "generators", "mluops_cli")


def rows(heading: str) -> list[list[str]]:
    """The rows of the table below a heading, without its head."""
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("|")][2:]


def quoted(text: str) -> list[str]:
    """The words in backticks."""
    return re.findall(r"`([^`]+)`", text)


def existing(word: str, folders: list[Path]) -> list[Path]:
    """The files and folders of a path, from the project or from one of these folders; it may have a *."""
    return [path for folder in (PROJECT, *folders) for path in folder.glob(word)] if word.strip("-.") else []


@cache
def names_in(module: Path) -> frozenset[str]:
    """What a module defines: functions, classes, Class.method, constants."""
    found = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
    return frozenset(found)


def missing(row: list[str]) -> list[str]:
    """The words of a row that are neither a file or folder nor defined in a file of the row; options are left out."""
    folders: list[Path] = []
    modules: list[Path] = []
    names = []
    for word in quoted(" | ".join(row)):
        found = existing(word, folders)
        folders += [path.parent for path in found]
        modules += [path for path in found if path.suffix == ".py"]
        if not found and not word.startswith("-"):
            names.append(word)
    return [name for name in names if not any(name in names_in(module) for module in modules)]


@pytest.mark.parametrize("row", rows("Where to find"), ids=lambda row: row[0])
def test_a_row_points_to_what_is_there(row: list[str]) -> None:
    assert quoted(row[1])
    assert missing(row) == []


def test_what_is_not_there_is_found_missing() -> None:
    row = ["thresholds", "`generators/contracts/model.py` (`Contract.bind`, `Contract.unbind`), `gone.py`, `--rotate`"]
    assert missing(row) == ["Contract.unbind", "gone.py"]


@pytest.mark.parametrize("row", rows("Packages, the lowest first"), ids=lambda row: row[0])
def test_a_row_of_packages_names_what_is_in_them(row: list[str]) -> None:
    container = PROJECT / quoted(row[0])[0].partition("/")[0]
    packages = [path for word in quoted(row[0]) for path in existing(word, [container])]
    assert packages
    for word in quoted(row[1]):
        assert " " in word or existing(word, packages) or existing(word, [container]), word


def layers(container: str) -> list[set[str]]:
    """The layers of a package as import-linter has them, the lowest first."""
    text = (PROJECT / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(rf'^containers = \["{container}"\]\nlayers = \[\n(.*?)^\]', text, re.MULTILINE | re.DOTALL)
    assert found is not None
    return [set(line.split(" | ")) for line in re.findall(r'"(.+)"', found[1])[::-1]]


def described(container: str) -> list[set[str]]:
    """The layers of a package as the page has them."""
    cells = [row[0] for row in rows("Packages, the lowest first")]
    parts = [part for cell in cells if cell.startswith(f"`{container}/") for part in cell.split(", then ")]
    return [{Path(word).stem for word in quoted(part)} for part in parts]


@pytest.mark.parametrize("container", CODE)
def test_packages_stand_in_the_order_of_the_import_contracts(container: str) -> None:
    expected, found = layers(container), described(container)
    if found[0] == {"*"}:  # the modules beside the packages
        found = found[1:]
        expected = [
            each for each in expected if not any((PROJECT / container / f"{name}.py").exists() for name in each)
        ]
    assert found == expected


def test_the_ideas_name_what_is_there() -> None:
    ideas = PAGE.partition("## Ideas")[2]
    defined = {name for package in CODE for module in (PROJECT / package).rglob("*.py") for name in names_in(module)}
    for word in quoted(ideas + PAGE.partition("## Packages")[0]):
        if "/" in word or word.endswith(".py"):
            assert any(path for package in CODE for path in (PROJECT / package).rglob(word)) or existing(word, []), word
        elif re.fullmatch(r"([A-Z][a-z]+)+", word):
            assert word in defined


def test_it_is_one_page() -> None:
    assert PAGE.count("\n") <= LINES
