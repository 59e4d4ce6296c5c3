"""Files written as a whole: to temporary files beside the targets, which are then renamed.

The temporary file that is renamed last is locked meanwhile: that tells what is being written from what a killed writer
left. Its lock counts for all temporary files of the same token in its folder.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import BinaryIO, Final

from schemas.errors import UnavailableError

# Names are short, because the target's own name may have all 255 bytes: .mluops-TOKEN.part, .mluops-TOKEN.NUMBER.part
_PART: Final = re.compile(r"(\.mluops-[0-9a-f]{16})(?:\.[0-9]+)?\.part")
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)

Writer = Callable[[BinaryIO], object]


def write_files(files: Sequence[tuple[Path, Writer]], *, durable: bool = False) -> int:
    """Write several files, rename them in this order when all are complete, and return their bytes.

    Folders are made. After a failure no temporary file is left and new files are removed; a file that was there before
    is changed only if its rename came before the failure. durable: the data are on the disk on return (fsync of files
    and folders). UnavailableError where writing fails.
    """
    token = f".mluops-{secrets.token_hex(8)}"
    last = {path.parent: path for path, _ in files}
    parts = {
        path: path.with_name(f"{token}.part" if last[path.parent] == path else f"{token}.{number}.part")
        for number, (path, _) in enumerate(files)
    }
    total = 0
    with ExitStack() as stack:
        stack.callback(_remove, parts.values())
        locked: dict[Path, BinaryIO] = {}
        for folder, path in last.items():
            with _reported(path):
                folder.mkdir(parents=True, exist_ok=True)
                locked[path] = stack.enter_context(_locked(parts[path]))
        for path, write in files:
            with _reported(path), nullcontext(locked[path]) if path in locked else parts[path].open("xb") as file:
                total += _fill(file, write, durable)
        _rename(parts)
        for folder in last if durable else ():
            with _reported(folder):
                _sync_folder(folder)
    return total


def write_file(path: Path, write: Writer, *, durable: bool = False) -> int:
    """Write one file as a whole, see write_files.

    A device or a pipe, such as /dev/stdout, is written directly. A link is replaced by the file.
    """
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        with _reported(path), path.open("wb") as device:
            return _fill(device, write, durable=False)
    return write_files([(path, write)], durable=durable)


def write_text(path: Path, text: str | Iterable[str], *, durable: bool = False) -> int:
    """Write a text file as a whole: UTF-8, line feeds as they are; see write_files."""
    parts = (text,) if isinstance(text, str) else text

    def write(file: BinaryIO) -> None:
        file.writelines(part.encode() for part in parts)

    return write_file(path, write, durable=durable)


def remove_leftovers(folder: Path) -> list[Path]:
    """Remove the temporary files in a folder whose writers were killed, and return their paths.

    What a process still writes stays, as does what can't be removed.
    """
    removed = []
    for path in sorted(folder.glob(".mluops-*.part")):
        match = _PART.fullmatch(path.name)
        if match is not None and not _in_use(folder / f"{match[1]}.part"):
            with suppress(OSError):
                path.unlink()
                removed.append(path)
    return removed


def _in_use(locked: Path) -> bool:
    """Whether a process holds the lock of these temporary files."""
    try:
        with locked.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:  # locked, or not ours to open
        return True
    return False


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


def _rename(parts: Mapping[Path, Path]) -> None:
    """Rename temporary files to their targets; after a failure those targets that are new are removed."""
    new: list[Path] = []
    try:
        for path, part in parts.items():
            with _reported(path):
                is_new = not os.path.lexists(path)
                os.replace(part, path)
                if is_new:
                    new.append(path)
    except BaseException:
        _remove(new)
        raise


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with suppress(OSError):
            path.unlink()


def _fill(file: BinaryIO, write: Writer, durable: bool) -> int:
    """Write one open file and return its bytes; every error shows here, none at a later close."""
    write(file)
    file.flush()
    if durable:
        os.fsync(file.fileno())
    os.close(os.dup(file.fileno()))  # a network file system reports a full disk when a file is closed
    return os.fstat(file.fileno()).st_size


@contextmanager
def _locked(path: Path) -> Iterator[BinaryIO]:
    """A new file, locked until the end."""
    file = path.open("xb")
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
    finally:
        with suppress(OSError):  # what it holds was flushed, or is given up
            file.close()


def _sync_folder(folder: Path) -> None:
    """Put a folder's entries on the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
