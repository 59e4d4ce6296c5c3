"""Side files: raw memory images that a tensor's path names, beside or below the case file; a .zst twin may stand in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from schemas.errors import InputError, SourceLocation, UnavailableError

TWIN: Final = ".zst"
_BLOCK: Final = 1 << 22  # bytes read at once

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class SideFile:
    """A side file that exists: its path, and whether that is the compressed twin of the one that was named."""

    path: Path
    packed: bool

    def size(self, enough: int) -> int:
        """Bytes of the image; those of a twin are counted, until they are more than enough."""
        if not self.packed:
            return self.path.stat().st_size
        total = 0
        for block in self.blocks():
            total += block.size
            if total > enough:
                break
        return total

    def image(self, size: int) -> Bytes:
        """The image, which is known to have so many bytes: mapped, or unpacked into memory; read-only."""
        if not self.packed:
            mapped: Bytes = np.memmap(self.path, np.uint8, "r").view(np.ndarray) if size else np.empty(0, np.uint8)
            return mapped
        if size > _memory():
            raise UnavailableError(f"{self.path}: {size} bytes when unpacked, more than this machine's memory")
        image = np.empty(size, np.uint8)
        at = 0
        for block in self.blocks():
            if at + block.size > size:
                raise InputError(f"side file {self.path} unpacks to more than the {size} bytes that it tells")
            image[at : at + block.size] = block
            at += block.size
        if at < size:
            raise InputError(f"side file {self.path} unpacks to {at} bytes, expected {size}")
        image.flags.writeable = False
        return image

    def blocks(self) -> Iterator[Bytes]:
        """The image piece by piece, whole multiples of 64 bytes but for the last, in constant memory."""
        with _unpacking(self.path) if self.packed else self.path.open("rb", buffering=0) as file:
            while True:
                block = _read(file, self.path)
                if block.size:
                    yield block
                if block.size < _BLOCK:
                    return


def _read(file: BinaryIO, path: Path) -> Bytes:
    """The next block, as full as the file allows."""
    block = np.empty(_BLOCK, np.uint8)
    view: Any = block.data
    filled = 0
    while filled < _BLOCK:
        try:
            got = file.readinto(view[filled:])  # type: ignore[attr-defined]  # both kinds of file have it
        except OSError as error:
            raise InputError(f"side file {path} can't be read: {error.strerror or error}") from None
        except Exception as error:  # the two libraries name their errors differently
            raise InputError(f"side file {path} can't be unpacked: {error}") from None
        if not got:
            break
        filled += got
    return block[:filled]


def side_file(folder: Path, name: str, place: SourceLocation) -> SideFile:
    """The side file that a tensor's path names; InputError where it is missing or leads outside the folder."""
    if leads_outside(folder, name, place):
        raise InputError(f"path {name!r} leads outside the case file's folder {folder}", place)
    path = folder / name
    twin = path.with_name(path.name + TWIN)
    try:
        if path.is_file():
            return SideFile(path, packed=False)
        if not path.exists() and twin.is_file() and not leads_outside(folder, name + TWIN, place):
            return SideFile(twin, packed=True)
        found = "is no file" if path.exists() else "does not exist"
        raise InputError(f"side file {path} {found}", place)
    except (OSError, ValueError) as error:  # a NUL in the name, a name too long
        raise InputError(f"path {name!r} can't be opened: {error}", place) from None


def leads_outside(folder: Path, name: str, place: SourceLocation) -> bool:
    """Whether a tensor's path leads out of its folder, by dots or links; InputError where it is absolute or no path."""
    if PurePosixPath(name).is_absolute() or PureWindowsPath(name).drive or PureWindowsPath(name).root:
        raise InputError(f"path {name!r} is absolute, expected one below the case file's folder", place)
    try:
        return ".." in PureWindowsPath(name).parts or not (folder / name).resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError) as error:  # a NUL in the name, a name too long, a loop of links
        raise InputError(f"path {name!r} can't be opened: {error}", place) from None


def _memory() -> int:
    """Bytes of this machine's memory."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


# ---- zstd: the standard library's from Python 3.14 on, else the optional package zstandard ----


def _unpacking(path: Path) -> AbstractContextManager[Any]:
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]

        opened: AbstractContextManager[Any] = zstd.open(path, "rb")
        return opened
    except ImportError:
        pass
    zstandard = _zstandard(path)
    stream: AbstractContextManager[Any] = zstandard.ZstdDecompressor().stream_reader(
        path.open("rb"), read_across_frames=True
    )
    return stream


def _zstandard(path: Path) -> Any:
    try:
        import zstandard  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise UnavailableError(f"{path}: reading it needs the package zstandard: pip install mluops[zstd]") from None
    return zstandard
