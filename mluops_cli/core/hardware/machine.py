"""The machine that mluops runs on: its processor, and what a summary says of it."""

from __future__ import annotations

import math
import os
import platform
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

from generators.casegen.control_groups import cpu_quota

_CACHES: Final = Path("/sys/devices/system/cpu/cpu0/cache")
_UNKNOWN_CACHE: Final = 64 << 20  # bytes, where the system doesn't say: more than most processors have
_PACKAGES: Final = ("numpy", "protobuf", "torch")


def cores() -> int:
    """Return how many cores this process may use: those it may run on, and no more than its CPU quota allows."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cpu_quota()
    return usable if quota is None else max(1, min(usable, math.ceil(quota)))


@cache
def processor() -> str:
    """Return the model of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def last_level_cache() -> int:
    """Return the size of the last-level cache in bytes."""
    sizes = []
    for path in _CACHES.glob("index*/size"):
        match = re.fullmatch(r"(\d+)([KM]?)", path.read_text().strip())
        if match is not None:
            sizes.append(int(match[1]) << {"": 0, "K": 10, "M": 20}[match[2]])
    return max(sizes, default=_UNKNOWN_CACHE)


@cache
def platform_name() -> str:
    """Return the system and the processor architecture, such as linux-x86_64."""
    return f"{platform.system()}-{platform.machine()}".lower()


def environment() -> dict[str, Any]:
    """Return what a reader needs to judge results and times by: hardware and versions, nothing about the user.

    memory is in bytes. A run adds the device that ran its cases.
    """
    import psutil  # here: most commands need only the functions above

    return {
        "platform": platform_name(),
        "cpu": processor(),
        "cores": cores(),
        "memory": psutil.virtual_memory().total,
        "host": platform.node(),
        "python": platform.python_version(),
        **{name: found for name in _PACKAGES if (found := _version(name))},
    }


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return ""
