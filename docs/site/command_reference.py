"""The reference of commands as Markdown, from what click knows: the texts and forms of `--help`.

sphinx-click prints the names of our variables where `--help` has the forms of values (`--format <format_>`), and reads
the texts as reStructuredText.
"""

from __future__ import annotations

import inspect
import re

import click

from mluops_cli.main import COMMANDS, cli


def reference() -> str:
    """A section per command, in the order of `mluops --help`."""
    context = click.Context(cli, info_name="mluops", **cli.context_settings)
    return "\n".join(_section(context, name) for name in COMMANDS)


def _section(parent: click.Context, name: str) -> str:
    _, command, _ = cli.resolve_command(parent, [name])
    assert command is not None
    return _described(parent, name, command, "##")


def _described(parent: click.Context, name: str, command: click.Command, level: str) -> str:
    """The section of a command, and below it those of its own commands."""
    context = click.Context(command, info_name=name, parent=parent)
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    options = [record for each in command.params if (record := each.get_help_record(context))]
    listed = "\n".join(f"`{form}`\n: {_escaped(text)}\n" for form, text in options if text)
    parts = [f"{level} {context.command_path}", f"    {usage}", _escaped(inspect.cleandoc(command.help or "")), listed]
    if command.epilog:
        kind, _, example = command.epilog.partition(": ")
        parts.append(f"{kind}:\n\n    {example}")
    below = command.commands.items() if isinstance(command, click.Group) else ()
    parts += [_described(context, each, found, f"{level}#") for each, found in below]
    return "\n\n".join(parts) + "\n"


def _escaped(text: str) -> str:
    """The text with the signs of Markdown escaped, but for code in backticks."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([\\*_<\[\]#|~$])", r"\\\1", part) for part in parts)
