"""The matrix of implementations as Markdown and as CSV."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mluops_cli.core.statuses import PASSING, STATUSES
from mluops_cli.reports.csv import csv_rows
from mluops_cli.reports.markdown.document import code, plain
from mluops_cli.reports.side_by_side.matrix import APART, Cell, Matrix
from schemas.suggest import counted

COLUMNS: Final = (
    "op", "impl", "verdict", "cases", *STATUSES, "bound_ratio", "latency_ratio", "compared_latencies",
    "incomparable_latencies",
)  # fmt: skip


def cell_text(cell: Cell | None) -> str:
    """A cell in one line: `10/12, 2 fail, 0.52 x (8 cases), bound 0.3`."""
    if cell is None:
        return ""
    parts = [f"{cell.good}/{cell.cases}"]
    others = [status for status in STATUSES if status not in PASSING and cell.counts[status]]
    parts += [f"{cell.counts[status]} {status}" for status in others]
    if cell.latency_ratio is not None:
        parts.append(f"{cell.latency_ratio:.3g} x ({counted(len(cell.ratios), 'case')})")
    if cell.bound_ratio is not None:
        parts.append(f"bound {cell.bound_ratio:.3g}")
    return ", ".join(parts)


def notes(matrix: Matrix) -> Iterator[str]:
    """What a reader has to know of the figures."""
    yield (
        "Passed or empty of all cases; other statuses; x: latency by that of the first implementation, the geometric "
        "mean over cases that both pass, measured on one device; bound: the largest error in units of its error bound."
    )
    if number := sum(cell.incomparable for row in matrix.rows.values() for cell in row if cell is not None):
        latencies = counted(number, "latency", "latencies")
        yield f"{latencies} not compared: an error of measurement, or measured on another device or another case file."
    if matrix.other_files:
        cases = counted(len(matrix.other_files), "case")
        yield f"{cases} with other files in some of the runs, the first: {matrix.other_files[0]}."


def markdown_lines(matrix: Matrix) -> Iterator[str]:
    """The matrix, and the cases on which the implementations differ."""
    yield "# Implementations side by side\n\n"
    yield from _table(("operator", *matrix.names), [(op, *map(cell_text, row)) for op, row in matrix.rows.items()])
    yield from (f"\n{plain(note)}\n" for note in notes(matrix))
    if matrix.apart:
        yield f"\n## {counted(len(matrix.apart), 'case')} with different verdicts\n\n"
        listed = [*matrix.apart.items()][:APART]
        yield from _table(("case", *matrix.names), [(case, *statuses) for case, statuses in listed])
        if len(matrix.apart) > APART:
            yield f"\n{len(matrix.apart) - APART} more are in the results.\n"


def csv_lines(matrix: Matrix) -> Iterator[str]:
    """A row per operator and implementation."""
    rows = [
        (op, name, cell.verdict, cell.cases, *(cell.counts[status] for status in STATUSES), cell.bound_ratio,
         cell.latency_ratio, len(cell.ratios), cell.incomparable)
        for op, row in matrix.rows.items()
        for name, cell in zip(matrix.names, row, strict=True)
        if cell is not None
    ]  # fmt: skip
    yield from csv_rows(COLUMNS, rows)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join([plain(head[0]), *map(code, head[1:])])} |\n"
    yield f"|{' --- |' * len(head)}\n"
    yield from (f"| {' | '.join([code(first), *map(plain, rest)])} |\n" for first, *rest in rows)
