"""The choices of options are those of the modules that take them; these are not imported for --help."""

from __future__ import annotations

from typing import get_args

import click

from generators.casegen.write_options import FORMATS
from generators.error_bounds.precision import PRECISIONS
from mluops_cli.commands import gen, run
from mluops_cli.reports.ci import Server
from mluops_cli.reports.markdown.translations import LANGUAGES


def choices(command: click.Command, name: str) -> list[str]:
    (option,) = (each for each in command.params if each.name == name)
    assert isinstance(option.type, click.Choice)
    return list(option.type.choices)


def test_choices() -> None:
    assert choices(gen.command, "format_") == list(FORMATS)
    assert choices(run.command, "accumulate") == list(PRECISIONS)
    assert choices(run.command, "lang") == list(LANGUAGES)
    assert choices(run.command, "ci") == ["auto", *get_args(Server)]
