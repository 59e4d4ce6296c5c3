"""The files that a program is given to read, and must leave as they are."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import xxhash

_BLOCK: Final = 1 << 20


class Given:
    """Files with what each is called, their contents remembered by a hash."""

    def __init__(self, files: Iterable[tuple[str, Path]]) -> None:
        self._files = [(name, path, _hash(path)) for name, path in files]

    def changed(self) -> str | None:
        """What one is called that was changed or removed, None where none was."""
        return next((name for name, path, known in self._files if _hash(path) != known), None)


def _hash(path: Path) -> int | None:
    """None where it is no file any more."""
    if not path.is_file():  # opening a pipe would wait for its writer
        return None
    state = xxhash.xxh3_64()
    with path.open("rb", buffering=0) as file:
        while block := file.read(_BLOCK):
            state.update(block)
    return state.intdigest()
