"""The command line, called in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from mluops_cli.main import main


class Ran(NamedTuple):
    """What a command did: exit code, stdout, stderr."""

    code: int
    out: str
    err: str


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
