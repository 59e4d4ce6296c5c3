"""`mluops list`: what there is to generate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from mluops_cli.commands.options import plugin_option, spec_option
from mluops_cli.commands.problems import report_warning
from mluops_cli.commands.terminal_tables import table_lines
from mluops_cli.core.units import format_bytes

if TYPE_CHECKING:
    from generators.contracts.case import Case


@click.command(epilog="Example: mluops list psamask_forward psamask_backward")
@click.argument("ops", metavar="[OP]...", nargs=-1)
@spec_option
@plugin_option
def command(ops: tuple[str, ...], specs: tuple[Path, ...], plugins: tuple[Path, ...]) -> None:
    """List operators and suites with their number of cases and the bytes of their tensors.

    Everything is counted from the specs; no data is made.
    """
    from generators.casegen.case_data import case_bytes
    from generators.operator_registry import broken_entry_points

    for problem in broken_entry_points().values():
        report_warning(problem)
    counts: Counter[tuple[str, str]] = Counter()
    sizes: Counter[tuple[str, str]] = Counter()
    for case in _cases(ops, specs):
        counts[case.op, case.suite] += 1
        sizes[case.op, case.suite] += case_bytes(case)
    rows = [("operator", "suite", "cases", "bytes")]
    rows += [(*key, str(counts[key]), format_bytes(sizes[key])) for key in counts]
    rows.append(("all", "", str(counts.total()), format_bytes(sizes.total())))
    for line in table_lines(rows, right=frozenset({2, 3})):
        click.echo(line)


def _cases(ops: tuple[str, ...], specs: tuple[Path, ...]) -> Iterator[Case]:
    """The cases of the given specs, or the built-in ones, in the order of the specs."""
    from generators.operator_registry import operators
    from generators.specs.expansion import expand_operator
    from generators.specs.selection import select_cases

    if specs:
        yield from select_cases(ops, (), specs, 1)
        return
    for op in dict.fromkeys(ops or sorted(operators())):
        yield from expand_operator(op)
