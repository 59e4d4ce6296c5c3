"""`make gpu-check`: a table of runs with --perf on one device: kernel, PyTorch's composition, a copy of the same bytes.

A copy of n bytes reads n and writes n, so a case that moves `io_bytes` is held against a copy of half as many.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

import torch
from rich.console import Console
from rich.table import Table

from mluops_cli.implementations.on_device.device import Device

WIDTH: Final = 200
COPIES: Final = 20


def main(kernels: Path, compositions: Path, name: str) -> None:
    """Print the table of the passing cases of two runs' results.jsonl, measured on the device of this name."""
    ours, theirs = latencies(kernels), latencies(compositions)
    device = Device(name)
    table = Table(title=f"{device.name}, torch {torch.__version__}: microseconds, caches flushed")
    for column in ("case", "kernel", "composition", "copy", "of the copy's bandwidth"):
        table.add_column(column, justify="left" if column == "case" else "right")
    for case, (latency, io_bytes) in sorted(ours.items()):
        other = f"{theirs[case][0]:,.1f}" if case in theirs else "-"
        copy = copy_us(device, int(io_bytes)) if io_bytes else None
        told = ("-", "-") if copy is None else (f"{copy:,.1f}", f"{copy / latency:.0%}")
        table.add_row(case, f"{latency:,.1f}", other, *told)
    Console(width=WIDTH).print(table)


def latencies(results: Path) -> dict[str, tuple[float, float | None]]:
    """Latency and bytes moved of every case that passed and was measured."""
    found: dict[str, tuple[float, float | None]] = {}
    for line in (results / "results.jsonl").read_text(encoding="utf-8").splitlines():
        record: dict[str, Any] = json.loads(line)
        if record.get("status") == "pass" and record.get("latency_us"):
            found[record["case"]] = record["latency_us"], (record.get("perf") or {}).get("io_bytes")
    return found


def copy_us(device: Device, io_bytes: int) -> float:
    """The median time of a copy that moves this many bytes, with the caches flushed before each."""
    source = torch.ones(max(1, io_bytes // 2), dtype=torch.uint8, device=device.device)
    target = torch.empty_like(source)
    times = []
    for _ in range(COPIES):
        device.flush_cache()
        with device.timed() as taken:
            target.copy_(source)
        times += taken
    return sorted(times)[len(times) // 2]


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
