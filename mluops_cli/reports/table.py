"""CSV: a row per case, for spreadsheets."""

from __future__ import annotations

import csv
import io
from typing import Any, Final

from mluops_cli.reports.finished import FinishedRun, worst
from mluops_cli.reports.record import Record
from mluops_cli.reports.text import visible

COLUMNS: Final = (
    "case", "op", "suite", "impl", "status", "reason", "output", "criterion", "value", "threshold", "margin", "source",
    "operator_status", "latency_us", "interface_us", "io_efficiency", "compute_efficiency", "workspace_bytes",
    "repeats", "bit_identical", "seconds", "place", "file", "repro",
)  # fmt: skip
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
    criterion = found.criterion if found else {}
    own = {"output": found.output if found else None, "criterion": criterion.get("name")}
    values = own | {name: criterion.get(name) for name in ("value", "threshold", "margin", "source")}
    return [_cell(values[name] if name in values else getattr(record, name)) for name in COLUMNS]


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = visible(value)
    return f"'{text}" if text.startswith(_FORMULA) else text
