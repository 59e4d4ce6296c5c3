"""The command line, called in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import click
import pytest

from generators.operator_registry import operators
from mluops_cli.implementations import plugins, registry
from mluops_cli.main import cli as group
from mluops_cli.main import main


class Ran(NamedTuple):
    """What a command did: exit code, stdout, stderr."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session", autouse=True)
def _own_key(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Sign summaries with a key of the tests, not with the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _one_core() -> Iterator[None]:
    """Commands that are told no -j start one worker, or none: the tests share the cores."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mluops_cli.core.hardware.machine.cpu_quota", lambda: 1.0)
        yield


Cli = Callable[..., Ran]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Call `mluops ARGUMENTS...`."""

    def run(*arguments: object) -> Ran:
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert isinstance(stop.value.code, int)
        return Ran(stop.value.code, captured.out, captured.err)

    return run


def parsed_options(command: click.Command, *arguments: str) -> dict[str, Any]:
    """The options of a command line, below `mluops` as ever: a command keeps the names of its first help option."""
    context = click.Context(group, **group.context_settings)
    return command.make_context(command.name, list(arguments), parent=context).params


@pytest.fixture
def own_plugins() -> Iterator[None]:
    """What the test loads as plug-ins is forgotten after it: their operators and implementations."""
    known, added, loaded = dict(operators()), dict(registry._added), set(plugins._loaded)
    yield
    operators().clear()
    operators().update(known)
    registry._added.clear()
    registry._added.update(added)
    plugins._loaded.clear()
    plugins._loaded.update(loaded)
