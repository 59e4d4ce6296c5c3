"""The measurements of `run --perf` in reports: which cases, intervals of latencies, peaks, remarks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from mluops_cli.core.record import Record
from mluops_cli.core.units import format_microseconds, format_rate

PEAK_NAMES: Final = {"io": "bandwidth", "compute": "arithmetic", None: "peak"}  # by perf's bottleneck


def rated(records: Iterable[Record]) -> list[Record]:
    """The cases with a latency that --perf measured or that have an efficiency, in their order."""
    return [
        record
        for record in records
        if record.latency_us is not None
        and (record.perf or record.io_efficiency is not None or record.compute_efficiency is not None)
    ]


def perf_value(record: Record, name: str) -> Any:
    """A value of the measurement, None where there is none of that name."""
    return (record.perf or {}).get(name)


def describe_peaks(record: Record) -> str:
    """The peaks that a case's efficiencies are fractions of, and their source; empty where there is none."""
    rates = [
        format_rate(value, unit)
        for value, unit in ((perf_value(record, "peak_bandwidth"), "B"), (perf_value(record, "peak_ops"), "op"))
        if value
    ]
    return f"{' and '.join(rates)} ({perf_value(record, 'peaks')})" if rates else ""


def interval_text(record: Record) -> str:
    """The 95 % interval of the latency; empty where it is unknown."""
    bounds = record.latency_interval_us
    return " – ".join(map(format_microseconds, bounds)) if bounds else ""


def remark(record: Record) -> str:
    """The problem of the measurement, else its ratio to the latency in the case file; empty where there is neither."""
    if problem := perf_value(record, "problem"):
        return str(problem)
    relative = perf_value(record, "relative_latency")
    return "" if relative is None else f"{relative:.3g} times the case file's latency"
