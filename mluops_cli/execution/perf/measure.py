"""Performance mode: measures the latency of a call until the median is steady, and compares it with the peaks."""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic  # by name: an implementation may replace it in the module
from typing import Any, Final

import numpy as np

from mluops_cli.core.case_options import CaseOptions
from mluops_cli.core.hardware.peaks import MEASURED, cache_file, peaks_for
from mluops_cli.execution.case.calls import GOES_ON, Calls, Result, failed
from mluops_cli.execution.kernel_process.kernel_handle import KernelProcess
from mluops_cli.execution.kernel_process.timed_call import Kernel, flush_caches, timed_call
from mluops_cli.execution.perf.efficiency import efficiency_of, shortfall, work_of
from mluops_cli.execution.perf.empty_calls import EmptyCalls
from mluops_cli.execution.perf.new_data_calls import call_on_new_data

STEADY: Final = 0.02  # relative error of the median at which the measurement ends
LEAST: Final = 10  # runs before the error is checked
MOST: Final = 100_000  # runs, even where the clock stands still
PATIENCE: Final = 10  # times min_time: the longest measurement of a case, judging included
_WARM_UP: Final = 2  # calls after the first that aren't timed
_NORMAL_95: Final = 1.96
_INTERVAL: Final = 6  # runs from which their extremes enclose the median with 95 %


@dataclass(frozen=True, slots=True)
class Sample:
    """Times of repeated runs in microseconds: the median and its 95 % confidence interval (None: too few runs)."""

    median: float
    interval: tuple[float, float] | None
    least: float
    spread: float  # distance of the quartiles, relative to the median

    @property
    def error(self) -> float:
        """Relative error of the median: half its interval; infinite where there is none."""
        if self.interval is None or not self.median:
            return math.inf
        return (self.interval[1] - self.interval[0]) / 2 / self.median


def sample_of(times: Sequence[float]) -> Sample:
    """Summarise the times of one run or more; the interval is by order statistics, for any distribution."""
    ordered = sorted(times)
    count = len(ordered)
    median = statistics.median(ordered)
    quartiles = np.percentile(ordered, (25, 75))
    interval = None
    if count >= _INTERVAL:
        rank = max(0, int((count - _NORMAL_95 * math.sqrt(count)) / 2))
        interval = ordered[rank], ordered[count - 1 - rank]
    return Sample(median, interval, ordered[0], float(quartiles[1] - quartiles[0]) / median if median else 0.0)


class Meter:
    """Measures cases in one worker; InputError where peaks are needed and unknown."""

    def __init__(self, options: CaseOptions, kernel: Kernel) -> None:
        self.options = options
        self.kernel = kernel
        self.empty = EmptyCalls(options, kernel) if isinstance(kernel, KernelProcess) else None
        self.peaks = peaks_for(options, kernel.device())

    def measure(self, calls: Calls, judged: Result) -> Result:
        """Measure a case whose first call, the warm-up, was right; return the record's keys about latency.

        The verdict is that of the last run: the first that is wrong ends the measurement.
        """
        start = monotonic()
        result = judged
        if calls.latencies[-1] < self.options.min_time * 1e6 / PATIENCE:
            for _ in range(_WARM_UP):
                result = calls.once()
                if result["status"] not in GOES_ON:
                    return result
        first, ready = len(calls.timed), self._ready(calls)
        while result["status"] in GOES_ON:
            result = calls.once(ready)
            times = calls.latencies[first:]
            empty = self.empty if result["status"] in GOES_ON else None
            if empty is not None and (late := empty.follow(calls, len(times))):
                return result | failed(late, retire=True)
            if result["status"] in GOES_ON and self._done(times, monotonic() - start):
                measured = result | self._metrics(calls, times, first, result)
                if self.empty is not None and (reason := self.empty.too_short(calls, first)):
                    return measured | failed(reason)
                if self.options.rotate and measured["status"] in GOES_ON:
                    new, verdict = call_on_new_data(calls, statistics.median(times), ready)
                    measured["perf"]["new_data_us"] = new
                    measured |= verdict
                return measured
        return result

    def _ready(self, calls: Calls) -> Callable[[], None]:
        """The function that brings the caches into the chosen state directly before a timed call."""

        def fresh() -> None:
            flush_caches(self.kernel)

        def warm() -> None:
            with suppress(BaseException):  # the judged call that follows shows what is wrong
                timed_call(self.kernel, calls.prepared.call)
            calls.fill()

        return fresh if self.options.cache == "fresh" else warm

    def _done(self, times: Sequence[float], elapsed: float) -> bool:
        if self.options.repeat is not None:
            return len(times) >= self.options.repeat
        if elapsed >= PATIENCE * self.options.min_time or len(times) >= MOST:
            return True
        enough = len(times) >= LEAST and sum(times) >= self.options.min_time * 1e6
        return enough and sample_of(times).error <= STEADY

    def _metrics(self, calls: Calls, times: Sequence[float], first: int, result: Result) -> Result:
        sample = sample_of(times)
        prepared = calls.prepared
        work = work_of(prepared.bound, prepared.call.inputs, prepared.baseline)
        found = efficiency_of(work, sample.median, self.peaks)
        perf: dict[str, Any] = {
            "runs": len(times),
            "cache": self.options.cache,
            "threads": threads_of_blas(),
            "timer": "host" if calls.timed[-1].outcome.latency_us is None else "implementation",
            "min_us": sample.least,
            "spread": sample.spread,
            "relative_error": sample.error if math.isfinite(sample.error) else None,
            "io_bytes": work.io_bytes,
            "ops": work.ops,
            "peak_bandwidth": self.peaks.bandwidth,
            "peak_ops": self.peaks.ops,
            "peaks": self.peaks.source,
            "bottleneck": found.bottleneck,
        }
        if stored := stored_latency(prepared.bound.file.node):
            perf |= {"file_latency_us": stored, "relative_latency": sample.median / stored}
        metrics: Result = {
            "latency_us": sample.median or None,
            "latency_interval_us": list(sample.interval) if sample.interval else None,
            "interface_us": statistics.median(each.host_us for each in calls.timed[first:]),
            "perf": perf,
        }
        if not sample.median:  # unmeasured: it must not hold a gate, or win a comparison
            perf["problem"] = "error of measurement: the timer shows 0 µs for a call"
        elif wrong := found.impossible:
            # Efficiencies above what is possible must not hold a gate, or win a comparison.
            again = f"; remove {cache_file()} to measure again" if MEASURED in self.peaks.source else ""
            perf["problem"] = f"error of measurement: {wrong} ({self.peaks.source}{again})"
        else:
            metrics |= {"io_efficiency": found.io, "compute_efficiency": found.compute}
        if self.options.perf_gate and result["status"] == "pass":
            operator = prepared.bound.operator
            contract = operator.contract if operator is not None else None
            if reason := perf.get("problem") or shortfall(contract, prepared.bound.suite, found):
                metrics |= failed(reason)
        return metrics


def threads_of_blas() -> int | None:
    """Return how many threads OpenMP and BLAS use in this process; None where the environment doesn't say."""
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(first) if first.isdecimal() else None


def stored_latency(node: Any) -> float | None:
    """The latency in a case file, in microseconds, of the device that made its baseline; None where it has none."""
    return float(node.latency or node.test_param.latency) or None
