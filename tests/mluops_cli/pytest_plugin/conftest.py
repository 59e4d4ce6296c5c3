"""pytest in a folder of its own, with the plug-in."""

from __future__ import annotations

from collections.abc import Callable

import pytest

# pytester forgets what is imported in its tests: it would be loaded once more in each, which crashes protobuf.
import mluops_cli.commands.gen
import mluops_cli.implementations.python
import mluops_cli.implementations.tiled.psamask
import mluops_cli.pytest_plugin.case_files
import mluops_cli.reports.console  # noqa: F401
from generators.operator_registry import operators
from schemas.protos import messages
from tests.conftest import PROJECT

messages.Node()

# The option for an installation without the entry point; with it the option means the same plug-in. The plug-in of
# hypothesis imports a native module, which can't be loaded twice either.
PLUGIN = ("-p", "mluops_cli.pytest_plugin", "-p", "no:hypothesispytest")
RunPytest = Callable[..., pytest.RunResult]


@pytest.fixture(autouse=True)
def _our_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that a test starts find the source of the checkout."""
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))


@pytest.fixture
def run_pytest(pytester: pytest.Pytester) -> RunPytest:
    """Run `pytest ARGUMENTS...` in this process and in pytester's folder, where kernels.py is, too."""
    operators()
    (pytester.path / "kernels.py").write_text((PROJECT / "tests/mluops_cli/pytest_plugin/kernels.py").read_text())

    def run(*arguments: str, cache: bool = False) -> pytest.RunResult:
        own = PLUGIN if cache else (*PLUGIN, "-p", "no:cacheprovider")
        # Warnings are errors in this process, and the plug-in is imported in it.
        quiet = ("-W", "default", "-W", "ignore:Module already imported")
        return pytester.runpytest_inprocess(*own, *quiet, "--strict-markers", *arguments)

    return run
