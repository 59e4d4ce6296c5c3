"""The machine that mluops runs on."""

from __future__ import annotations

import math
import os

from generators.casegen.control_groups import cpu_quota


def cores() -> int:
    """How many cores this process may use: by its affinity, and by the CPU quota of its control groups, rounded up."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cpu_quota()
    return usable if quota is None else max(1, min(usable, math.ceil(quota)))
