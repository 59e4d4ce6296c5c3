"""Text for a file that the user names, or for standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from schemas import atomic_files

STDOUT: Final = Path("-")


def write_text(path: Path, content: str | Iterable[str]) -> None:
    """Write text, given as a whole or in parts, to a file; to standard output where the path is -.

    An earlier file is replaced only by the whole text. UnavailableError where the file can't be written.
    """
    if path == STDOUT:
        sys.stdout.writelines((content,) if isinstance(content, str) else content)
    else:
        atomic_files.write_text(path, content)
