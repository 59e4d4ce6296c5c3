"""`mluops list`: what there is to generate."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import rich_click as click

from mluops_cli.commands.options import plugin_option
from mluops_cli.commands.terminal_tables import table_lines
from mluops_cli.core.units import format_bytes


@click.command(epilog="Example: mluops list psamask_forward psamask_backward")
@click.argument("ops", metavar="[OP]...", nargs=-1)
@plugin_option
def command(ops: tuple[str, ...], plugins: tuple[Path, ...]) -> None:
    """List operators and suites with their number of cases and the bytes of their tensors.

    Everything is counted from the specs; no data is made.
    """
    from generators.casegen.case_data import case_bytes
    from generators.operator_registry import operator_named, operators
    from generators.specs.expansion import expand_operator

    rows: list[tuple[str, str, str, str]] = [("operator", "suite", "cases", "bytes")]
    total, total_bytes = 0, 0
    for op in dict.fromkeys(ops or sorted(operators())):
        operator_named(op)
        cases: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        for case in expand_operator(op):
            cases[case.suite] += 1
            sizes[case.suite] += case_bytes(case)
        rows += [(op, suite, str(cases[suite]), format_bytes(sizes[suite])) for suite in cases]
        total += cases.total()
        total_bytes += sizes.total()
    rows.append(("all", "", str(total), format_bytes(total_bytes)))
    for line in table_lines(rows, right=frozenset({2, 3})):
        click.echo(line)
