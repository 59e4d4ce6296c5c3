"""OUT while a gen writes into it: locked, journaled, and with a manifest that is true afterwards.

Only what the manifest or the journal lists is ever removed, and only such files, and .pb files with our metadata, are
replaced.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from generators.casegen import journal
from generators.casegen.manifest import (
    Entries,
    Entry,
    agrees,
    case_files,
    read_journaled,
    read_manifest,
    read_stored,
    write_manifest,
)
from generators.casegen.worker_pool import InheritedFile
from generators.casegen.write_options import WriteOptions
from schemas.atomic_files import remove_leftovers, write_failure
from schemas.casefiles.reading import SUFFIXES, read_case
from schemas.casefiles.writing import BINARY
from schemas.errors import InputError, SourceLocation, UnavailableError
from schemas.suggest import counted

LOCK: Final = ".mluops.lock"

Say = Callable[[str], None]
# Whether the specs that are read now made a case, by its id and its entry, and would make it again.
MadeOf = Callable[[str, Entry], bool]


@contextmanager
def open_output(
    options: WriteOptions, cases: Collection[str], say: Say, made_of_specs: MadeOf | None = None, *, prune: bool = False
) -> Iterator[InheritedFile]:
    """Lock OUT while these cases are written there; yields the lock, which worker processes are to inherit.

    A second gen waits, and reports that by `say`. The manifest of a gen that was killed is completed first. At the end,
    also of an interrupted gen, the manifest gets the cases that are whole, and files of earlier cases of the same names
    are removed. Other cases of the manifest that come from the specs (made_of_specs) are reported, with prune removed.
    InputError where a case would replace a file that isn't ours, UnavailableError where writing fails.
    """
    out = options.out
    refuse_foreign(out, cases, options.suffixes)  # before anything is written, the lock included
    with _locked(out, say) as lock:
        if (out / journal.NAME).exists():
            say(f"{out}: the last gen into this folder was stopped; the manifest is brought up to date")
            settle(out, say)
        refuse_foreign(out, cases, options.suffixes)
        try:
            journal.begin(out)
            yield lock
        except BaseException:
            with suppress(UnavailableError):  # the user gets the message about what ended the gen; the journal stays
                settle(out, say)
            raise
        settle(out, say)
        if made_of_specs is not None:
            _tell_unmade(out, cases, made_of_specs, say, prune)


@contextmanager
def _locked(folder: Path, say: Say) -> Iterator[InheritedFile]:
    path = folder / LOCK
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        raise write_failure(path, error) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"{folder}: another gen is writing into this folder; waiting until it ends")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield InheritedFile(handle)
    finally:
        os.close(handle)


def refuse_foreign(folder: Path, cases: Collection[str], suffixes: Collection[str]) -> None:
    """InputError naming a file that is in the way of these cases and isn't ours, or would win over the new file.

    Ours is what the folder's manifest lists, a .pb with our metadata, and the external data files that it names.
    """
    listed = {file for entry in read_manifest(folder).values() for file in entry.get("files", ())}
    unknown: dict[str, list[Path]] = {}
    for case, path in case_files(folder, cases):
        if path.relative_to(folder).as_posix() not in listed:
            unknown.setdefault(case, []).append(path)
    foreign: list[Path] = []
    for paths in unknown.values():
        ours = {file for path in paths if path.suffix == BINARY for file in _signed(path)}
        foreign += [path for path in paths if path not in ours]
        for path in paths:
            if path.suffix == BINARY and path in ours and BINARY not in suffixes:
                text = "no manifest lists it, and it would be run instead of the new text file; remove it first"
                raise InputError(text, SourceLocation(str(path)))
    if foreign:
        more = f" (and {len(foreign) - 1} more)" if len(foreign) > 1 else ""
        raise InputError(f"not made by mluops, and a case would replace it{more}", SourceLocation(str(foreign[0])))


def _signed(path: Path) -> list[Path]:
    """A .pb with our metadata and the external data files that it names; nothing for any other file."""
    try:
        with read_case(path) as file:
            records = (*file.inputs, *file.outputs) if file.meta is not None else ()
            named = [path.with_name(record.header.path) for record in records if record.header.path]
            return [path, *named] if file.meta is not None else []
    except InputError:
        return []


def settle(folder: Path, say: Say) -> None:
    """Bring the manifest up to date with the journal, remove what is out of date and what was left half-written.

    Stopped at any moment, it can be done again. UnavailableError where writing fails.
    """
    stored, written = read_stored(folder), read_journaled(folder)
    for parent in sorted({case.rpartition("/")[0] for case in written} | {""}):
        remove_leftovers(folder / parent)
    found: dict[str, list[str]] = {case: [] for case in written}
    for case, path in case_files(folder, written):
        found[case].append(path.relative_to(folder).as_posix())
    settled = {case: _settled(folder, entry, stored.get(case), found[case]) for case, entry in written.items()}
    entries = {case: entry for case, entry in settled.items() if entry["files"]}
    removed = list(_remove_stale(folder, stored, entries, found))
    if removed:
        say(f"{counted(len(removed), 'file')} of earlier cases of these names removed, such as {removed[0]}")
    write_manifest(folder, stored | entries)
    journal.end(folder)


def find_unmade(stored: Entries, cases: Collection[str], made_of_specs: MadeOf) -> set[str]:
    """The cases of a manifest that are none of these cases, although the specs made them.

    Cases that came from existing files have no recipe: no spec made them.
    """
    others = stored.keys() - set(cases)
    return {case for case in others if "recipe" in stored[case] and made_of_specs(case, stored[case])}


def _tell_unmade(folder: Path, cases: Collection[str], made_of_specs: MadeOf, say: Say, prune: bool) -> None:
    """Report the cases of the manifest that the specs no longer make; with prune their files are removed."""
    stored = read_stored(folder)
    unmade = find_unmade(stored, cases, made_of_specs)
    if not unmade:
        return
    text = f"{folder}: {counted(len(unmade), 'case is', 'cases are')} no longer made by the specs"
    if not prune:
        say(f"{text}, such as {min(unmade)}; --prune removes them")
        return
    rest = {case: entry for case, entry in stored.items() if case not in unmade}
    needed = {file for entry in rest.values() for file in entry.get("files", ())}
    inside = os.path.realpath(folder)
    for case in unmade:
        for file in set(stored[case].get("files", ())) - needed:
            path = folder / file
            if Path(os.path.realpath(path.parent)).is_relative_to(inside):  # a linked folder is not ours
                _remove_stale_file(path)
                with suppress(OSError):  # others are left
                    path.parent.rmdir()
    write_manifest(folder, rest)
    say(f"{text} and removed, such as {min(unmade)}")


def _settled(folder: Path, new: Entry, old: Entry | None, found: list[str]) -> Entry:
    """The entry of a case that was to be written: the new one with its files where they are there, else the old one."""
    if "files" in new:
        return new
    cases, external = ([file for file in found if file.endswith(SUFFIXES) is own] for own in (True, False))
    complete = [file for file in cases if agrees(folder / file, new)]
    if not complete and old is not None:
        return old
    files = (complete or cases) + external
    return {"files": sorted(files), "bytes": sum((folder / file).stat().st_size for file in files)} | new


def _remove_stale(
    folder: Path, stored: Entries, entries: Mapping[str, Entry], found: Mapping[str, list[str]]
) -> Iterator[Path]:
    """Remove the listed files of earlier cases that the new ones don't have; yields each.

    A .pb that stays would be run instead of a new .prototxt.
    """
    for case, entry in entries.items():
        for file in set(found[case]) & set(stored.get(case, {}).get("files", ())) - set(entry["files"]):
            _remove_stale_file(folder / file)
            yield folder / file


def _remove_stale_file(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        text = f"{path}: can't remove what is out of date: {error.strerror or error}"
        raise UnavailableError(text) from error
