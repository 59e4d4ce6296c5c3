"""From the PATHs of a command to the cases to be run: found, named, selected."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from generators.casegen.manifest import ForeignManifest, read_manifest
from generators.contracts.binding import EXTERNAL
from mluops_cli.core.filters import parse_keywords, parse_shard, shard
from schemas.casefiles.enum_numbering import CURRENT
from schemas.casefiles.reading import SUFFIXES, read_case
from schemas.errors import InputError, MluopsError

_MANIFEST_ABOVE: Final = 2  # levels: OUT/operator/suite/name.pb, OUT/manifest.json


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """One case to be run.

    id is unique; size counts bytes of its tensors; problem says why it can't be read. noted is what the manifest says
    of a file without our metadata (a text file), in the words of CaseMeta. generation is the enum numbering that it
    is read in.
    """

    id: str
    op: str
    suite: str
    file: str
    size: int
    problem: str | None = None
    manifest_meta: dict[str, Any] | None = None
    enum_numbering: str = CURRENT


def plan_cases(
    paths: Sequence[Path],
    *,
    suites: Collection[str] = (),
    keywords: str | None = None,
    part: str | None = None,
    out: Path | None = None,
    enum_numbering: str = CURRENT,
) -> list[PlannedCase]:
    """The selected cases below the paths, sorted by path.

    InputError for a path that is no case file and no folder, and for a suite that no case and no operator has.
    out is where the run's results go: what it keeps there is not searched, unless a path leads into it.
    """
    matches = parse_keywords(keywords) if keywords is not None else None
    shard_of = parse_shard(part) if part is not None else None
    _by_file.cache_clear()
    cases = _unique(
        _describe(path, name, enum_numbering) for path, name in _find(paths, os.path.realpath(out) if out else None)
    )
    if suites:
        from generators.specs.selection import check_suites  # here: it brings all that reads specs

        check_suites(suites, {case.suite for case in cases})
        cases = [case for case in cases if case.suite in suites]
    if matches is not None:
        cases = [case for case in cases if matches(case.id)]
    if shard_of is not None:
        cases = shard(cases, *shard_of, weight=lambda case: case.size, name=lambda case: case.id)
    return cases


def _find(paths: Sequence[Path], out: str | None) -> Iterator[tuple[Path, str]]:
    """Case files, each once, with their path below the argument without suffix; .pb goes before .prototxt."""
    chosen: dict[str, tuple[Path, str]] = {}
    for argument in paths:
        if argument.is_dir():
            found = sorted(_below(argument, out))
        elif not argument.exists():
            raise InputError(f"no such file or folder: {argument}")
        elif argument.suffix not in SUFFIXES:
            raise InputError(f"{argument} is no case file: expected {' or '.join(SUFFIXES)}, or a folder of them")
        else:
            found = [argument]
        for path in found:
            stem = path.with_suffix("")
            key = os.path.realpath(path.parent) + os.sep + stem.name
            name = (stem.relative_to(argument) if path != argument else Path(stem.name)).as_posix()
            if key not in chosen or _rank(path) < _rank(chosen[key][0]):
                chosen[key] = path, name
    yield from chosen.values()


def _rank(path: Path) -> int:
    return SUFFIXES.index(path.suffix)


def _below(folder: Path, out: str | None) -> Iterator[Path]:
    """Case files below a folder; links to folders are followed, after all else: a file goes by its own path."""
    seen = {out}
    linked = deque([folder])
    while linked:
        top = linked.popleft()
        for where, folders, files in os.walk(top):
            real = os.path.realpath(where)
            if real in seen and (real != out or where != str(folder)):
                folders.clear()
                continue
            seen.add(real)
            folders[:] = [name for name in folders if not name.startswith(".")]
            linked.extend(path for name in sorted(folders) if (path := Path(where, name)).is_symlink())
            for name in files:
                if name.endswith(SUFFIXES) and not name.startswith("."):
                    yield Path(where, name)


def _describe(path: Path, name: str, enum_numbering: str) -> PlannedCase:
    """The case of a file: named by its metadata, else by the manifest, else by its path."""
    try:
        with read_case(path, enum_numbering) as file:
            op, meta = file.op, file.meta
            large = set(meta.withheld) if meta is not None else set()
            tensors = [record for record in (*file.inputs, *file.outputs) if record.id not in large]
            size = sum(math.ceil(record.span * record.dtype.width) for record in tensors)
        problem = None
    except MluopsError as error:
        op, meta, size, problem = "unreadable", None, _file_size(path), str(error)
    if meta is not None:
        return PlannedCase(
            f"{op}/{meta.suite}/{meta.name}", op, meta.suite, str(path), size, enum_numbering=enum_numbering
        )
    found = noted_fields(path)
    if found is None:
        case = f"{op}/{EXTERNAL}/{name}"
        return PlannedCase(case, op, EXTERNAL, str(path), size, problem, enum_numbering=enum_numbering)
    op, manifest_meta = found
    case = f"{op}/{manifest_meta['suite']}/{manifest_meta['name']}"
    return PlannedCase(case, op, manifest_meta["suite"], str(path), size, problem, manifest_meta, enum_numbering)


def _file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def noted_fields(path: Path) -> tuple[str, dict[str, Any]] | None:
    """What the manifest of the file's folder, or of one above, says of it: the operator, and the fields of CaseMeta."""
    absolute = Path(os.path.abspath(path))
    for folder in list(absolute.parents)[: _MANIFEST_ABOVE + 1]:
        found = _by_file(folder).get(absolute.relative_to(folder).as_posix())
        if found is not None:
            case, entry = found
            op, suite, name = case.split("/", 2)
            omitted = [tensor["name"] for tensor in entry.get("tensors", ()) if "hash" not in tensor]
            words = {key: list(entry.get(key, ())) for key in ("expect", "faults")}
            return op, {"suite": suite, "name": name, **words, "withheld": omitted}
    return None


@cache
def _by_file(folder: Path) -> dict[str, tuple[str, dict[str, Any]]]:
    try:
        entries = read_manifest(folder)
    except ForeignManifest:
        return {}  # a manifest of others: the case files speak for themselves
    return {file: (case, entry) for case, entry in entries.items() for file in entry.get("files", ())}


def _unique(cases: Iterator[PlannedCase]) -> list[PlannedCase]:
    """The cases with a number behind an id that came before (two folders with the same case)."""
    taken: dict[str, int] = {}
    result = []
    for case in cases:
        taken[case.id] = number = taken.get(case.id, 0) + 1
        if number > 1:
            case = replace(case, id=f"{case.id}~{number}")
        result.append(case)
    return result
