"""Where a run takes place, for its summary: what a reader needs to judge figures by, and nothing of the user."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import psutil

from mluops_cli.core.machine import cores
from mluops_cli.core.peaks import processor

_PACKAGES: Final = ("numpy", "protobuf", "torch")


def environment() -> dict[str, Any]:
    """Platform, processor, cores, memory in bytes, host, and versions of what results depend on."""
    return {
        "platform": platform_name(),
        "cpu": processor(),
        "cores": cores(),
        "memory": psutil.virtual_memory().total,
        "host": platform.node(),
        "python": platform.python_version(),
        **{name: found for name in _PACKAGES if (found := _version(name))},
    }


def platform_name() -> str:
    """System and processor architecture of this machine, such as linux-x86_64."""
    return f"{platform.system()}-{platform.machine()}".lower()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
