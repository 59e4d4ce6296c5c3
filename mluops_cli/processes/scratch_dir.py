"""Scratch directories: one per call of a program. Those of killed workers are removed later.

A lock file in the directory shows that it is in use.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_PREFIX: Final = "mluops-exec-"
_LOCK: Final = ".lock"


@contextmanager
def scratch_directory(parent: Path | None = None) -> Iterator[Path]:
    """A new directory, empty except for a hidden lock file; it is removed at the end of the block.

    parent: the folder that it is made in, the system's for temporary files by default.
    """
    made = Path(tempfile.mkdtemp(prefix=f".{_PREFIX}", dir=parent))
    with open(made / _LOCK, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        scratch = made.rename(made.with_name(made.name.removeprefix(".")))  # sweep() sees it from here on
        try:
            yield scratch
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def sweep(parent: Path | None = None) -> None:
    """Remove the scratch directories in a folder that are no longer in use."""
    for scratch in Path(parent or tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if scratch.lstat().st_uid == os.getuid() and _unused(scratch):
                shutil.rmtree(scratch, ignore_errors=True)


def _unused(scratch: Path) -> bool:
    try:
        with open(scratch / _LOCK) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:  # rmtree removes it first; it failed when another process wrote into the directory
        pass
    except BlockingIOError:
        return False
    return True
