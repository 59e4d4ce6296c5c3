"""Values that a spec takes from a file: .npy, or raw elements."""

from __future__ import annotations

import math
import stat
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import xxhash
from numpy.typing import NDArray

from schemas.dtypes import DType
from schemas.errors import InputError
from schemas.suggest import counted

_PIECE: Final = 1 << 24  # bytes hashed at once


@dataclass(frozen=True, slots=True)
class Stored:
    """A file of values as it was when the spec was read.

    hash is of all its bytes, size the bytes of its values. shape is that of a .npy file, None for raw elements.
    """

    path: str
    hash: str
    size: int
    shape: tuple[int, ...] | None = None

    def check(self, dims: tuple[int, ...], dtype: DType) -> None:
        """InputError unless the file holds a tensor of these dims and this dtype."""
        expected = math.prod(dims) * _storage(dtype).itemsize
        if self.shape is not None and self.shape != dims:
            raise InputError(f"{self.path} has shape {list(self.shape)}, the tensor {list(dims)}")
        if self.size != expected:
            text = f"the tensor's {list(dims)} of {dtype.name} take {expected}"
            raise InputError(f"{self.path} holds {counted(self.size, 'byte')} of values, {text}")

    def read(self, dims: tuple[int, ...], dtype: DType) -> NDArray[Any]:
        """The values, mapped from the file; InputError where it has changed since the spec was read."""
        if not self.size:
            return np.empty(dims, dtype.storage)
        path = Path(self.path)
        if _hash(path) != self.hash:
            raise InputError(f"{self.path} has changed since the spec was read")
        if self.shape is not None:
            return _mapped(path).view(_storage(dtype))
        return np.memmap(path, np.uint8, "r").view(_storage(dtype)).reshape(dims)


def find_stored(text: Any, folder: Path, dtype: DType) -> Stored:
    """The regular file that a spec in a folder names; InputError where there is none, or one of another dtype."""
    if not isinstance(text, str):
        raise InputError(f"file needs a path, found {text!r}")
    path = folder / text
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"can't read {path}: {_kind(status.st_mode)}, expected a regular file")
        if path.suffix != ".npy":
            return Stored(str(path), _hash(path), status.st_size)
        found = _mapped(path)
        if not _same(found.dtype, dtype):
            raise InputError(f"{path} has dtype {found.dtype}, the tensor {dtype.name}")
        return Stored(str(path), _hash(path), found.nbytes, found.shape)
    except OSError as error:
        raise InputError(f"can't read {path}: {error.strerror or error}") from None


def stored_text(stored: Stored) -> str:
    """The file as part of a recipe: its name and hash, not where it lies."""
    return f"file {Path(stored.path).name} xxh3_128:{stored.hash}"


def _mapped(path: Path) -> NDArray[Any]:
    """The array of a .npy file, mapped; InputError where it is none."""
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except (ValueError, EOFError, OverflowError) as error:
        raise InputError(f"{path} is no .npy file: {error}") from None


def _kind(mode: int) -> str:
    kinds = {"a folder": stat.S_ISDIR, "a FIFO": stat.S_ISFIFO, "a socket": stat.S_ISSOCK}
    return next((f"it is {word}" for word, test in kinds.items() if test(mode)), "it is a device")


def _same(found: np.dtype[Any], dtype: DType) -> bool:
    """Whether a file's dtype is the tensor's; NumPy writes dtypes that it lacks (bfloat16) as bare bytes."""
    storage = _storage(dtype)
    bare = found.kind == storage.kind == "V" and found.names is None
    return found == storage or (bare and found.itemsize == storage.itemsize)


def _storage(dtype: DType) -> np.dtype[Any]:
    assert dtype.storage is not None
    return dtype.storage


def _hash(path: Path) -> str:
    status = path.stat()
    return _hash_of(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=64)
def _hash_of(path: Path, changed: int, size: int) -> str:
    digest = xxhash.xxh3_128()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()
