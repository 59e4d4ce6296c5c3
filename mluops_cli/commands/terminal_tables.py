"""Plain tables: aligned columns that the width of the terminal doesn't wrap or cut."""

from __future__ import annotations

from collections.abc import Sequence


def table_lines(rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()) -> list[str]:
    """The lines of a table, two spaces between columns; right holds the indices of right-aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines
