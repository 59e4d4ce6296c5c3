"""Text written to a file that the user names, or to standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from schemas import atomic_files

STDOUT: Final = Path("-")


def write_text(path: Path, content: str | Iterable[str]) -> None:
    """Write a text, given whole or in parts, as a whole file, or to standard output where the path is -.

    UnavailableError where that fails; the file is then what it was before.
    """
    if path == STDOUT:
        sys.stdout.writelines((content,) if isinstance(content, str) else content)
        return
    atomic_files.write_text(path, content)
