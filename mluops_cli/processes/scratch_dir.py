"""A temporary folder per call. Those of killed workers are swept away by the next one, or when the run ends."""

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
def scratch_directory() -> Iterator[Path]:
    """A new empty folder (but for a hidden lock file), gone at the end of the block."""
    made = Path(tempfile.mkdtemp(prefix=f".{_PREFIX}"))
    with open(made / _LOCK, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        room = made.rename(made.with_name(made.name.removeprefix(".")))  # visible to sweepers only now
        try:
            yield room
        finally:
            shutil.rmtree(room, ignore_errors=True)


def sweep() -> None:
    """Remove the folders that nobody holds."""
    for room in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if room.lstat().st_uid == os.getuid() and _unheld(room):
                shutil.rmtree(room, ignore_errors=True)


def _unheld(room: Path) -> bool:
    try:
        with open(room / _LOCK) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:  # it goes first of all that is removed: someone wrote into a room that was being removed
        pass
    except BlockingIOError:
        return False
    return True
