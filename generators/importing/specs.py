"""Drafts into spec files: one per operator, sorted, each case once, with comments that say where it came from."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import numpy as np

from generators.importing.draft import CaseDraft, TensorDraft
from generators.importing.entry import ASIDE, Entry, case_name, entry_of
from generators.operator_registry import operators
from schemas.errors import InputError, SourceLocation

MARK: Final = "# Imported by `mluops import`"
_SHOWN: Final = 3  # origins that a comment names
_BARE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_WORDS: Final = ("true", "false", "null", "True", "False", "Null", "TRUE", "FALSE", "NULL")


@dataclass(slots=True)
class ImportedSpec:
    """The spec of one operator: its text, the value files that it names, and how many cases made how many entries."""

    op: str
    text: str
    files: dict[str, bytes]
    cases: int
    entries: int
    known: bool
    left_out: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Group:
    """Cases that are the same."""

    draft: CaseDraft
    places: list[str]


def specs_of(drafts: Sequence[CaseDraft], notes: Counter[str], suite: str) -> list[ImportedSpec]:
    """A spec per operator, by name."""
    by_op: dict[str, dict[str, _Group]] = {}
    for draft in drafts:
        groups = by_op.setdefault(draft.op, {})
        groups.setdefault(draft.key(), _Group(draft, [])).places.append(draft.place)
    return [_spec(op, list(by_op[op].values()), notes, suite) for op in sorted(by_op)]


def _spec(op: str, groups: list[_Group], notes: Counter[str], suite: str) -> ImportedSpec:
    operator = operators().get(op)
    groups.sort(key=lambda group: (_elements(group.draft), group.draft.key(), group.places[0]))
    taken: Counter[str] = Counter()
    files: dict[str, bytes] = {}
    body: list[str] = []
    left_out: list[str] = []
    for group in groups:
        name = case_name(group.draft)
        taken[name] += 1
        if taken[name] > 1:
            name = f"{name}.{taken[name]}"
        try:
            entry = entry_of(group.draft, operator, notes)
        except InputError as error:
            left_out.append(f"{group.places[0]}: left out: {error.message}")
            body += [f"    # {_origin(group)}", f"    # left out: {error.message}"]
            continue
        _store_values(group.draft, entry, op, name, files)
        body += _entry_lines(name, entry, group)
    cases = sum(len(group.places) for group in groups)
    entries = len(groups) - len(left_out)
    head = [f"{MARK}: {cases} case{'s' if cases != 1 else ''} there, {entries} of them different."]
    if operator is None:
        head += [
            f"# There is no operator {op} here yet: `mluops gen` refuses this spec until one is added (README, adding",
            "# an operator). Tensors are named by position; rename them to the names of its contract.",
        ]
    suites = [f"  {suite}:{'' if entries else ' []'}", *body]
    text = "\n".join([*head, f"op: {_flow(op)}", "", "suites:", *suites]) + "\n"
    return ImportedSpec(op, text, files, cases, entries, operator is not None, left_out)


def _elements(draft: CaseDraft) -> int:
    return sum(math.prod(tensor.shape) for tensor in (*draft.inputs, *draft.outputs))


def _store_values(draft: CaseDraft, entry: Entry, op: str, name: str, files: dict[str, bytes]) -> None:
    """Values that came along go to .npy files beside the spec."""
    for key, tensor in zip(entry["inputs"], draft.inputs, strict=True):
        if tensor.stored is not None:
            path = f"data/{op}.{name}.{key}.npy"
            files[path] = _npy(tensor)
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
    return f"{times}{shown}{f' and {more} more' if more > 0 else ''}".replace("\n", " ")


def _entry_lines(name: str, entry: Entry, group: _Group) -> Iterator[str]:
    yield f"    # {_origin(group)}"
    if ASIDE in entry:
        yield f"    # further params, which specs have no place for yet: {_flow(entry.pop(ASIDE))}"
    yield f"    - name: {_flow(name)}"
    for key, value in entry.items():
        if key in ("inputs", "outputs"):
            yield f"      {key}:"
            yield from (f"        {tensor}: {_flow(said)}" for tensor, said in value.items())
        else:
            yield f"      {key}: {_flow(value)}"


def _flow(value: Any) -> str:
    """A value in YAML's flow style."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(each)}" for key, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, float):
        return {math.inf: ".inf", -math.inf: "-.inf"}.get(value, ".nan" if math.isnan(value) else repr(value))
    if isinstance(value, str):
        plain = _BARE.fullmatch(value) and value not in _WORDS
        return value if plain else json.dumps(value, ensure_ascii=False)
    return str(value)


def write_spec(out: Path, spec: ImportedSpec) -> Path:
    """Write a spec and its value files below a folder; InputError where a spec of that name isn't an import."""
    path = out / f"{spec.op}.yaml"
    try:
        if path.exists() and not path.read_text(encoding="utf-8", errors="replace").startswith(MARK):
            raise InputError(
                "this spec was not imported: it is not replaced, give another --out", SourceLocation(str(path))
            )
        for name, content in sorted(spec.files.items()):
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            (out / name).write_bytes(content)
        out.mkdir(parents=True, exist_ok=True)
        path.write_text(spec.text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise InputError(f"can't write: {error.strerror}", SourceLocation(str(path))) from None
    return path
