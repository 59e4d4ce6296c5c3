"""A pytest plug-in: cases of operators as tests (docs/pytest.md).

pytest loads this module in every session of an environment that mluops is installed in. What needs NumPy is imported
when a test has the marker `mluops` or `--mluops` is given, so that an unused plug-in costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from mluops_cli.pytest_plugin.case_in_test import MluopsCase

__all__ = ["MluopsCase", "MluopsWarning"]

MARKER: Final = "mluops"
_MARKER_HELP: Final = (
    f"{MARKER}(*operators, suite=None, spec=None, seed=1, options=''): run the test once per case of the operators; "
    "the fixture mluops_case is the case"
)


class MluopsWarning(UserWarning):
    """A case passed, but there is a doubt: mistrusted, beyond its error bound, varying between repeats, unverified."""


def __getattr__(name: str) -> Any:
    if name != "MluopsCase":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.case_in_test").MluopsCase


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of case files."""
    group = parser.getgroup("mluops", "case files of mluops")
    group.addoption(
        "--mluops",
        action="append",
        default=[],
        metavar="PATH",
        help="A case file, or a folder of them: a test per case. May be given several times.",
    )
    group.addoption("--mluops-impl", metavar="NAME[:OPTIONS]", help="The implementation under test, as of mluops run.")
    group.addoption(
        "--mluops-options",
        metavar="TEXT",
        help="Options of mluops run that judge: --mluops-options='--bound fail'. One word needs the = sign: "
        "--mluops-options=--relations.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker; with --mluops also what collects case files."""
    config.addinivalue_line("markers", _MARKER_HELP)
    if config.getoption("mluops"):
        from mluops_cli.pytest_plugin.case_files import CaseFiles

        config.pluginmanager.register(CaseFiles(config), "mluops-case-files")
    elif config.getoption("mluops_impl") or config.getoption("mluops_options"):
        raise pytest.UsageError("--mluops-impl and --mluops-options need --mluops PATH")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test per case of a test function that has the marker and takes the fixture."""
    if next(metafunc.definition.iter_markers(MARKER), None) is not None:
        from mluops_cli.pytest_plugin.marker import parametrize

        parametrize(metafunc)


@pytest.fixture(scope="session")
def _mluops_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the files of cases; each is removed after its test."""
    return tmp_path_factory.mktemp("mluops")


@pytest.fixture
def mluops_case(request: pytest.FixtureRequest, _mluops_folder: Path) -> Iterator[MluopsCase]:
    """The case of this test, made by @pytest.mark.mluops: id, inputs, outputs, params, check(), run(kernel)."""
    if not hasattr(request, "param"):
        pytest.fail(f"the fixture mluops_case needs @pytest.mark.{MARKER}(OPERATOR) on the test", pytrace=False)
    from mluops_cli.pytest_plugin.marker import opened

    with opened(request.param, _mluops_folder) as case:
        yield case
