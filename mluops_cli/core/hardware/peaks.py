"""Peaks that efficiencies are measured against: given, of a device in the table, or measured on this machine."""

from __future__ import annotations

import json
import platform
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from filelock import FileLock
from platformdirs import user_cache_path

from mluops_cli.core.case_options import CaseOptions
from mluops_cli.core.hardware.machine import cores, last_level_cache, processor
from schemas.atomic_files import write_text
from schemas.errors import InputError, UnavailableError
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
    """Return the peaks of a run on a device (None: this machine's cores).

    Rates that the options give are used first, then the table of devices, then a measurement. InputError for a device
    of the options that isn't in the table, and for a gate without any peak.
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
    """Return the peaks of the table's entry whose words are all in the name; rates are None where there is no entry."""
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
    """Return what this machine's cores reach, measured once and kept; processes that ask together measure once.

    Where the folder of the cache can't be written, every process measures for itself.
    """
    path = cache_file()
    if (found := _kept_peaks(path)) is not None:
        return found
    with ExitStack() as lock:
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            lock.enter_context(FileLock(path.with_suffix(".lock")))
        if (found := _kept_peaks(path)) is not None:
            return found
        found = Peaks(measure_bandwidth(), measure_ops(), MEASURED)
        with suppress(UnavailableError):
            write_text(path, json.dumps({**_cached(path), machine(): asdict(found)}, indent=2) + "\n")
        return found


def _kept_peaks(path: Path) -> Peaks | None:
    """The peaks of this machine in the cache; None where there are none, or something else."""
    kept = _cached(path).get(machine())
    rates = isinstance(kept, dict) and [kept.get("bandwidth"), kept.get("ops")]
    return Peaks(rates[0], rates[1], MEASURED) if rates and all(isinstance(rate, float) for rate in rates) else None


def _cached(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def cache_file() -> Path:
    """Return where measured peaks are kept."""
    return user_cache_path("mluops") / "peaks.json"


def machine() -> str:
    """Return the key of measured peaks: the machine, its processor, and the cores that we may use."""
    return f"{platform.node()}: {processor()}, {cores()} cores"


def measure_bandwidth() -> float:
    """Return the bytes/s that all cores read and write when each copies an array of its own that no cache holds."""
    count = max(4 * last_level_cache(), 64 << 20) // cores()
    parts = [(np.ones(count, np.uint8), np.zeros(count, np.uint8)) for _ in range(cores())]
    seconds = _fastest([lambda a=a, b=b: np.copyto(b, a) for a, b in parts])  # type: ignore[misc]
    return 2.0 * count * len(parts) / seconds


def measure_ops() -> float:
    """Return the float32 operations/s of all cores that multiply matrices which their caches hold."""
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
