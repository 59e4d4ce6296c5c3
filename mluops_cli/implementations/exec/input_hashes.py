"""Hashes of the files that a program may read but not change."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import xxhash

_BLOCK: Final = 1 << 20


class InputHashes:
    """The hashes of files before a program runs; each file comes with a name for messages."""

    def __init__(self, files: Iterable[tuple[str, Path]]) -> None:
        self._files = [(name, path, _hash(path)) for name, path in files]

    def changed(self) -> str | None:
        """Return the name of a file that was changed or removed since, None where there is none."""
        return next((name for name, path, known in self._files if _hash(path) != known), None)


def _hash(path: Path) -> int | None:
    """Return the hash of a file's bytes, None where the path is no regular file."""
    if not path.is_file():  # opening a pipe would wait for its writer
        return None
    state = xxhash.xxh3_64()
    with path.open("rb", buffering=0) as file:
        while block := file.read(_BLOCK):
            state.update(block)
    return state.intdigest()
