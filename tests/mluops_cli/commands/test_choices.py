"""Choices and defaults of options are those of the modules that take them; these are not imported for --help."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import click

from generators.casegen.write_options import FORMATS, WriteOptions
from generators.error_bounds.precision import PRECISIONS
from mluops_cli.commands import fuzz, gen, mutate, run, run_options
from mluops_cli.core.case_options import CaseOptions
from mluops_cli.reports.ci import Server
from mluops_cli.reports.markdown.translations import LANGUAGES
from tests.mluops_cli.conftest import parsed_options


def choices(command: click.Command, name: str) -> list[str]:
    (option,) = (each for each in command.params if each.name == name)
    assert isinstance(option.type, click.Choice)
    return list(option.type.choices)


def test_choices() -> None:
    assert choices(gen.command, "format_") == list(FORMATS)
    assert choices(run.command, "accumulate") == list(PRECISIONS)
    assert choices(run.command, "lang") == list(LANGUAGES)
    assert choices(run.command, "ci") == ["auto", *get_args(Server)]


def test_defaults() -> None:
    given = parsed_options(gen.command)
    assert gen._options(given) == WriteOptions(Path("mluops-cases"), jobs=given["jobs"])
    plain = run_options.case_options(parsed_options(run.command, "cases"))
    assert plain == CaseOptions()
    assert run_options.case_options(parsed_options(mutate.command)) == plain
    searching = run_options.case_options(parsed_options(fuzz.command))
    assert searching == CaseOptions(timeout=30.0, bound="fail", relations=True)
