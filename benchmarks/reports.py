"""Reports of 100,000 results, against reading the same lines as plain JSON: their time, and the memory it takes."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from benchmarks.measure import Row, seconds
from mluops_cli.core.record import RESULTS, Record

CASES: Final = 100_000
SUITES: Final = ("network", "boundary", "general", "nan_inf", "zero_element")
# In a process of its own, like `mluops report`. VmHWM is read because ru_maxrss starts at the parent's value.
_MEASURE: Final = """
import re, sys, time
from pathlib import Path
from mluops_cli.reports.dispatch import ReportFiles
from mluops_cli.results.finished import read_run
out, base = Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None
start = time.perf_counter()
ReportFiles(out, out / "j.xml", out / "r.html", out / "r.md", out / "r.csv", base=base).write(read_run(out))
print(time.perf_counter() - start, re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
"""


def rows() -> Iterator[Row]:
    """Seconds and memory of all reports together: without and with perf metrics, and against an earlier run."""
    with tempfile.TemporaryDirectory() as name:
        untimed, timed = Path(name, "untimed"), Path(name, "timed")
        for out, perf in ((untimed, False), (timed, True)):
            out.mkdir()
            _write(out / RESULTS, perf)
        lines = (untimed / RESULTS).read_bytes().splitlines()
        plain = seconds(lambda: sum(len(json.loads(line)) for line in lines))
        what = f"all reports of {CASES:,} results"
        for variant, folders, bound in (
            ("", [untimed], 10.0),
            (" with perf metrics", [timed], 10.0),
            (" with perf metrics and a base run", [timed, timed], 12.0),
        ):
            taken, megabytes = _measured(*folders)
            yield Row(f"{what}{variant}", taken, "s", bound)
            yield Row(f"memory of {what}{variant}", megabytes, "MB", 1000.0)
            if not variant:
                yield Row("all reports / reading the lines", taken / plain, "x", note=f"{plain:.3f} s for json.loads")


def _measured(*folders: Path) -> tuple[float, float]:
    """Seconds and the most megabytes of a process that writes all reports of a run: its folder, and the base's."""
    done = subprocess.run([sys.executable, "-c", _MEASURE, *folders], capture_output=True, text=True, check=True)
    taken, kibibytes = done.stdout.split()
    return float(taken), int(kibibytes) * 1024 / 1e6


def _write(path: Path, perf: bool) -> None:
    with path.open("w", encoding="utf-8") as file:
        for number in range(CASES):
            file.write(json.dumps(_record(number, perf).as_json(), allow_nan=False) + "\n")


def _record(number: int, perf: bool) -> Record:
    """A record as the supervisor writes it, one in a hundred of a failure; numbers have all their digits."""
    op, suite, fails = f"operator_{number % 7}", SUITES[number % 5], not number % 100
    case, dims = f"{op}/{suite}/some_name_h{number % 97}_{number}", [1 + number % 8, 50, 64 + number % 65]
    value = 0.5 if fails else 3e-3 * (number % 997) / 997
    criterion = {
        "name": "diff1", "value": value, "threshold": 3e-3, "source": "category composite", "passed": not fails,
        "smallest_passing": value, "judged": True, "margin": value / 3e-3,
    }  # fmt: skip
    output = {"shape": dims, "passed": not fails, "criteria": [criterion], "max_abs": value}
    made = Record(
        case, op, suite, f"out/cases/{case}.pb", "tiled", "fail" if fails else "pass",
        reason="y: diff1 = 0.5 > 0.003 (threshold from category composite)" if fails else "",
        outputs={"y": output | ({"diagnosis": _DIAGNOSIS} if fails else {})}, operator_status="SUCCESS",
        expected_status=["SUCCESS"], latency_us=120.5 + number / 7, interface_us=150.5 + number / 3, repeats=1,
        seconds=round(0.01 + number / 1e6, 6), repro=f"mluops run out/cases/{case}.pb --impl tiled",
        place=f"{op}.yaml:{12 + number % 300}",
        tensors={name: {"role": role, "dtype": "float", "layout": "NHWC", "dims": dims}
                 for name, role in (("x", "input"), ("y", "output"))},
    )  # fmt: skip
    if perf:
        latency = 120.5 + number / 7
        made.io_efficiency, made.compute_efficiency = (number % 89 + 1) / 90, (number % 97 + 1) / 98
        made.latency_interval_us, made.workspace_bytes = [latency * 0.99, latency * 1.02], 1024 * (number % 50)
        made.repeats, made.bit_identical = 20, True
        made.perf = {
            "runs": 20, "cache": "fresh", "timer": "host", "min_us": latency * 0.97, "spread": 0.1 + number / 1e7,
            "relative_error": 0.015 + number / 1e8, "io_bytes": 8.0 * number, "ops": 72.0 * number,
            "peak_bandwidth": 6008753086.531663, "peak_ops": 44838140660.77983, "peaks": "MLU370-X8",
            "bottleneck": "io", "file_latency_us": 80.0 + number, "relative_latency": latency / (80.0 + number),
        }  # fmt: skip
    return made


_ELEMENT: Final = {"at": [0, 12, 61], "baseline": -0.8218100070953369, "output": 0.5, "ulp": 2119328292}
_DIAGNOSIS: Final[dict[str, Any]] = {
    "wrong": 4802, "share": 0.75, "first": [_ELEMENT] * 4, "worst": [_ELEMENT] * 4,
    "regions": [{"kind": "tail", "axis": 2, "first": 61, "last": 63}],
    "patterns": [{"word": "constant", "text": "all of them hold 0.5"}], "density": [150] * 32,
    "histogram": [[exponent, 10 + exponent] for exponent in range(-4, 4)],
    "words": "4802 of 6400 elements wrong; all of them hold 0.5; first [0, 12, 61]: 0.5 instead of -0.8218100070953369",
}  # fmt: skip
