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


def describe_peaks(records: Iterable[Record]) -> list[str]:
    """The peaks that efficiencies are fractions of, with their source: 6.01 GB/s and 44.8 Gop/s (H100). Each once."""
    measured = (record.perf for record in records if record.perf)
    known = dict.fromkeys((perf.get("peak_bandwidth"), perf.get("peak_ops"), perf.get("peaks")) for perf in measured)
    return [
        f"{' and '.join(format_rate(rate, unit) for rate, unit in ((bandwidth, 'B'), (ops, 'op')) if rate)} ({source})"
        for bandwidth, ops, source in known
        if bandwidth or ops
    ]


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
