"""Protobuf text with long runs of values: the runs are read in bulk, everything else by protobuf's own parser.

A run is many `value_x: NUMBER` lines in a row, or one long `value_x: [NUMBER, ...]`, without comments or unusual
spellings. A placeholder replaces it: one line of the same form with a number that no other line has. protobuf accepts
or refuses that line as it would the run. protobuf parses a text with anything unusual itself, so that nothing is
accepted that it refuses, and every error has its line and column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from schemas.errors import InputError
from schemas.protos import messages as proto
from schemas.wire.value_fields import BULK

_LEAST: Final = 64  # values of the shortest run
_STEP: Final = 4096  # values matched at once: the matcher's memory grows with them
_FIRST: Final = 7_000_001  # the first placeholder: float32 holds it and the next ones exactly
_MOST: Final = 1_000_000  # runs in one file

_WHOLE: Final = r"-?(?:0|[1-9][0-9]{0,18})"
_REAL: Final = r"(?:-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|inf)|nan)"
_HEX: Final = r'"[0-9a-fA-FxX]{1,18}"'
_NUMBERS: Final = {"value_f": _REAL, "value_h": _HEX}
_READ: Final[dict[str, Callable[[str], Any]]] = {"value_f": float, "value_h": str}


class _Patterns:
    """The patterns of a run of one field: its first line and more lines with the same head, or a list."""

    def __init__(self, field: str) -> None:
        self.number = _NUMBERS.get(field, _WHOLE)
        self.read = _READ.get(field, int)
        line_end, space = r"\r?\n", r"[ \t\r\n]*"
        self.first = re.compile(rf"([ \t]*{field}:[ \t]*){self.number}{line_end}")
        self.opened = re.compile(rf"([ \t]*{field}:[ \t]*)\[{space}{self.number}")
        self.items = re.compile(rf"(?:{space},{space}{self.number}){{1,{_STEP}}}")
        self.closed = re.compile(rf"{space}\][ \t]*{line_end}")

    def following(self, head: str) -> re.Pattern[str]:
        """More lines with the same head."""
        return re.compile(rf"(?:{re.escape(head)}{self.number}\r?\n){{1,{_STEP}}}")


_PATTERNS: Final = {field: _Patterns(field) for field in BULK.values()}
_CANDIDATE: Final = re.compile(r"^[ \t]*(value_(?:h|f|i|l|ui|ul)):", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Run:
    """One run: its field, its values, its placeholder, and the number of lines that the placeholder saves."""

    field: str
    words: list[str]
    key: Any
    line: int  # of the placeholder, from 1
    removed: int


def parse_case_text(text: str, file: str) -> Any:
    """The Node of a case file's text, equal to that of protobuf's parser; InputError with file:line:column."""
    kept, runs = _cut(text)
    if runs:
        try:
            node = proto.parse_text(kept, proto.Node(), file)
            if _put_back(node, runs):
                return node
        except InputError as error:
            place = error.place
            if place is not None and place.line is not None and all(place.line != run.line for run in runs):
                removed = sum(run.removed for run in runs if run.line < place.line)
                raise InputError(error.message, replace(place, line=place.line + removed)) from None
    return proto.parse_text(text, proto.Node(), file)


def _cut(text: str) -> tuple[str, list[_Run]]:
    """The text with a placeholder for each of its runs, and the runs."""
    kept: list[str] = []
    runs: list[_Run] = []
    at = done = 0
    line = 1
    while len(runs) < _MOST:
        candidate = _CANDIDATE.search(text, at)
        if candidate is None:
            break
        found = _lines(text, candidate.start(), candidate[1]) or _list(text, candidate.start(), candidate[1])
        if found is None:
            at = candidate.end()
            continue
        head, words, end = found
        if len(words) >= _LEAST:
            before = text[done : candidate.start()]
            line += before.count("\n")
            key = _FIRST + len(runs) if candidate[1] != "value_h" else f"run {len(runs)}"
            kept += [before, f'{head}"{key}"\n' if isinstance(key, str) else f"{head}{key}\n"]
            removed = text.count("\n", candidate.start(), end) - 1
            runs.append(_Run(candidate[1], words, key, line, removed))
            line += 1
            done = end
        at = end
    kept.append(text[done:])
    return "".join(kept), runs


Found = tuple[str, list[str], int]  # head of the line, the numbers, offset after the run


def _lines(text: str, start: int, field: str) -> Found | None:
    patterns = _PATTERNS[field]
    first = patterns.first.match(text, start)
    if first is None:
        return None
    head, end = first[1], first.end()
    for chunk in _chunks(patterns.following(head), text, end):
        end = chunk.end()
    return head, text[start:end].replace(head, "\n").split(), end


def _list(text: str, start: int, field: str) -> Found | None:
    patterns = _PATTERNS[field]
    opened = patterns.opened.match(text, start)
    if opened is None:
        return None
    end = opened.end()
    for chunk in _chunks(patterns.items, text, end):
        end = chunk.end()
    closed = patterns.closed.match(text, end)
    if closed is None:
        return None
    return opened[1], text[start + len(opened[1]) + 1 : end].replace(",", " ").split(), closed.end()


def _chunks(pattern: re.Pattern[str], text: str, at: int) -> Iterator[re.Match[str]]:
    while (chunk := pattern.match(text, at)) is not None:
        yield chunk
        at = chunk.end()


def _put_back(node: Any, runs: list[_Run]) -> bool:
    """Replace the placeholders by the values; False where protobuf has to parse the text itself."""
    waiting = {(run.field, run.key): run for run in runs}
    placed = 0
    for tensor in (*node.input, *node.output):
        for field in BULK.values():
            entries = getattr(tensor, field)
            at = [i for i, entry in enumerate(entries) if (field, entry) in waiting] if len(entries) else []
            if not at:
                continue
            old, new, done = list(entries), [], 0
            for place in at:
                run = waiting[field, old[place]]
                new += old[done:place]
                new += _values(run)
                done = place + 1
            placed += len(at)
            del entries[:]
            try:
                entries.extend(new + old[done:])
            except ValueError:  # a number that the field can't hold
                return False
    return placed == len(runs)


def _values(run: _Run) -> list[Any]:
    if run.field == "value_h":
        return [word[1:-1] for word in run.words]
    return list(map(_PATTERNS[run.field].read, run.words))
