"""The memory that trees of processes hold, looked at from outside."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mluops_cli.processes import tree_memory as memory
from mluops_cli.processes.tree_memory import memory_held, process_trees

MIB = 1 << 20
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@contextmanager
def running(code: str, *arguments: str) -> Iterator[int]:
    """A Python process that has run the code and waits."""
    wait = "\nprint('ready', flush=True)\ninput()"
    command = [sys.executable, "-c", code + wait, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.kill()


def held(pid: int, limit: int = 0) -> float:
    return memory_held(process_trees([pid])[pid], limit) / MIB


@pytest.mark.parametrize("limit", [0, 1 << 40])
def test_f10_shared_memory_counts(limit: int) -> None:
    code = "import mmap; m = mmap.mmap(-1, 64 << 20)\nfor at in range(0, 64 << 20, 4096): m[at] = 1"
    with running(code) as pid:
        assert 64 < held(pid, limit) < 100


def test_shared_memory_of_a_tree_counts_once() -> None:
    code = (
        "import mmap, os, time; m = mmap.mmap(-1, 64 << 20); pid = 1\n"
        "for each in range(3): pid = pid and os.fork()\n"
        "for at in range(0, 64 << 20, 4096): m[at] = 1\n"
        "if not pid: time.sleep(600)\n"
        "time.sleep(1)"
    )
    with running(code) as pid:
        tree = process_trees([pid])[pid]
        assert len(tree) == 4
        assert 64 < memory_held(tree, 0) / MIB < 128
        for child in tree[1:]:
            os.kill(child, 9)


@pytest.mark.parametrize("memfd", [True, False])
def test_shared_memory_without_a_name_counts_where_it_is_only_read(memfd: bool) -> None:
    """As a kernel process maps its inputs: one process writes them, and gives back its own mapping; one reads them."""
    made = "open(os.memfd_create('test'), 'r+b')" if memfd else "tempfile.TemporaryFile(dir='/dev/shm')"
    code = (
        f"import mmap, os, tempfile; f = {made}; d = f.fileno(); os.ftruncate(d, 64 << 20)\n"
        "os.pwrite(d, bytes(64 << 20), 0); m = mmap.mmap(d, 64 << 20, access=mmap.ACCESS_READ)\n"
        "for at in range(0, len(m), 4096): m[at]"
    )
    with running(code) as pid:
        assert 64 < held(pid) < 100


def test_mapped_files_do_not_count(tmp_path: Path) -> None:
    for folder in (tmp_path, Path("/dev/shm")):  # on a disk, and in memory
        path = folder / f"mluops-test-{os.getpid()}"
        path.write_bytes(bytes(64 * MIB))
        code = (
            "import mmap, sys; f = open(sys.argv[1], 'rb'); m = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)\n"
            "for at in range(0, len(m), 4096): m[at]"
        )
        try:
            with running(code, str(path)) as pid:
                assert held(pid) < 40
        finally:
            path.unlink()


def test_a_tree_is_all_below_the_root() -> None:
    code = "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)"
    with running(code) as pid, running("pass") as other:
        trees = process_trees([pid, other, 2**30])
    assert len(trees[pid]) == 2
    assert trees[other] == [other]
    assert memory_held([2**30], 0) == 0


def test_b14_one_look_at_the_system_for_all_roots(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    root = memory._PROC

    class Watched:
        def iterdir(self) -> Iterator[Path]:
            looks.append("look")
            return root.iterdir()

    monkeypatch.setattr(memory, "_PROC", Watched())
    assert len(process_trees([os.getpid(), os.getppid(), 1])) == 3
    assert looks == ["look"]
