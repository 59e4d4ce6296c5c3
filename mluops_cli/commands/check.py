"""`mluops check`: a linter for case files."""

from __future__ import annotations

import json
from pathlib import Path

import rich_click as click

from mluops_cli.commands.options import generation_option, plugin_option
from mluops_cli.commands.terminal_tables import table_lines
from mluops_cli.core.escaping import one_line
from mluops_cli.core.statuses import FAILED, NOTHING_SELECTED


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
    from mluops_cli.core.discovery import find_case_files
    from mluops_cli.lint.finding import NOTE, counts
    from mluops_cli.lint.linter import check_file

    files = [each.path for each in find_case_files(paths, both_forms=True)]
    if not files:
        click.echo("no case files (.pb or .prototxt) here", err=True)
        return NOTHING_SELECTED
    found = [finding for path in files for finding in check_file(path, enum_numbering)]
    total = counts(found)
    shown = [each for each in found if each.severity != NOTE] if quiet else found
    if as_json:
        record = {"files": len(files), **total, "findings": [each.as_record() for each in shown]}
        click.echo(json.dumps(record, indent=1, allow_nan=False))
    else:
        rows: list[tuple[str, ...]] = [("severity", "rule", "place", "finding", "what to do")]
        cells = ((each.severity, each.rule, each.place, each.message, each.fix) for each in shown)
        rows += [tuple(map(one_line, row)) for row in cells]
        for line in table_lines(rows) if shown else ():
            click.echo(line)
        words = ", ".join(f"{number} {word}{'s' if number != 1 else ''}" for word, number in total.items())
        click.echo(f"{len(files)} case file{'s' if len(files) != 1 else ''}: {words}")
    return FAILED if total["error"] or total["warning"] else 0
