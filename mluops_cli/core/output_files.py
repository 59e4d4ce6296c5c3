"""Text for a file that the user names, or for standard output; no input of the command is written over."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from schemas import atomic_files
from schemas.errors import InputError

STDOUT: Final = Path("-")


def write_text(path: Path, content: str | Iterable[str]) -> None:
    """Write text, given as a whole or in parts, to a file; to standard output where the path is -.

    An earlier file is replaced only by the whole text. UnavailableError where the file can't be written.
    """
    if path == STDOUT:
        sys.stdout.writelines((content,) if isinstance(content, str) else content)
    else:
        atomic_files.write_text(path, content)


def refuse_inputs(outputs: Mapping[str, Path | None], inputs: Iterable[str | Path | None]) -> None:
    """InputError where an output file, given by its option, is an input of the command or another output.

    Standard output, devices and pipes may be named more than once; None is no file.
    """
    wanted: dict[object, str] = {}
    for option, path in outputs.items():
        identity = None if path is None or path == STDOUT else _identity(path)
        if identity in wanted:
            raise InputError(f"{option} {path}: {wanted[identity]} writes this file too: give each its own")
        if identity is not None:
            wanted[identity] = option
    for each in inputs if wanted else ():
        of_input = None if each is None else wanted.get(_identity(each))
        if of_input is not None:
            raise InputError(f"{of_input} {outputs[of_input]}: this command reads that file: give it another one")


def _identity(path: str | Path) -> object:
    """What tells a regular file from others, by whatever path; None for a device or a pipe."""
    try:
        status = os.stat(path)
    except OSError:  # not there yet
        return os.path.realpath(path)
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None
