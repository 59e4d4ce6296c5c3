"""Text written to a file that the user names, or to standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from schemas.errors import UnavailableError

STDOUT: Final = Path("-")


def write_text(path: Path, content: str | Iterable[str]) -> None:
    """Write a report, whole or in parts, to standard output for -; UnavailableError where that can't be."""
    parts = (content,) if isinstance(content, str) else content
    if path == STDOUT:
        sys.stdout.writelines(parts)
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(parts)
    except OSError as error:
        raise UnavailableError(f"can't write the report {path}: {error.strerror}") from None
