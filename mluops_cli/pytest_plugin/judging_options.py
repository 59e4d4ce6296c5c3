"""The options of `mluops run` that decide a verdict, from one text, read by the command's own rules."""

from __future__ import annotations

import shlex

import rich_click as click

from mluops_cli.commands import run_options
from mluops_cli.commands.options import generation_option, plugin_option
from mluops_cli.core.case_options import CaseOptions
from schemas.errors import InputError


@click.command(add_help_option=False)
@run_options.repeat_option
@run_options.judging_options
@generation_option
@plugin_option
def _command(**given: object) -> CaseOptions:
    return run_options.case_options(given)


def judging_options(text: str) -> CaseOptions:
    """The options in a text such as "--bound fail --repeat 3"; InputError where mluops run would refuse them.

    Plug-in files that it names are loaded.
    """
    try:
        found: CaseOptions = _command.main(shlex.split(text), prog_name="options", standalone_mode=False)
    except click.ClickException as error:
        raise InputError(f"options {text!r}: {error.format_message()}") from None
    except ValueError as error:  # of shlex: a quote without its end
        raise InputError(f"options {text!r}: {error}") from None
    return found
