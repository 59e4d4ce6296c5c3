"""Arrows run downward only: mluops_cli -> generators -> schemas, and no implementation shares code with a reference."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.conftest import PROJECT

FLOORS = ("schemas", "generators", "mluops_cli")
IMPLEMENTATIONS = PROJECT / "mluops_cli" / "implementations"


def imported(path: Path) -> set[str]:
    """The modules a file imports, at any depth of its code."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add("." * node.level + (node.module or ""))
    return found


@pytest.mark.parametrize("floor", FLOORS)
def test_a_floor_imports_only_itself_and_those_below(floor: str) -> None:
    above = FLOORS[FLOORS.index(floor) + 1 :]
    files = sorted((PROJECT / floor).rglob("*.py"))
    assert files
    upward = [
        f"{path.relative_to(PROJECT)} imports {name}"
        for path in files
        for name in imported(path)
        if name.split(".")[0] in (*above, "tests", "benchmarks") or name.startswith(".")
    ]
    assert upward == []


@pytest.mark.parametrize("room", ["tiled", "torch", "preconditions"])
def test_bundled_implementations_share_nothing_with_the_generators(room: str) -> None:
    files = sorted((IMPLEMENTATIONS / room).rglob("*.py"))
    assert files
    shared = [
        f"{path.name} imports {name}" for path in files for name in imported(path) if name.split(".")[0] == "generators"
    ]
    assert shared == []


def test_cases_hold_no_code() -> None:
    assert [path.name for path in (PROJECT / "cases").rglob("*.py")] == ["__init__.py"]
    assert imported(PROJECT / "cases" / "__init__.py") == set()


def test_the_check_sees_an_upward_import(tmp_path: Path) -> None:
    path = tmp_path / "planted.py"
    path.write_text("def f():\n    from mluops_cli.main import main\n", encoding="utf-8")
    assert imported(path) == {"mluops_cli.main"}
