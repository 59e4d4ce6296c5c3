"""`mluops check`: a linter for case files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import rich_click as click

from mluops_cli.commands.options import generation_option, plugin_option
from mluops_cli.commands.terminal_tables import table_lines

_SUFFIXES: Final = (".pb", ".prototxt")
_FOUND: Final = 1
_NOTHING_SELECTED: Final = 5


@click.command(epilog="Example: mluops check dumps --json | jq '.findings[] | select(.severity == \"error\")'")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
@click.option("-q", "--quiet", is_flag=True, help="Leave out notes.")
@generation_option
@plugin_option
def command(paths: tuple[Path, ...], as_json: bool, quiet: bool, enum_numbering: str, plugins: tuple[Path, ...]) -> int:
    """Say what is wrong or odd in the case files at PATH..., folders searched recursively.

    Exit code 1 with errors or warnings (a file that can't be read is an error), 0 otherwise, notes or not.
    """
    from mluops_cli.lint.finding import NOTE, counts
    from mluops_cli.lint.linter import check_file

    files = list(_files(paths))
    if not files:
        click.echo("no case files (.pb or .prototxt) here", err=True)
        return _NOTHING_SELECTED
    found = [finding for path in files for finding in check_file(path, enum_numbering)]
    total = counts(found)
    shown = [each for each in found if each.severity != NOTE] if quiet else found
    if as_json:
        record = {"files": len(files), **total, "findings": [each.as_record() for each in shown]}
        click.echo(json.dumps(record, indent=1, allow_nan=False))
    else:
        rows = [("severity", "rule", "place", "finding", "what to do")]
        rows += [(each.severity, each.rule, each.place, each.message, each.fix) for each in shown]
        for line in table_lines(rows) if shown else ():
            click.echo(line)
        words = ", ".join(f"{number} {word}{'s' if number != 1 else ''}" for word, number in total.items())
        click.echo(f"{len(files)} case file{'s' if len(files) != 1 else ''}: {words}")
    return _FOUND if total["error"] or total["warning"] else 0


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    """The case files, each once, in the order of their paths; a file that was named is taken whatever its name."""
    from schemas.errors import InputError

    seen: set[str] = set()
    for argument in paths:
        if argument.is_dir():
            found = [Path(where, name) for where, _, names in os.walk(argument) for name in names]
            chosen = sorted(path for path in found if path.suffix in _SUFFIXES)
        elif argument.exists():
            chosen = [argument]
        else:
            raise InputError(f"no such file or folder: {argument}")
        for path in chosen:
            key = os.path.realpath(path)
            if key not in seen:
                seen.add(key)
                yield path
