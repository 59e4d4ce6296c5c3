"""Files appear whole or not at all; what killed writers left is removed, what living ones write is not."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from schemas.atomic_files import remove_leftovers, write_failure, write_files, write_text
from schemas.errors import UnavailableError

_STARTS_WRITING = """
import sys, time
from pathlib import Path
from schemas.atomic_files import write_files

def write(file):
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    time.sleep(600)

write_files([(Path(path), write) for path in sys.argv[1:]])
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def bytes_writer(data: bytes) -> Any:
    return lambda file: file.write(data)


@pytest.mark.parametrize("durable", [False, True])
def test_files_and_their_folders_are_made(tmp_path: Path, durable: bool) -> None:
    first, second = tmp_path / "new" / "a.bin", tmp_path / "new" / "below" / "b.bin"
    assert write_files([(first, bytes_writer(b"12")), (second, bytes_writer(b"345"))], durable=durable) == 5
    assert (first.read_bytes(), second.read_bytes()) == (b"12", b"345")
    assert names(first.parent) == ["a.bin", "below"]
    assert write_text(first, ["ö\n", "x"], durable=durable) == 4
    assert first.read_bytes() == "ö\nx".encode()


def test_durable_syncs_every_file_before_its_rename_and_the_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def noted(name: str) -> None:
        real = getattr(os, name)

        def call(*args: Any) -> None:
            seen.append(name)
            real(*args)

        monkeypatch.setattr(os, name, call)

    noted("fsync")
    noted("replace")
    files = [(tmp_path / name, bytes_writer(b"1")) for name in "ab"]
    write_files(files)
    assert seen == ["replace", "replace"]
    seen.clear()
    write_files(files, durable=True)
    assert seen == ["fsync", "fsync", "replace", "replace", "fsync"]


def test_f14_a_name_may_have_all_the_bytes_that_a_name_can_have(tmp_path: Path) -> None:
    write_text(tmp_path / ("x" * 255), "1")
    assert names(tmp_path) == ["x" * 255]
    with pytest.raises(UnavailableError, match="File name too long"):
        write_text(tmp_path / ("x" * 256), "1")


def test_f9_a_full_disk_names_file_and_space_and_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def full(file: BinaryIO) -> None:
        file.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(UnavailableError, match=r"a\.txt: can't write: No space left on device \([0-9.]+ MiB free in /"):
        write_files([(tmp_path / "b.txt", bytes_writer(b"1")), (path, full)])
    assert (names(tmp_path), path.read_text()) == (["a.txt"], "old")


def test_f9_a_folder_that_takes_no_files(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnavailableError, match=r"file/a\.txt: can't write: (Not a directory|File exists)"):
        write_text(tmp_path / "file" / "a.txt", "1")
    with pytest.raises(UnavailableError, match=r"proc/a\.txt: can't write: "):
        write_text(Path("/proc/a.txt"), "1")
    (tmp_path / "folder").mkdir()
    with pytest.raises(UnavailableError, match="folder: can't write: Is a directory"):
        write_text(tmp_path / "folder", "1")
    assert "free" not in str(write_failure(tmp_path / "a", PermissionError(errno.EACCES, "Permission denied")))
    assert names(tmp_path) == ["file", "folder"]


def test_a_failed_rename_takes_new_files_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace = os.replace

    def breaking(source: Path, target: Path) -> None:
        if target.name == "b":
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(os, "replace", breaking)
    with pytest.raises(KeyboardInterrupt):
        write_files([(tmp_path / "a", bytes_writer(b"1")), (tmp_path / "b", bytes_writer(b"2"))])
    assert names(tmp_path) == []


def test_a_pipe_is_written_directly(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    assert write_text(pipe, "through") == 0
    reader.join(10)
    assert (read, names(tmp_path)) == (["through"], ["pipe"])
    write_text(Path("/dev/null"), "gone")
    with pytest.raises(UnavailableError, match="/dev/full: can't write: No space left on device"):
        write_text(Path("/dev/full"), "1")


def test_b12_what_a_killed_writer_left_is_removed_and_what_is_being_written_is_not(tmp_path: Path) -> None:
    (tmp_path / ".foreign.part").write_text("mine")
    (tmp_path / ".mluops-1.part").write_text("mine too")
    with subprocess.Popen(
        [sys.executable, "-c", _STARTS_WRITING, tmp_path / "a.bin", tmp_path / "b.bin"],
        stdout=subprocess.PIPE,
        text=True,
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "writing\n"
        assert remove_leftovers(tmp_path) == []
        assert len(names(tmp_path)) == 4
        writer.send_signal(signal.SIGKILL)
    assert len(remove_leftovers(tmp_path)) == 2
    assert names(tmp_path) == [".foreign.part", ".mluops-1.part"]
    assert remove_leftovers(tmp_path / "nowhere") == []
