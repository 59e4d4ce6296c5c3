"""Entries that a search found, as a spec file: `mluops gen --spec` makes the same cases of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from generators.specs.loader import SUFFIXES
from generators.specs.yaml_writing import comment_line, entry_lines, flow
from schemas.atomic_files import write_text
from schemas.errors import InputError, SourceLocation

MARK: Final = "# Found by `mluops fuzz`"


@dataclass(frozen=True, slots=True)
class SavedEntry:
    """An entry of a suite of an operator, and what stands above it as comments."""

    op: str
    suite: str
    entry: Mapping[str, Any]
    comments: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """The entry as lines of a suite."""
        rest = {key: value for key, value in self.entry.items() if key != "name"}
        return [*map(comment_line, self.comments), *entry_lines(self.entry["name"], rest)]


def spec_text(op: str, entries: Sequence[SavedEntry], mark: str = MARK) -> str:
    """A spec of one operator with these entries; mark is its first line, a comment."""
    lines = [mark, f"op: {flow(op)}", "", "suites:"]
    for suite in dict.fromkeys(each.suite for each in entries):
        lines.append(f"  {flow(suite)}:")
        lines += [line for each in entries if each.suite == suite for line in each.lines()]
    return "\n".join(lines) + "\n"


class SpecSaver:
    """Writes entries to a spec file, or with several operators to a folder: OP.yaml each."""

    def __init__(self, path: Path, ops: Sequence[str]) -> None:
        self._paths = {op: path if len(ops) == 1 else path / f"{op}.yaml" for op in ops}
        if len(ops) > 1 and (path.suffix in SUFFIXES or path.is_file()):
            raise InputError(f"--save {path}: {len(ops)} operators need a folder, which gets a spec of each")
        if len(ops) == 1 and path.is_dir():
            raise InputError(f"--save {path}: this is a folder, expected a file such as found.yaml")
        for file in self._paths.values():
            _refuse_foreign(file)

    def save(self, entries: Sequence[SavedEntry]) -> None:
        """Write all entries, each file as a whole; UnavailableError where writing fails."""
        for op in dict.fromkeys(each.op for each in entries):
            write_text(self._paths[op], spec_text(op, [each for each in entries if each.op == op]))


def _refuse_foreign(path: Path) -> None:
    """InputError where the file is there and no search made it."""
    try:
        foreign = path.exists() and not path.read_text(encoding="utf-8", errors="replace").startswith(MARK)
    except OSError as error:
        raise InputError(f"can't read what is there: {error.strerror or error}", SourceLocation(str(path))) from None
    if foreign:
        raise InputError(
            "this spec was not made by fuzz: it is not replaced, give another --save", SourceLocation(str(path))
        )
