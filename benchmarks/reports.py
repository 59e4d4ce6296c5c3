"""Reports of 100,000 results, against reading the same lines as plain JSON."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Row, seconds
from mluops_cli.reports.files import ReportFiles
from mluops_cli.reports.finished import read_run
from mluops_cli.reports.record import Record
from mluops_cli.reports.results import RESULTS

CASES = 100_000


def rows() -> Iterator[Row]:
    """Seconds of all reports together, and that as a ratio."""
    with tempfile.TemporaryDirectory() as name:
        out = Path(name)
        _write(out / RESULTS)
        plain = seconds(lambda: sum(len(json.loads(line)) for line in (out / RESULTS).read_bytes().splitlines()))
        wanted = ReportFiles(out, out / "j.xml", out / "r.html", out / "r.md", out / "r.csv")
        taken = seconds(lambda: wanted.write(read_run(out)))
        yield Row("all reports of 100,000 results", taken, "s", 10.0)
        yield Row("all reports / reading the lines", taken / plain, "x", note=f"{plain:.3f} s for json.loads")


def _write(path: Path) -> None:
    criterion = {"name": "diff1", "value": 1e-4, "threshold": 3e-3, "source": "category composite", "passed": True,
                 "smallest_passing": 1e-4, "judged": True, "margin": 0.033}  # fmt: skip
    tensors = {name: {"role": role, "dtype": "float", "layout": "NHWC", "dims": [2, 50, 64]}
               for name, role in (("x", "input"), ("y", "output"))}  # fmt: skip
    with path.open("w", encoding="utf-8") as file:
        for number in range(CASES):
            op, case = f"operator_{number % 7}", f"operator_{number % 7}/general/some_name_h{number % 97}_{number}"
            status = "pass" if number % 100 else "crash"
            made = Record(case, op, "general", f"cases/{case}.pb", "tiled", status, tensors=tensors)  # type: ignore[arg-type]
            made.outputs = {"y": {"shape": [2, 50, 64], "passed": True, "criteria": [criterion]}}
            made.latency_us, made.io_efficiency, made.compute_efficiency = 120.5, 0.45, 0.2
            file.write(json.dumps(made.as_json()) + "\n")
