"""Drafts into spec files: one per operator, sorted, each case once, with comments on where it came from."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Final

import numpy as np
import xxhash

from generators.contracts.operator import Operator
from generators.importing.draft import CaseDraft, Note, TensorDraft
from generators.importing.entry import ASIDE, Entry, Unwritable, case_name, check_entry, entry_of
from generators.operator_registry import operators
from generators.specs.yaml_writing import comment_line, entry_lines, flow
from schemas.atomic_files import Writer, remove_leftovers, write_files
from schemas.errors import InputError, SourceLocation
from schemas.path_names import LONGEST_NAME

MARK: Final = "# Imported by `mluops import`"
_DATA: Final = "data"  # the folder of value files, beside the specs
_SHOWN: Final = 3  # origins that a comment names


@dataclass(slots=True)
class ImportedSpec:
    """The spec of one operator: its text, the value files that it names, and how many cases made how many entries.

    body are the lines of its entries. left_out are cases that the operator can't have, errors those that no spec may
    hold.
    """

    op: str
    text: str
    files: dict[str, bytes]
    cases: int
    entries: int
    known: bool
    body: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Group:
    """Cases that are the same."""

    draft: CaseDraft
    places: list[str]


def specs_of(drafts: Sequence[CaseDraft], note: Note, suite: str) -> list[ImportedSpec]:
    """A spec per operator, by name; note is called with what an operator does not take as it stands."""
    by_op: dict[str, list[CaseDraft]] = {}
    for draft in drafts:
        by_op.setdefault(draft.op, []).append(draft)
    return [spec_of(op, by_op[op], operators().get(op), note, suite) for op in sorted(by_op)]


def spec_of(op: str, drafts: Sequence[CaseDraft], operator: Operator | None, note: Note, suite: str) -> ImportedSpec:
    """The spec of one operator, checked against its contract where there is one."""
    spec = ImportedSpec(op, "", {}, len(drafts), 0, operator is not None)
    by_key: dict[str, _Group] = {}
    for draft in drafts:
        by_key.setdefault(draft.key(), _Group(draft, [])).places.append(draft.place)
    taken: Counter[str] = Counter()
    for group in sorted(by_key.values(), key=lambda each: (_elements(each.draft), each.draft.key(), each.places[0])):
        name = case_name(group.draft)
        taken[name] += 1
        if taken[name] > 1:
            name = f"{name}.{taken[name]}"
        try:
            entry = _entry(group, name, operator, note)
        except InputError as error:
            text = f"{group.places[0]}: left out: {error.message}"
            (spec.errors if isinstance(error, Unwritable) else spec.left_out).append(text)
            spec.body += [comment_line(_origin(group)), comment_line(f"left out: {error.message}")]
            continue
        _store_values(group.draft, entry, op, name, spec.files)
        spec.body += _entry_lines(name, entry, group)
        spec.entries += 1
    spec.text = _text(spec, suite)
    return spec


def _entry(group: _Group, name: str, operator: Operator | None, note: Note) -> Entry:
    entry = entry_of(group.draft, operator, note)
    check_entry(entry, name, operator)
    return entry


def _text(spec: ImportedSpec, suite: str) -> str:
    op, cases, entries = spec.op, spec.cases, spec.entries
    head = [f"{MARK}: {cases} case{'s' if cases != 1 else ''} there, {entries} of them different."]
    if not spec.known:
        head += [
            f"# There is no operator {op} here yet: `mluops gen` refuses this spec until one is added (README, adding",
            "# an operator). Tensors are named by position; rename them to the names of its contract.",
        ]
    suites = [f"  {suite}:{'' if entries else ' []'}", *spec.body]
    return "\n".join([*head, f"op: {flow(op)}", "", "suites:", *suites]) + "\n"


def _elements(draft: CaseDraft) -> int:
    return sum(math.prod(tensor.shape) for tensor in (*draft.inputs, *draft.outputs))


def _store_values(draft: CaseDraft, entry: Entry, op: str, name: str, files: dict[str, bytes]) -> None:
    """Values that came along go to .npy files beside the spec, named by their content: see write_spec."""
    for key, tensor in zip(entry["inputs"], draft.inputs, strict=True):
        if tensor.stored is not None:
            content = _npy(tensor)
            stem = f"{op}.{name}.{key}"[:LONGEST_NAME]
            path = f"{_DATA}/{stem}.{xxhash.xxh3_64_hexdigest(content)}.npy"
            files[path] = content
            entry["inputs"][key]["dist"] = {"file": path}


def _npy(tensor: TensorDraft) -> bytes:
    assert tensor.stored is not None
    out = BytesIO()
    np.save(out, tensor.stored)
    return out.getvalue()


def _origin(group: _Group) -> str:
    shown = ", ".join(group.places[:_SHOWN])
    more = len(group.places) - _SHOWN
    times = f"used {len(group.places)} times: " if len(group.places) > 1 else ""
    return f"{times}{shown}{f' and {more} more' if more > 0 else ''}"


def _entry_lines(name: str, entry: Entry, group: _Group) -> Iterator[str]:
    yield comment_line(_origin(group))
    if ASIDE in entry:
        yield comment_line(f"further params, which specs have no place for yet: {flow(entry.pop(ASIDE))}")
    yield from entry_lines(name, entry)


def write_spec(out: Path, spec: ImportedSpec) -> Path:
    """Write a spec and its value files below a folder, each as a whole, and return the spec's path.

    The spec comes last, and value files are named by their content: until then an older spec is whole, with the files
    that it names. Those that the new one doesn't name are removed after that. InputError where a spec of that name
    isn't an import; UnavailableError where writing fails.
    """
    path = out / f"{spec.op}.yaml"
    place = SourceLocation(str(path))
    try:
        older = path.read_text(encoding="utf-8", errors="replace") if path.exists() else MARK
        if not older.startswith(MARK):
            raise InputError("this spec was not imported: it is not replaced, give another --out", place)
    except OSError as error:
        raise InputError(f"can't read what is there: {error.strerror or error}", place) from None
    contents = {**spec.files, path.name: spec.text.encode()}  # the spec last: it never names a file that isn't there
    for folder in (out, out / _DATA):
        remove_leftovers(folder)
    write_files([(out / name, _writer(content)) for name, content in contents.items()])
    for name in _value_files(spec.op, older) - spec.files.keys():
        with suppress(OSError):
            (out / name).unlink()
    return path


def _value_files(op: str, text: str) -> set[str]:
    """The value files that the text of an imported spec names."""
    return set(re.findall(rf"{_DATA}/{re.escape(op)}\.[\w.-]+\.[0-9a-f]{{16}}\.npy", text))


def _writer(content: bytes) -> Writer:
    return lambda file: file.write(content)
