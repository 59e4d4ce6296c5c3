"""Peaks that efficiencies are measured against: given, of a device in the table, or measured on this machine."""

from __future__ import annotations

import json
import platform
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from mluops_cli.core.case_options import CaseOptions
from mluops_cli.core.machine import cores, last_level_cache, processor
from schemas.errors import InputError
from schemas.suggest import did_you_mean

TABLE: Final = Path(__file__).with_name("peaks.yaml")
MEASURED: Final = "measured on this machine"
_TRIES: Final = 15
_MATRIX: Final = 512  # rows: three of these lie in a core's own cache


@dataclass(frozen=True, slots=True)
class Peaks:
    """Bandwidth in bytes/s, ops in operations/s, None where unknown; and where they come from."""

    bandwidth: float | None
    ops: float | None
    source: str


def peaks_for(options: CaseOptions, device: str | None) -> Peaks:
    """The peaks of a run on a device (None: this machine's cores); InputError for a device that isn't in the table.

    What is given goes before the table, the table before a measurement. A gate without any peak is an InputError too.
    """
    found = Peaks(None, None, "")
    name = options.device or device
    if name is not None:
        found = device_peaks(name)
        if options.device and not found.source:
            raise InputError(f"no peaks of a device {name!r} are known{did_you_mean(name, _table())}: {_expected()}")
    elif options.peak_bandwidth is None or options.peak_ops is None:
        found = measured_peaks()
    given = [
        word for word, value in (("bandwidth", options.peak_bandwidth), ("ops", options.peak_ops)) if value is not None
    ]
    source = f"{' and '.join(given)} given" if given else ""
    bandwidth = options.peak_bandwidth if options.peak_bandwidth is not None else found.bandwidth
    ops = options.peak_ops if options.peak_ops is not None else found.ops
    if options.perf_gate and bandwidth is None and ops is None:
        raise InputError(f"--perf-gate: no peaks of {name} are known: {_expected()}")
    return Peaks(bandwidth, ops, "; ".join(filter(None, (source, found.source if len(given) < 2 else ""))))


def device_peaks(name: str) -> Peaks:
    """The table's entry for a device's name; without figures where there is none."""
    words = set(re.findall(r"[a-z0-9]+", name.lower()))
    fitting = [key for key in _table() if set(re.findall(r"[a-z0-9]+", key.lower())) <= words]
    if not fitting:
        return Peaks(None, None, "")
    key = max(fitting, key=len)
    return Peaks(float(_table()[key]["bandwidth"]), float(_table()[key]["ops"]), f"{key}, stated by its maker")


def _expected() -> str:
    return f"expected --peak-bandwidth and --peak-ops, or --device with one of {', '.join(_table())}"


@cache
def _table() -> dict[str, Any]:
    import yaml

    table: dict[str, Any] = yaml.load(TABLE.read_text(encoding="utf-8"), yaml.CSafeLoader)
    return table


def measured_peaks() -> Peaks:
    """What this machine's cores reach, measured once and kept; processes that ask together wait for one of them."""
    from filelock import FileLock

    path = cache_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        kept: dict[str, Any] = {}
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            return Peaks(**kept[machine()])
        except (OSError, ValueError, KeyError, TypeError):
            kept = kept if isinstance(kept, dict) else {}
        found = Peaks(measure_bandwidth(), measure_ops(), MEASURED)
        path.write_text(json.dumps({**kept, machine(): asdict(found)}, indent=2) + "\n", encoding="utf-8")
    return found


def cache_file() -> Path:
    """Where measured peaks are kept."""
    from platformdirs import user_cache_path

    return user_cache_path("mluops") / "peaks.json"


def machine() -> str:
    """What measured peaks are kept by: the machine, its processor, and the cores we may use."""
    return f"{platform.node()}: {processor()}, {cores()} cores"


def measure_bandwidth() -> float:
    """Bytes read and written per second by all cores that copy, each its own part of what no cache holds."""
    count = max(4 * last_level_cache(), 64 << 20) // cores()
    parts = [(np.ones(count, np.uint8), np.zeros(count, np.uint8)) for _ in range(cores())]
    seconds = _fastest([lambda a=a, b=b: np.copyto(b, a) for a, b in parts])  # type: ignore[misc]
    return 2.0 * count * len(parts) / seconds


def measure_ops() -> float:
    """Float32 operations per second of all cores that multiply and add (matrices that their caches hold)."""
    rng = np.random.default_rng(0)
    matrices = [rng.random((3, _MATRIX, _MATRIX), np.float32) for _ in range(cores())]
    seconds = _fastest([lambda m=m: np.matmul(m[0], m[1], out=m[2]) for m in matrices])  # type: ignore[misc]
    return 2.0 * _MATRIX**3 * len(matrices) / seconds


def _fastest(actions: list[Callable[[], object]]) -> float:
    """Seconds of the fastest of several tries to do all actions at once, one thread each."""
    best = float("inf")
    with ThreadPoolExecutor(len(actions)) as pool:
        for _ in range(_TRIES):
            start = time.perf_counter()
            for each in [pool.submit(action) for action in actions]:
                each.result()
            best = min(best, time.perf_counter() - start)
    return best
