"""Values that a spec takes from a file: .npy, or raw elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import xxhash
from numpy.typing import NDArray

from schemas.dtypes import DType
from schemas.errors import InputError

# Typed here, for the stubs of older NumPy (the newest for Python 3.10 among them) say nothing of these functions.
_read_magic: Callable[[Any], tuple[int, int]] = np.lib.format.read_magic
_HEADERS: Final[dict[tuple[int, int], Callable[[Any], tuple[tuple[int, ...], bool, np.dtype[Any]]]]] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_PIECE: Final = 1 << 24  # bytes hashed at once


@dataclass(frozen=True, slots=True)
class Stored:
    """A file of values as it was when the spec was read: its bytes' hash, and of a .npy file the shape.

    The values begin at byte `offset` and are size bytes long; fortran tells that the first axis varies fastest.
    """

    path: str
    hash: str
    offset: int
    size: int
    shape: tuple[int, ...] | None = None
    fortran: bool = False

    def check(self, dims: tuple[int, ...], dtype: DType) -> None:
        """InputError unless the file holds a tensor of these dims and this dtype."""
        storage = _storage(dtype)
        wanted = math.prod(dims) * storage.itemsize
        if self.shape is not None and self.shape != dims:
            raise InputError(f"{self.path} has shape {list(self.shape)}, the tensor {list(dims)}")
        if self.size != wanted:
            text = f"the tensor's {list(dims)} of {dtype.name} take {wanted}"
            raise InputError(f"{self.path} holds {self.size} bytes of values, {text}")

    def read(self, dims: tuple[int, ...], dtype: DType) -> NDArray[Any]:
        """The values, mapped from the file; InputError where it is another than when the spec was read."""
        if not self.size:
            return np.empty(dims, dtype.storage)
        path = Path(self.path)
        if _hash(path) != self.hash:
            raise InputError(f"{self.path} has changed since the spec was read")
        raw = np.memmap(path, np.uint8, "r", self.offset, self.size)
        return raw.view(_storage(dtype)).reshape(dims, order="F" if self.fortran else "C")


def find_stored(text: Any, folder: Path, dtype: DType) -> Stored:
    """The file that a spec in a folder names; InputError where there is none, or one of another dtype."""
    if not isinstance(text, str):
        raise InputError(f"file needs a path, found {text!r}")
    path = folder / text
    try:
        total = path.stat().st_size
        if path.suffix != ".npy":
            return Stored(str(path), _hash(path), 0, total)
        shape, fortran, found, offset = _header(path)
    except OSError as error:
        raise InputError(f"can't read {path}: {error.strerror or error}") from None
    except ValueError as error:
        raise InputError(f"{path} is no .npy file: {error}") from None
    if not _same(found, dtype):
        raise InputError(f"{path} has dtype {found}, the tensor {dtype.name}")
    return Stored(str(path), _hash(path), offset, total - offset, shape, fortran)


def stored_text(stored: Stored) -> str:
    """The file as part of a recipe: its name and hash, not where it lies."""
    return f"file {Path(stored.path).name} xxh3_128:{stored.hash}"


def _header(path: Path) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Shape, whether in Fortran order, dtype, and where the values begin."""
    with path.open("rb") as file:
        version = _read_magic(file)
        if version not in _HEADERS:
            raise ValueError(f"version {version} is not known")
        shape, fortran, dtype = _HEADERS[version](file)
        return shape, fortran, dtype, file.tell()


def _same(found: np.dtype[Any], dtype: DType) -> bool:
    """Whether a file's dtype is the tensor's; NumPy writes those that it doesn't know (bfloat16) as bare bytes."""
    storage = _storage(dtype)
    bare = found.kind == storage.kind == "V" and found.names is None
    return found == storage or (bare and found.itemsize == storage.itemsize)


def _storage(dtype: DType) -> np.dtype[Any]:
    assert dtype.storage is not None
    return dtype.storage


def _hash(path: Path) -> str:
    stat = path.stat()
    return _hash_of(path, (stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size))


@lru_cache(maxsize=64)
def _hash_of(path: Path, state: tuple[int, ...]) -> str:
    # state is part of the cache's key: another file there, or other content, has another one.
    digest = xxhash.xxh3_128()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()
