"""From the PATHs of a command to its cases: case files are found, named and selected here, for every command alike."""

from __future__ import annotations

import math
import os
import stat
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from generators.casegen.manifest import ForeignManifest, read_manifest
from generators.contracts.binding import EXTERNAL
from mluops_cli.core.case_lists import check_known, read_case_list
from mluops_cli.core.filters import parse_keywords
from mluops_cli.core.record import RESULTS
from schemas.case_ids import case_id, id_parts
from schemas.casefiles.enum_numbering import CURRENT
from schemas.casefiles.external_data import find_external
from schemas.casefiles.reading import SUFFIXES, CaseFile, read_case
from schemas.casefiles.tensors import TensorRecord
from schemas.errors import InputError, MluopsError

FAILURES: Final = "failures"  # the folder of a run's results that holds the files of failing cases
_MANIFEST_ABOVE: Final = 2  # levels: OUT/operator/suite/name.pb, OUT/manifest.json


class FoundFile(NamedTuple):
    """A case file, and its path below the argument that led to it, without suffix and with / between folders."""

    path: Path
    name: str


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """One case to be run.

    id is unique; size counts bytes of its tensors; problem says why it can't be read. manifest_meta is what the
    manifest says of a file without our metadata (a text file), with the fields of CaseMeta. enum_numbering is the
    numbering that the file is read in. external are the files with its external data; those of a wrong size, which may
    be vast, are left out: no command reads them. relations: they are checked where the options ask for them. tags are
    those of a file with our metadata.
    """

    id: str
    op: str
    suite: str
    file: str
    size: int
    problem: str | None = None
    manifest_meta: dict[str, Any] | None = None
    enum_numbering: str = CURRENT
    external: tuple[str, ...] = ()
    relations: bool = True
    tags: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """The case file and its external data."""
        return (self.file, *self.external)

    @property
    def hashed_files(self) -> tuple[str, ...]:
        """The files that tell a changed case: none of a case that can't be read, whose file may be vast."""
        return self.files if self.problem is None else ()


def open_case(case: PlannedCase) -> CaseFile:
    """The file of a case with what its manifest says of it, to be closed; InputError where it can't be read."""
    if case.problem is not None:
        raise InputError(case.problem)
    file = read_case(Path(case.file), case.enum_numbering)
    file.take_metadata(case.manifest_meta)
    return file


def find_case_files(
    paths: Iterable[Path],
    *,
    skipped: Collection[Path] = (),
    both_forms: bool = False,
    suffixes: tuple[str, ...] = SUFFIXES,
) -> list[FoundFile]:
    """The case files at the paths and below them, each file once, sorted within each path.

    Links to folders are followed. Files and folders whose name begins with a dot are left out, and so are FIFOs,
    sockets, devices, and the cases that a run has kept beside its results: a path that names one takes it all the same,
    but for what is no file. Of a .pb and a .prototxt of one name the .pb is taken, with both_forms both. A file that
    several paths lead to has the longest of its names, so that names don't depend on the order of the paths.

    skipped are folders that are not searched unless a path leads into them. suffixes are those of the files. InputError
    for a path that doesn't exist or is neither a folder nor a case file.
    """
    _by_file.cache_clear()  # a command begins here: manifests may have changed since the last one
    closed = {os.path.realpath(path) for path in skipped}
    chosen: dict[tuple[str, str], FoundFile] = {}
    real = cache(os.path.realpath)  # of the folders: many files have one
    for argument in paths:
        for found in _at(argument, closed, suffixes):
            key = real(os.path.dirname(found.path)), found.path.name if both_forms else found.path.stem
            known = chosen.get(key)
            if known is None:
                chosen[key] = found
            else:  # the key keeps its position
                chosen[key] = FoundFile(
                    min(known.path, found.path, key=lambda path: suffixes.index(path.suffix)),
                    max(known.name, found.name, key=lambda name: (name.count("/"), name)),
                )
    return list(chosen.values())


def _at(argument: Path, closed: set[str], suffixes: tuple[str, ...]) -> list[FoundFile]:
    """The case files of one path."""
    try:
        mode = argument.stat().st_mode
    except FileNotFoundError:
        raise InputError(f"no such file or folder: {argument}") from None
    except (OSError, ValueError) as error:  # a loop of links, a name that is too long or holds a null byte
        raise InputError(f"{argument}: can't be looked at: {getattr(error, 'strerror', error)}") from None
    if stat.S_ISDIR(mode):
        inside = os.path.realpath(argument)
        opened = {folder for folder in closed if Path(inside).is_relative_to(folder)}
        paths = sorted(_below(argument, closed - opened, suffixes), key=lambda path: path.parts)
        return [FoundFile(path, path.relative_to(argument).as_posix().removesuffix(path.suffix)) for path in paths]
    if argument.suffix not in suffixes:
        raise InputError(f"{argument} is no case file: expected {' or '.join(suffixes)}, or a folder of them")
    if not stat.S_ISREG(mode):
        raise InputError(f"{argument} is no file: expected a case file, or a folder of them")
    return [FoundFile(argument, argument.stem)]


