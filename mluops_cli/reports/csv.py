"""CSV: a row per case, for spreadsheets.

Cells are made column by column: most columns hold few distinct texts, and each text is escaped once.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

from mluops_cli.core.escaping import visible
from mluops_cli.core.record import Record
from mluops_cli.results.finished import FinishedRun, Judged

_NAMED: Final = ("case", "op", "suite", "impl", "status", "reason")
_MEASURED: Final = ("name", "value", "threshold", "margin", "source")
_METRICS: Final = (
    "operator_status", "latency_us", "interface_us", "io_efficiency", "compute_efficiency", "workspace_bytes",
    "repeats", "bit_identical", "seconds", "place", "file", "repro", "worker", "device", "beyond_design",
)  # fmt: skip
_PERF: Final = ("bottleneck", "runs", "cache", "relative_error", "relative_latency", "peaks", "problem")
_TIMED: Final = ("latency_low_us", "latency_high_us", *(f"perf_{name}" for name in _PERF))
_DOUBTS: Final = ("beyond_bound", "bound_ratio", "repeat")  # of all outputs, the worst
COLUMNS: Final = (*_NAMED, "output", "criterion", *_MEASURED[1:], *_METRICS, *_TIMED, *_DOUBTS, "params", "programs")
_FORMULA: Final = ("=", "+", "-", "@", "\t")
_BATCH: Final = 5000  # records whose cells are in memory at once


def csv_text(run: FinishedRun) -> str:
    """All records as CSV, with the criterion that is nearest to its threshold. No text can become a formula."""
    return "".join(csv_lines(run))


def csv_lines(run: FinishedRun) -> Iterator[str]:
    """The CSV text in parts: as one string it takes more memory than any other report."""
    yield _lines([COLUMNS])
    for start in range(0, len(run.records), _BATCH):
        batch = slice(start, start + _BATCH)
        columns = _columns(run.records[batch], run.worst[batch], run.repeats)
        yield _lines(zip(*map(_cells, columns), strict=True))


def csv_rows(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """A head and rows as CSV; no text can become a formula."""
    yield _lines([columns])
    yield _lines([[_cell(each) if isinstance(each, str) else each for each in row] for row in rows])


def _lines(rows: Iterable[Iterable[Any]]) -> str:
    target = io.StringIO()
    csv.writer(target, lineterminator="\n").writerows(rows)
    return target.getvalue()


def _columns(
    records: Sequence[Record], worst: Sequence[Judged | None], repeats: Mapping[str, str]
) -> Iterator[list[Any]]:
    """The values of each column, in the order of COLUMNS."""
    yield from ([*map(attrgetter(name), records)] for name in _NAMED)
    yield [found.output if found else None for found in worst]
    yield from ([found.criterion.get(name) if found else None for found in worst] for name in _MEASURED)
    yield from ([*map(attrgetter(name), records)] for name in _METRICS)
    bounds = [record.latency_interval_us or (None, None) for record in records]
    yield from ([low for low, _ in bounds], [high for _, high in bounds])
    yield from ([record.perf.get(name) if record.perf else None for record in records] for name in _PERF)
    yield from ([*map(attrgetter(name), records)] for name in ("beyond_bound", "bound_ratio"))
    yield [repeats.get(record.case) for record in records] if repeats else [None] * len(records)
    yield [record.params_text for record in records]
    yield [", ".join(record.programs) for record in records]


def _cells(values: list[Any]) -> list[Any]:
    """A column's values with their texts escaped; in most columns no text needs it."""
    kinds = {*map(type, values)}
    if str not in kinds:
        return values
    texts = {*values} if kinds == {str} else {value for value in values if isinstance(value, str)}
    odd = {text: cell for text in texts if (cell := _cell(text)) != text}
    return [odd.get(value, value) if isinstance(value, str) else value for value in values] if odd else values


def _cell(value: str) -> str:
    text = visible(value)
    return f"'{text}" if text.startswith(_FORMULA) else text
