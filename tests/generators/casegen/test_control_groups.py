"""Memory and CPU limits as container runtimes and services set them (rows F10, B13, B15)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from generators.casegen import worker_pool
from generators.casegen.control_groups import cpu_quota, memory_left
from mluops_cli.core.hardware import machine
from tests.conftest import PROJECT

MIB = 1 << 20
VERSION_2 = "31 23 0:28 {root} {mount} rw,nosuid - cgroup2 cgroup rw,nsdelegate\n"
VERSION_1 = "35 31 0:32 {root} {mount} rw,relatime shared:9 - cgroup cgroup rw,{controller}\n"


def process(folder: Path, membership: str, *mounts: str) -> Path:
    """A stand-in for /proc/self."""
    proc = folder / "proc"
    proc.mkdir()
    (proc / "cgroup").write_text(membership)
    (proc / "mountinfo").write_text("22 1 0:21 / /proc rw - proc proc rw\n" + "".join(mounts))
    return proc


def group(folder: Path, **files: object) -> Path:
    """A control group with files; _ stands for the dot of their names."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("_", ".", 1)).write_text(f"{content}\n")
    return folder


def test_f10_a_limit_of_a_nested_version_2_group_counts(tmp_path: Path) -> None:
    mount = group(tmp_path / "cgroup")
    group(mount / "user.slice", memory_max=1500 * MIB, memory_current=300 * MIB, memory_stat="inactive_file 0")
    group(mount / "user.slice/job", memory_max="max", memory_current=200 * MIB, memory_stat="anon 5")
    proc = process(tmp_path, "0::/user.slice/job\n", VERSION_2.format(root="/", mount=mount))
    assert memory_left(proc) == 1200 * MIB
    assert cpu_quota(proc) is None


def test_f10_the_tightest_group_wins(tmp_path: Path) -> None:
    mount = group(tmp_path / "cgroup")
    group(mount / "a", memory_max=1500 * MIB, memory_current=0, memory_stat="")
    group(mount / "a/b", memory_max=700 * MIB, memory_current=100 * MIB, memory_stat="")
    proc = process(tmp_path, "0::/a/b\n", VERSION_2.format(root="/", mount=mount))
    assert memory_left(proc) == 600 * MIB


def test_f10_a_limit_of_version_1_counts(tmp_path: Path) -> None:
    mount = group(tmp_path / "memory", memory_limit_in_bytes=2**63 - 4096, memory_usage_in_bytes=9 * MIB)
    files = {"memory_limit_in_bytes": 1000 * MIB, "memory_usage_in_bytes": 600 * MIB}
    group(mount / "docker/id", **files, memory_stat=f"inactive_file 7\ntotal_inactive_file {100 * MIB}")
    proc = process(
        tmp_path,
        "5:cpu,cpuacct:/elsewhere\n4:memory:/docker/id\n0::/\n",
        VERSION_1.format(root="/", mount=tmp_path / "none", controller="cpu,cpuacct"),
        VERSION_1.format(root="/", mount=mount, controller="memory"),
    )
    assert memory_left(proc) == 500 * MIB


@pytest.mark.parametrize(
    ("membership", "root"),
    [
        ("0::/\n", "/"),  # a container with a namespace of its own
        ("0::/kube/pod7\n", "/kube/pod7"),  # one whose group is mounted, and that sees the host's path
        ("0::/kube/pod7\n", "/"),  # the host's path, of which nothing is visible
        ("0::/../other\n", "/"),
    ],
)
def test_f10_a_container_finds_its_own_group(tmp_path: Path, membership: str, root: str) -> None:
    mount = group(tmp_path / "cgroup", memory_max=800 * MIB, memory_current=300 * MIB, memory_stat="")
    proc = process(tmp_path, membership, VERSION_2.format(root=root, mount=mount))
    assert memory_left(proc) == 500 * MIB


def test_b13_unused_file_cache_is_not_used_memory(tmp_path: Path) -> None:
    mount = tmp_path / "cgroup"
    files = {"memory_max": 1000 * MIB, "memory_current": 990 * MIB}
    group(mount, **files, memory_stat=f"anon {90 * MIB}\ninactive_file {900 * MIB}\nactive_file 0")
    proc = process(tmp_path, "0::/\n", VERSION_2.format(root="/", mount=mount))
    assert memory_left(proc) == 910 * MIB


def test_without_groups_there_is_no_limit(tmp_path: Path) -> None:
    assert memory_left(tmp_path) is None
    assert cpu_quota(tmp_path) is None


def test_b15_the_cpu_quota_of_either_version(tmp_path: Path) -> None:
    mount = group(tmp_path / "cgroup")
    group(mount / "a", cpu_max="150000 100000")
    group(mount / "a/b", cpu_max="max 100000")
    new = process(tmp_path, "0::/a/b\n", VERSION_2.format(root="/", mount=mount))
    assert cpu_quota(new) == 1.5
    old = tmp_path / "old"
    group(old / "cpu/a", cpu_cfs_quota_us=-1, cpu_cfs_period_us=100000)
    group(old / "cpu", cpu_cfs_quota_us=250000, cpu_cfs_period_us=100000)
    mounted = VERSION_1.format(root="/", mount=old / "cpu", controller="cpu")
    assert cpu_quota(process(old, "1:cpu:/a\n", mounted)) == 2.5


@pytest.mark.parametrize(("quota", "usable"), [(None, 8), (0.5, 1), (1.5, 2), (8.0, 8), (20.0, 8)])
def test_b15_cores_are_bounded_by_the_quota(monkeypatch: pytest.MonkeyPatch, quota: float | None, usable: int) -> None:
    monkeypatch.setattr(machine, "cpu_quota", lambda: quota)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))
    assert machine.cores() == usable


def test_available_memory_is_what_the_groups_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "memory_left", lambda: 1234)
    assert worker_pool.available_memory() == 1234
    monkeypatch.setattr(worker_pool, "memory_left", lambda: None)
    assert worker_pool.available_memory() > 1234


@pytest.fixture
def own_group() -> Iterator[Path]:
    """A real memory control group of version 1 with a limit of 300 MiB."""
    folder = Path("/sys/fs/cgroup/memory") / f"mluops-test-{os.getpid()}"
    try:
        folder.mkdir()
        (folder / "memory.limit_in_bytes").write_text(str(300 * MIB))
    except OSError:
        if folder.is_dir():
            folder.rmdir()
        pytest.skip("needs a writable cgroup hierarchy of version 1")
    yield folder
    folder.rmdir()


def test_f10_a_real_group(own_group: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path\n"
        "Path(sys.argv[1], 'cgroup.procs').write_text(str(os.getpid()))\n"
        "from generators.casegen.worker_pool import available_memory; print(available_memory())"
    )
    command = [sys.executable, "-c", program, str(own_group)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=PROJECT, timeout=60)
    assert 100 * MIB < int(ran.stdout) <= 300 * MIB
