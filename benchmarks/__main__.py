"""`make bench`: every module here with a function `rows`, or those named on the command line."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from typing import Final

import click
from rich.console import Console
from rich.table import Table

import benchmarks

WIDTH: Final = 240  # columns in a file or a pipe: no row wraps
PARTS: Final = [
    each.name for each in pkgutil.iter_modules(benchmarks.__path__) if each.name not in ("__main__", "measure")
]


@click.command()
@click.argument("parts", nargs=-1, type=click.Choice(PARTS), metavar="[PART]...")
def main(parts: tuple[str, ...]) -> None:
    """Measure and print all parts or those named; exits 0: speed on a shared machine is reported, not asserted."""
    table = Table(title="mluops bench")
    for column in ("metric", "value", "bound", "holds", "note"):
        table.add_column(column)
    for part in parts or PARTS:
        for row in importlib.import_module(f"benchmarks.{part}").rows():
            sign = ">=" if row.at_least else "<="
            bound = "" if row.bound is None else f"{sign} {row.bound:g} {row.unit}"
            holds = {None: "", True: "yes", False: "NO"}[row.holds]
            table.add_row(row.name, f"{row.value:,.2f} {row.unit}", bound, holds, row.note)
    Console(width=None if sys.stdout.isatty() else WIDTH).print(table)


if __name__ == "__main__":
    main()
