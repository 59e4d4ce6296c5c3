"""The tree: who may import whom, how large a package is, and that a module's name means one thing."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tests.conftest import PROJECT

pytestmark = pytest.mark.checkout

PACKAGES = ("schemas", "generators", "cases", "mluops_cli")
MODULES = 14  # a package with more holds a second subject; commands are one module per command
LINES = 300  # a module with more holds a second idea

# Names that stand more than once with one meaning: of an operator, the base of a package, a command and its engine.
OPERATORS = {path.stem for path in (PROJECT / "generators" / "operators").glob("[!_]*.py")}
SHARED = {"__init__", "base", *OPERATORS}
ENGINES = {
    "compare": {"mluops_cli/commands", "mluops_cli/results"},
    "gate": {"mluops_cli/commands", "mluops_cli/results"},
}


def modules() -> list[Path]:
    """Every module of the packages, relative to the project."""
    return sorted(path.relative_to(PROJECT) for package in PACKAGES for path in (PROJECT / package).rglob("*.py"))


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """The import contracts of pyproject.toml, put to the tree in this folder."""
    program = Path(sys.executable).with_name("lint-imports")
    return subprocess.run([program, "--no-cache"], cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source, for planting imports in it."""
    folder = tmp_path_factory.mktemp("copy")
    for package in PACKAGES:
        shutil.copytree(PROJECT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROJECT / "pyproject.toml", folder)
    return folder


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("schemas/dtypes.py", "import generators.expressions", "The layers of the tree"),
        ("schemas/wire/varints.py", "import schemas.casefiles.reading", "The layers of schemas"),
        ("generators/data/rng.py", "import generators.specs.axes", "The layers of generators"),
        ("mluops_cli/core/events.py", "import mluops_cli.results.jsonl", "The layers of mluops_cli"),
        (
            "generators/operators/psamask.py",
            "import generators.operators.roi_crop",
            "Reference kernels are independent",
        ),
        ("mluops_cli/implementations/tiled/psamask.py", "import generators.operators.psamask", "What is under test"),
        ("mluops_cli/core/record.py", "import subprocess", "core knows no screen"),
        ("mluops_cli/judging/verdict.py", "import pathlib", "judging knows no file"),
    ],
)
def test_a_planted_import_breaks_its_contract(copy: Path, module: str, line: str, contract: str) -> None:
    path = copy / module
    before = path.read_text(encoding="utf-8")
    path.write_text(before + f"\n\ndef planted() -> None:\n    {line}  # noqa: F401\n", encoding="utf-8")
    try:
        ran = lint_imports(copy)
    finally:
        path.write_text(before, encoding="utf-8")
    assert ran.returncode == 1
    broken = [row for row in ran.stdout.splitlines() if row.endswith("BROKEN")]
    assert any(row.startswith(contract) for row in broken), ran.stdout


def test_no_package_holds_too_many_modules() -> None:
    sizes = Counter(path.parent.as_posix() for path in modules() if path.name != "__init__.py")
    del sizes["mluops_cli/commands"]
    assert {package: size for package, size in sizes.items() if size > MODULES} == {}


def test_no_module_is_too_long() -> None:
    lengths = {str(path): (PROJECT / path).read_text(encoding="utf-8").count("\n") for path in modules()}
    assert {path: lines for path, lines in lengths.items() if lines > LINES} == {}


def test_a_name_means_one_thing() -> None:
    where: defaultdict[str, set[str]] = defaultdict(set)
    for path in modules():
        where[path.stem].add(path.parent.as_posix())
    twice = {name: folders for name, folders in where.items() if len(folders) > 1 and name not in SHARED}
    assert twice == ENGINES


def test_cases_hold_no_code() -> None:
    (only,) = (PROJECT / "cases").rglob("*.py")
    assert only.read_text(encoding="utf-8").count("\n") == 1
