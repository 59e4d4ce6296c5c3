"""External data: raw memory images that a tensor's path names, below the case file's folder.

Where the named file is missing, its compressed sibling NAME.zst is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from schemas.errors import InputError, SourceLocation, UnavailableError
from schemas.path_names import check_relative_path

COMPRESSED: Final = ".zst"
_BLOCK: Final = 1 << 22  # bytes read at once
_LONGEST: Final = 255 - len(COMPRESSED)  # bytes of a file's name
_ROLES: Final = {"input": "in", "output": "out"}

Bytes = NDArray[np.uint8]


def external_name(stem: str, role: str, index: int, digest: str) -> str:
    """The name of the file for a tensor's values: STEM.in0.DIGEST.bin.

    digest is taken from the content, so a file of that name never holds other values: a case that is written again
    leaves the files that the old case needs as they are. A stem that makes the name too long is cut.
    """
    end = f".{_ROLES[role]}{index}.{digest}.bin"
    return os.fsdecode(os.fsencode(stem)[: _LONGEST - len(end)]) + end


@dataclass(frozen=True, slots=True)
class ExternalFile:
    """A file of external data that exists: its path, and whether it is the compressed sibling of the named file."""

    path: Path
    compressed: bool

    def size(self, enough: int) -> int:
        """Bytes of the image; those of a compressed file are counted until they are more than enough."""
        if not self.compressed:
            return self.path.stat().st_size
        total = 0
        for block in self.blocks():
            total += block.size
            if total > enough:
                break
        return total

    def check_size(self, expected: int) -> None:
        """InputError where the file can't be an image of so many bytes; a compressed file is not decompressed."""
        size = self.path.stat().st_size
        if self.compressed:
            if size > expected + expected // 64 + _BLOCK:
                raise InputError(f"external data {self.path} has {size} bytes, too many for {expected} bytes of values")
        elif size != expected:
            raise InputError(f"external data {self.path} has {size} bytes, expected {expected}")

    def image(self, size: int) -> Bytes:
        """The image of a known size in bytes: mapped, or decompressed into memory; read-only."""
        if not self.compressed:
            mapped: Bytes = np.memmap(self.path, np.uint8, "r").view(np.ndarray) if size else np.empty(0, np.uint8)
            return mapped
        if size > _memory():
            raise UnavailableError(f"{self.path}: {size} bytes when decompressed, more than this machine's memory")
        image = np.empty(size, np.uint8)
        at = 0
        for block in self.blocks():
            if at + block.size > size:
                raise InputError(f"external data {self.path} decompresses to more than {size} bytes")
            image[at : at + block.size] = block
            at += block.size
        if at < size:
            raise InputError(f"external data {self.path} decompresses to {at} bytes, expected {size}")
        image.flags.writeable = False
        return image

    def blocks(self) -> Iterator[Bytes]:
        """The image piece by piece, whole multiples of 64 bytes except for the last, in constant memory."""
        with _decompressed(self.path) if self.compressed else self.path.open("rb", buffering=0) as file:
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
            raise InputError(f"external data {path} can't be read: {error.strerror or error}") from None
        except Exception as error:  # the two libraries name their errors differently
            raise InputError(f"external data {path} can't be decompressed: {error}") from None
        if not got:
            break
        filled += got
    return block[:filled]


def find_external(folder: Path, name: str, place: SourceLocation) -> ExternalFile:
    """The file that a tensor's path names; InputError where it is missing or leads outside the case file's folder."""
    check_inside(folder, name, place)
    path = folder / name
    sibling = path.with_name(path.name + COMPRESSED)
    try:
        if path.is_file():
            return ExternalFile(path, compressed=False)
        if not path.exists() and sibling.is_file() and _resolves_inside(folder, name + COMPRESSED):
            return ExternalFile(sibling, compressed=True)
        found = "is not a file" if path.exists() else "does not exist"
        raise InputError(f"external data {path} {found}", place)
    except (OSError, ValueError) as error:  # a name that is too long
        raise InputError(f"path {name!r} can't be opened: {error}", place) from None


def check_inside(folder: Path, name: str, place: SourceLocation) -> None:
    """InputError where a tensor's path is absolute or leads outside the folder, by its parts or by links."""
    check_relative_path(name, "path", "the case file's folder", place)
    try:
        inside = _resolves_inside(folder, name)
    except (OSError, ValueError, RuntimeError) as error:  # a name that is too long, a loop of links
        raise InputError(f"path {name!r} can't be opened: {error}", place) from None
    if not inside:
        raise InputError(f"path {name!r} leads outside the case file's folder {folder}", place)


def _resolves_inside(folder: Path, name: str) -> bool:
    return (folder / name).resolve().is_relative_to(folder.resolve())


def _memory() -> int:
    """Bytes of this machine's memory."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


# ---- zstd: the standard library's from Python 3.14 on, else the optional package zstandard ----


def _decompressed(path: Path) -> AbstractContextManager[Any]:
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
