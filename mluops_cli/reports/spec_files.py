"""Where in a repository the spec lies that a record names: case files hold its name and line without folders."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from functools import cached_property
from pathlib import Path
from typing import Final

from generators.specs.loader import SUFFIXES
from mluops_cli.core.record import RESULTS

_PLACE: Final = re.compile(r"([^\x00-\x1f]+?):(\d{1,9})(?::\d+)?")
_MARKS: Final = {"pyvenv.cfg", RESULTS}  # of folders without specs: virtual environments, results of runs
_LONGEST: Final = 1000  # characters of a path
_MOST: Final = 1 << 20  # bytes of a spec that is looked into


class SpecFiles:
    """The specs below the root of a repository, found by name."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def find(self, place: str, op: str) -> tuple[str, int]:
        """Return the file, relative to the root with / between folders, and the line of a record's place.

        A file in the root or in cases/ is taken first. Of several others it is the one with the operator's cases. The
        file is empty where there is none, or none that stands out.
        """
        match = _PLACE.fullmatch(place)
        if match is None or len(match[1]) > _LONGEST:
            return "", 0
        named = Path(match[1])
        for candidate in (named, Path("cases") / named):
            path = Path(os.path.normpath(self.root / candidate))
            if path.is_relative_to(self.root) and path.is_file():
                return path.relative_to(self.root).as_posix(), int(match[2])
        found = self._by_name.get(match[1], [])
        if len(found) > 1:
            found = [path for path in found if _is_spec_of(path, op)]
        return (found[0].relative_to(self.root).as_posix(), int(match[2])) if len(found) == 1 else ("", 0)

    @cached_property
    def _by_name(self) -> dict[str, list[Path]]:
        found: defaultdict[str, list[Path]] = defaultdict(list)
        for where, folders, files in os.walk(self.root):
            if _MARKS & set(files):
                folders.clear()
                continue
            folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
            for name in files:
                if name.endswith(SUFFIXES):
                    found[name].append(Path(where, name))
        return found


def _is_spec_of(path: Path, op: str) -> bool:
    try:
        with path.open("rb") as file:
            text = file.read(_MOST).decode(errors="replace")
    except OSError:
        return False
    return re.search(rf"""^op:\s*["']?{re.escape(op)}["']?\s*(#.*)?$""", text, re.MULTILINE) is not None
