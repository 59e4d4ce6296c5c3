"""`mluops implementations`: what can be run here."""

from __future__ import annotations

from pathlib import Path

import rich_click as click

from mluops_cli.commands.options import plugin_option


@click.command(epilog="Example: mluops implementations")
@plugin_option
def command(plugins: tuple[Path, ...]) -> int:
    """List the implementations: name, whether this machine can use them, what they need, their operators."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from mluops_cli.implementations.registry import DEFAULT, known

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("name", "usable here", "needs", "operators"):
        table.add_column(column, overflow="fold")
    for each in known():
        usable = Text("yes", "green") if each.problem is None else Text(f"no: {each.problem}", "red")
        name = f"{each.name} (default)" if each.name == DEFAULT else each.name
        table.add_row(Text(name), usable, Text(each.needs), Text(_operators(each.operators)))
    Console().print(table)
    return 0


def _operators(names: tuple[str, ...] | None) -> str:
    return "any" if names is None else ", ".join(sorted(names))
