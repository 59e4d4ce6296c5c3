"""What the control groups of this process leave it: containers and services get their memory and CPU limits there.

Both versions are read, and every group from the process's own up to the topmost one that is visible: a limit of any of
them counts. Source: cgroups(7), Documentation/admin-guide/cgroup-v2.rst of Linux.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

_PROCESS: Final = Path("/proc/self")


def memory_left(process: Path = _PROCESS) -> int | None:
    """Bytes of memory that the tightest limit leaves; None where there is no limit.

    Unused file cache (inactive_file) counts as free: the kernel drops it before it refuses memory.
    """
    left = []
    for folder in _groups("", process):
        limit, used = _number(folder / "memory.max"), _number(folder / "memory.current")
        left += _left(limit, used, _statistic(folder, "inactive_file"))
    for folder in _groups("memory", process):
        limit, used = _number(folder / "memory.limit_in_bytes"), _number(folder / "memory.usage_in_bytes")
        left += _left(limit, used, _statistic(folder, "total_inactive_file"))
    return min(left, default=None)


def cpu_quota(process: Path = _PROCESS) -> float | None:
    """CPUs' worth of time that the tightest quota allows, such as 1.5; None where there is no quota."""
    quotas = []
    for folder in _groups("", process):
        words = _read(folder / "cpu.max").split()
        if len(words) == 2 and words[0] != "max":
            quotas.append(int(words[0]) / int(words[1]))
    for folder in _groups("cpu", process):
        quota, period = _number(folder / "cpu.cfs_quota_us"), _number(folder / "cpu.cfs_period_us")
        if quota is not None and quota > 0 and period:
            quotas.append(quota / period)
    return min(quotas, default=None)


def _left(limit: int | None, used: int | None, cache: int) -> list[int]:
    return [] if limit is None or used is None else [max(0, limit - max(0, used - cache))]


def _groups(controller: str, process: Path) -> Iterator[Path]:
    """The folders of the process's group and of those above it, of a version 1 controller; of version 2 for ""."""
    paths = [path for names, path in _memberships(process) if controller in names]
    for root, mount in _mounts(controller, process):
        for path in paths:
            # A container may see its group as the root of the mount, or get the path of the host for it.
            below = PurePosixPath(path).relative_to(root) if PurePosixPath(path).is_relative_to(root) else Path()
            folder = mount / below
            if ".." in below.parts or not folder.is_dir():
                folder = mount
            while folder != mount:
                yield folder
                folder = folder.parent
            yield mount


def _memberships(process: Path) -> Iterator[tuple[list[str], str]]:
    """(controllers, path) of the process's groups; the controller of version 2 is ""."""
    for line in _read(process / "cgroup").splitlines():
        _, names, path = line.split(":", 2)
        yield names.split(","), path


def _mounts(controller: str, process: Path) -> Iterator[tuple[str, Path]]:
    """(path of the mounted group, where it is mounted) of a controller's hierarchy."""
    for line in _read(process / "mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        fields, (kind, _, options) = before.split(), after.split(" ", 2)
        if kind == "cgroup2" if not controller else kind == "cgroup" and controller in options.split(","):
            yield fields[3], Path(fields[4])


def _statistic(folder: Path, key: str) -> int:
    lines = (line.split() for line in _read(folder / "memory.stat").splitlines())
    return next((int(words[1]) for words in lines if words[:1] == [key]), 0)


def _number(path: Path) -> int | None:
    text = _read(path).strip()
    return int(text) if text.lstrip("-").isdigit() else None


def _read(path: Path) -> str:
    """The file's text, empty where it can't be read: another system, or a group without this controller."""
    try:
        return path.read_text()
    except OSError:
        return ""