def _below(folder: Path, closed: set[str], suffixes: tuple[str, ...]) -> Iterator[Path]:
    """Case files below a folder; links to folders are followed last, so that a file goes by its own path."""
    seen = set(closed)
    linked = deque([folder])
    while linked:
        for where, folders, files in os.walk(linked.popleft()):
            real = os.path.realpath(where)
            if real in seen:
                folders.clear()
                continue
            seen.add(real)
            kept = {FAILURES} if RESULTS in files else set()
            folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in kept)
            linked.extend(path for name in folders if (path := Path(where, name)).is_symlink())
            for name in files:
                if name.endswith(suffixes) and not name.startswith(".") and _may_be_read(os.path.join(where, name)):
                    yield Path(where, name)


def _may_be_read(path: str) -> bool:
    """Whether opening the path can't block: it is a file, or a link to nothing, which is reported as a case."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return True


def plan_cases(
    paths: Sequence[Path],
    *,
    suites: Collection[str] = (),
    keywords: str | None = None,
    listed: Path | None = None,
    out: Path | None = None,
    enum_numbering: str = CURRENT,
) -> list[PlannedCase]:
    """The selected cases at the paths, in the order of find_case_files.

    listed is a file with case ids, the only ones selected. out is the folder of the run's results: it is not searched,
    unless a path leads into it. InputError as in find_case_files, for a suite that no case and no operator has, and for
    a listed case that isn't there.
    """
    matches = parse_keywords(keywords) if keywords is not None else None
    chosen = read_case_list(listed) if listed is not None else None
    found = find_case_files(paths, skipped=(out, out / FAILURES) if out else ())
    cases = _unique([_describe(each.path, each.name, enum_numbering) for each in found])
    if chosen is not None and listed is not None:
        check_known(chosen, {case.id for case in cases}, listed)
        cases = [case for case in cases if case.id in chosen]
    if suites:
        from generators.specs.selection import check_suites  # here: it brings all that reads specs

        check_suites(suites, {case.suite for case in cases})
        cases = [case for case in cases if case.suite in suites]
    if matches is not None:
        cases = [case for case in cases if matches(case.id)]
    return cases


def _describe(path: Path, name: str, enum_numbering: str) -> PlannedCase:
    """The case of a file: named by its metadata, else by the manifest, else by its path."""
    op, suite, metadata, problem = "unreadable", EXTERNAL, None, None
    external: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    meta = None
    try:
        with read_case(path, enum_numbering) as file:
            meta = file.meta
            large = set(meta.omitted) if meta is not None else set()
            records = (*file.inputs, *file.outputs)
            size = sum(math.ceil(each.span * each.dtype.width) for each in records if each.id not in large)
            op, external = file.op, tuple(_external(records))
    except MluopsError as error:
        size, problem = _file_size(path), str(error)
    if meta is not None:
        suite, name, tags = meta.suite, meta.name, tuple(meta.tags)
    elif found := manifest_metadata(path):
        op, metadata = found
        suite, name = metadata["suite"], metadata["name"]
    return PlannedCase(
        case_id(op, suite, name), op, suite, str(path), size, problem, metadata, enum_numbering, external, tags=tags
    )


def _external(records: Iterable[TensorRecord]) -> Iterator[str]:
    """The files that tensors name for their values, as far as they are there and of the right size."""
    for record in records:
        if name := record.header.path:
            with suppress(MluopsError, OSError):
                found = find_external(record.folder, name, record.place)
                found.check_size(math.ceil(record.span * record.dtype.width))
                yield os.path.abspath(found.path)


def _file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def manifest_entry(path: Path) -> tuple[str, dict[str, Any]] | None:
    """The case id and entry of a case file in the manifest of its folder, or of one above; None where there is none."""
    absolute = Path(os.path.abspath(path))
    for folder in list(absolute.parents)[: _MANIFEST_ABOVE + 1]:
        found = _by_file(folder).get(absolute.relative_to(folder).as_posix())
        if found is not None:
            return found
    return None


def manifest_metadata(path: Path) -> tuple[str, dict[str, Any]] | None:
    """What the manifest of the file's folder, or of one above, says of it: the operator, and the fields of CaseMeta."""
    found = manifest_entry(path)
    if found is None:
        return None
    case, entry = found
    op, suite, name = id_parts(case)
    omitted = [tensor["name"] for tensor in entry.get("tensors", ()) if "hash" not in tensor]
    lists = {key: list(entry.get(key, ())) for key in ("expect", "faults")}
    beyond = bool(entry.get("beyond_design", False))
    return op, {"suite": suite, "name": name, **lists, "beyond_design": beyond, "omitted": omitted}


@cache
def _by_file(folder: Path) -> dict[str, tuple[str, dict[str, Any]]]:
    try:
        entries = read_manifest(folder)
    except ForeignManifest:
        return {}  # a manifest of another tool: the case files tell what they are
    return {file: (case, entry) for case, entry in entries.items() for file in entry.get("files", ())}


def _unique(cases: Sequence[PlannedCase]) -> list[PlannedCase]:
    """The cases with ~2, ~3 behind an id that several files have.

    The numbers follow the paths of the files: waivers, comparisons and --resume meet the same file again, whatever the
    order of the command's arguments.
    """
    by_id: defaultdict[str, list[int]] = defaultdict(list)
    for index, case in enumerate(cases):
        by_id[case.id].append(index)
    result = list(cases)
    for same in by_id.values():
        if len(same) > 1:
            for number, index in enumerate(sorted(same, key=lambda i: os.path.realpath(cases[i].file)), 1):
                if number > 1:
                    result[index] = replace(cases[index], id=f"{cases[index].id}~{number}")
    return result
