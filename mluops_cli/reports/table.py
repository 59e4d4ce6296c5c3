"""CSV: a row per case, for spreadsheets."""

from __future__ import annotations

import csv
import io
from operator import attrgetter
from typing import Any, Final

from mluops_cli.reports.finished import FinishedRun, worst
from mluops_cli.reports.performance import perf_value
from mluops_cli.reports.record import Record
from mluops_cli.reports.text import visible

_NAMED: Final = ("case", "op", "suite", "impl", "status", "reason")
_MEASURED: Final = ("name", "value", "threshold", "margin", "source")
_FIGURES: Final = (
    "operator_status", "latency_us", "interface_us", "io_efficiency", "compute_efficiency", "workspace_bytes",
    "repeats", "bit_identical", "seconds", "place", "file", "repro", "worker",
)  # fmt: skip
_PERF: Final = ("bottleneck", "runs", "cache", "relative_error", "relative_latency", "peaks", "problem")
_TIMED: Final = ("latency_low_us", "latency_high_us", *(f"perf_{name}" for name in _PERF))
COLUMNS: Final = (*_NAMED, "output", "criterion", *_MEASURED[1:], *_FIGURES, *_TIMED)
_named, _figures = attrgetter(*_NAMED), attrgetter(*_FIGURES)
_FORMULA: Final = ("=", "+", "-", "@", "\t")


def csv_text(run: FinishedRun) -> str:
    """All records as CSV; the criterion is the one nearest to its threshold. Texts can't become formulas."""
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(_row(record) for record in run.records)
    return target.getvalue()


def _row(record: Record) -> list[Any]:
    found = worst(record)
    measured = [found.output, *map(found.criterion.get, _MEASURED)] if found else [None] * (1 + len(_MEASURED))
    bounds = record.latency_interval_us or (None, None)
    timed = (perf_value(record, name) for name in _PERF)
    values = (*_named(record), *measured, *_figures(record), *bounds, *timed)
    return [_cell(value) if isinstance(value, str) else value for value in values]


def _cell(value: str) -> str:
    text = visible(value)
    return f"'{text}" if text.startswith(_FORMULA) else text
