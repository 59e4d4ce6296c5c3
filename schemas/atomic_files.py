"""Files written as a whole: into a temporary folder beside the target, then renamed.

The temporary folder is locked while its writer works, so what a killed writer left is told from what is in use.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from schemas.errors import UnavailableError

_PREFIX: Final = ".mluops-"  # short names: the target's own name may have all 255 bytes that a name can have
_SUFFIX: Final = ".part"
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)

Writer = Callable[[BinaryIO], object]


def write_files(files: Sequence[tuple[Path, Writer]], *, durable: bool = False) -> int:
    """Write several files, rename them in this order when all are complete, and return their bytes.

    Folders are made. After a failure no temporary file is left and new files are removed; a file that was there before
    is changed only if its rename came before the failure. durable: the data are on the disk on return (fsync of files
    and folders). A device or a pipe is written directly. UnavailableError where the disk refuses.
    """
    scratch: dict[Path, Path] = {}  # folder -> its temporary folder
    parts: list[tuple[Path, Path]] = []
    placed: list[Path] = []
    total = 0
    with ExitStack() as stack:
        try:
            for path, write in files:
                with _reported(path):
                    part = path
                    if not _is_device(path):
                        if path.parent not in scratch:
                            scratch[path.parent] = stack.enter_context(_scratch_folder(path.parent))
                        part = scratch[path.parent] / str(len(parts))
                        parts.append((path, part))
                    total += _write(part, write, durable)
            for path, part in parts:
                with _reported(path):
                    new = not os.path.lexists(path)
                    os.replace(part, path)
                    if new:
                        placed.append(path)
            for folder in scratch if durable else ():
                with _reported(folder):
                    _sync_folder(folder)
        except BaseException:
            for path in placed:
                path.unlink(missing_ok=True)
            raise
    return total


def write_file(path: Path, write: Writer, *, durable: bool = False) -> int:
    """Write one file as a whole; see write_files."""
    return write_files([(path, write)], durable=durable)


def write_text(path: Path, text: str | Iterable[str], *, durable: bool = False) -> int:
    """Write a text file as a whole: UTF-8, line feeds as they are; see write_files."""
    parts = (text,) if isinstance(text, str) else text

    def write(file: BinaryIO) -> None:
        file.writelines(part.encode() for part in parts)

    return write_file(path, write, durable=durable)


def remove_leftovers(folder: Path) -> list[Path]:
    """Remove the temporary folders below a folder whose writers were killed, and return their paths.

    What a process still writes stays, as does what can't be removed.
    """
    removed = []
    for path in sorted(folder.glob(f"{_PREFIX}*{_SUFFIX}")):
        with suppress(OSError), _lock(path, fcntl.LOCK_EX | fcntl.LOCK_NB):
            shutil.rmtree(path)
            removed.append(path)
    return removed


def write_failure(path: Path, error: OSError) -> UnavailableError:
    """The error for a file that can't be written: its path, the reason, and for a full disk the space that is left."""
    space = ""
    if error.errno in _FULL:
        with suppress(OSError):
            space = f" ({shutil.disk_usage(path.parent).free / 2**20:.1f} MiB free in {path.parent})"
    return UnavailableError(f"{path}: can't write: {error.strerror or error}{space}")


@contextmanager
def _reported(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise write_failure(path, error) from error


def _is_device(path: Path) -> bool:
    """Whether the path is a device or a pipe, such as /dev/stdout, which can't be replaced."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _write(path: Path, write: Writer, durable: bool) -> int:
    """Write one file and return its bytes."""
    with path.open("wb") as file:
        write(file)
        file.flush()
        if durable:
            os.fsync(file.fileno())
        return os.fstat(file.fileno()).st_size


@contextmanager
def _scratch_folder(folder: Path) -> Iterator[Path]:
    """A locked temporary folder in a folder, removed at the end with all that it holds."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}"
    path.mkdir()
    with _lock(path, fcntl.LOCK_EX):
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _lock(folder: Path, kind: int) -> Iterator[None]:
    """A lock on a folder; BlockingIOError where another process has it and kind doesn't wait."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, kind)
        yield
    finally:
        os.close(handle)


def _sync_folder(folder: Path) -> None:
    """Put a folder's entries on the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
