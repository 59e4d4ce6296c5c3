"""How long `mluops --help` takes."""

from __future__ import annotations

import statistics
import subprocess
import sys

from benchmarks.measure import Row, seconds

_COMMAND = (sys.executable, "-m", "mluops_cli", "--help")


def rows() -> list[Row]:
    """`mluops --help` in a process of its own, the median of seven after one unmeasured; and a bare Python's time."""
    note = f"{_median((sys.executable, '-c', '')):.3f} s of that is Python"
    return [Row("mluops --help", _median(_COMMAND), "s", 0.3, note=note)]


def _median(command: tuple[str, ...]) -> float:
    def run() -> None:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    run()
    return statistics.median(seconds(run) for _ in range(7))
