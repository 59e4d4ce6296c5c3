"""YAML files as plain data, with the line and column of everything in them.

YAML 1.2's core schema: 1e-3 is a number, 010 is ten, no and on are words; duplicate keys are errors, keys are words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from os.path import basename
from pathlib import Path
from typing import Any, Final

import yaml

from generators.specs.yaml_syntax import syntax_error
from schemas.errors import InputError, SourceLocation

KeyPath = tuple[str | int, ...]

_MOST: Final = 20  # errors reported of one command's files
_MOST_REPEATED: Final = 1_000_000  # values that the aliases of a file may add; nested aliases multiply
_BITS: Final = 128  # of an integer: the widest elements, as bit patterns
_TAG: Final = "tag:yaml.org,2002:"
_INTEGER: Final = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_CONSTANTS: Final[dict[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **{sign + word: float(sign + "inf") for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")},
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_SPECIAL: Final = frozenset("+-.0123456789~ntfNTF")  # first characters of what may be no word


class Located(dict[str, Any]):
    """A mapping of a YAML file that knows its file and line."""

    __slots__ = ("file", "line")
    file: str
    line: int

    @property
    def place(self) -> str:
        """The file's name and the line: psamask.yaml:12."""
        return f"{basename(self.file)}:{self.line}"

    def with_items(self, items: Mapping[str, Any]) -> Located:
        """A mapping with other items at the same location."""
        made = Located(items)
        made.file, made.line = self.file, self.line
        return made


@dataclass(frozen=True)
class Document:
    """A YAML file: its data, and the place of each part of them."""

    file: str
    text: str
    data: Any

    @cached_property
    def _root(self) -> Any:
        # Composed again only once something has to be pointed at: marks of everything would cost more than the data.
        return yaml.compose(self.text, Loader=yaml.CSafeLoader)

    def place(self, path: KeyPath, at_key: bool = False) -> SourceLocation:
        """Where the value (or the key) at a key path stands; of a path that leads nowhere, as far as it leads."""
        node, mark = self._root, None if self._root is None else self._root.start_mark
        for step in path:
            found = next(_children(node, step), None)
            if found is None:
                break
            key_node, node = found
            mark = (key_node if at_key and key_node is not None else node).start_mark
        line, column = (None, None) if mark is None else (mark.line + 1, mark.column + 1)
        return SourceLocation(self.file, line, column, key_text(path) or None)

    def has(self, path: KeyPath) -> bool:
        """Whether something stands at a key path."""
        data = self.data
        for step in path:
            try:
                data = data[step]
            except (KeyError, IndexError, TypeError):
                return False
        return True


def _children(node: Any, step: str | int) -> Iterator[tuple[Any, Any]]:
    """(key node, value node) of a step; merged mappings come after the mapping's own keys."""
    if isinstance(node, yaml.SequenceNode):
        if isinstance(step, int) and step < len(node.value):
            yield None, node.value[step]
    elif isinstance(node, yaml.MappingNode):
        yield from (pair for pair in node.value if pair[0].value == step)
        for key_node, value in node.value:
            if key_node.value == "<<":
                for merged in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    yield from _children(merged, step)


def key_text(path: Iterable[str | int]) -> str:
    """A key path as people write it: suites.network[3].params.psa_type."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def together(errors: list[InputError]) -> InputError:
    """One error of several, in the order of their places, a line each."""
    if len(errors) == 1:
        return errors[0]
    ordered = sorted(errors, key=_position)
    lines = list(dict.fromkeys(str(error) for error in ordered))
    more = [f"... and {len(lines) - _MOST} more"] if len(lines) > _MOST else []
    return InputError("\n".join(lines[:_MOST] + more))


def _position(error: InputError) -> tuple[str, int, int]:
    place = error.place or SourceLocation("")
    return place.file, place.line or 0, place.column or 0


def load_yaml(path: Path) -> Document:
    """Read a YAML file; InputError with every place where it can't be read, is no YAML, or repeats a key."""
    file = str(path)
    try:
        if path.exists() and not path.is_file():  # opening a pipe would wait for a writer
            reason = "it is a folder" if path.is_dir() else "it is no regular file"
            raise InputError(f"can't read it: {reason}", SourceLocation(file))
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(f"can't read it: {error.strerror or error}", SourceLocation(file)) from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        place = SourceLocation(file, before.count(b"\n") + 1, error.start - before.rfind(b"\n"))
        raise InputError(f"byte 0x{raw[error.start]:02x} is not UTF-8", place) from None
    return parse_yaml(file, text)


def parse_yaml(file: str, text: str) -> Document:
    """The YAML in a text; errors as in load_yaml. file is the name that they begin with."""
    builder = _Builder(file, text)
    try:
        data = builder.document()
    except yaml.MarkedYAMLError as error:
        raise syntax_error(file, text, error) from None
    except yaml.reader.ReaderError as error:
        raise InputError(
            f"character #x{error.character:02x} is not allowed: {error.reason}", SourceLocation(file)
        ) from None
    except RecursionError:
        raise InputError("nested too deep", SourceLocation(file)) from None
    if builder.errors:
        raise together(builder.errors)
    return Document(file, text, data)


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


class _Builder:
    """Builds plain data from libyaml's events."""

    def __init__(self, file: str, text: str) -> None:
        self._file = file
        self._next = yaml.CSafeLoader(text).get_event
        self._anchors: dict[str, tuple[Any, int]] = {}  # anchor -> its value, and how many values that has
        self._values = 0  # with those that aliases repeat
        self._repeated = 0
        self.errors: list[InputError] = []

    def document(self) -> Any:
        self._next()  # stream start
        event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            return None
        data = self._value(self._next())
        self._next()  # document end
        event = self._next()
        if not isinstance(event, yaml.StreamEndEvent):
            self._fail(event, "found a second document, expected one")
        return data

    def _fail(self, event: Any, message: str) -> None:
        mark = event.start_mark
        self.errors.append(InputError(message, SourceLocation(self._file, mark.line + 1, mark.column + 1)))

    def _value(self, event: Any) -> Any:
        kind = type(event)
        before = self._values
        self._values += 1
        if kind is yaml.ScalarEvent:
            value = self._scalar(event)
        elif kind is yaml.SequenceStartEvent:
            value = self._sequence()
        elif kind is yaml.MappingStartEvent:
            value = self._mapping(event)
        else:
            return self._alias(event)
        if event.anchor is not None:
            self._anchors[event.anchor] = value, self._values - before
        return value

    def _alias(self, event: Any) -> Any:
        if event.anchor not in self._anchors:
            self._fail(event, f"alias *{event.anchor} has no anchor before it")
            return None
        value, values = self._anchors[event.anchor]
        self._values += values
        self._repeated += values
        if self._repeated > _MOST_REPEATED:
            self._fail(event, f"aliases repeat more than {_MOST_REPEATED} values")
            raise together(self.errors)
        return value

    def _scalar(self, event: Any) -> Any:
        if event.implicit[0]:
            if event.value[:1] not in _SPECIAL and event.value:
                return event.value
            value = plain_scalar(event.value)
            if event.value not in _CONSTANTS and _too_large(value):
                self._fail(event, f"{event.value:.40} is too large a number; infinity is written .inf")
            return value
        if event.tag in (None, "!", _TAG + "str"):
            return event.value
        value = plain_scalar(event.value)
        kinds: dict[str, Any] = {"int": int, "float": (int, float), "bool": bool, "null": type(None)}
        wanted = kinds.get(event.tag.removeprefix(_TAG))
        if wanted is None or not isinstance(value, wanted):
            self._fail(event, f"{event.value!r} with tag {event.tag}, expected a plain value")
        return float(value) if event.tag == _TAG + "float" and isinstance(value, int) else value

    def _sequence(self) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            items.append(self._value(event))
        return items

    def _mapping(self, start: Any) -> Located:
        own = Located()
        own.file, own.line = self._file, _line(start)
        merged: list[Any] = []
        keys: dict[str, Any] = {}  # key -> its event
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            if type(event) is not yaml.ScalarEvent:
                self._fail(event, "found a key that is no word")
                self._value(event)
                self._value(self._next())
                continue
            key = event.value
            value = self._value(self._next())
            if key == "<<" and event.implicit[0]:
                merged += value if isinstance(value, list) else [value]
                if not all(isinstance(each, dict) for each in merged):
                    self._fail(event, "<< merges mappings, found something else")
            elif key in own:
                self._fail(event, f"duplicate key {key!r}, first in line {_line(keys[key])}")
            else:
                own[key] = value
                keys[key] = event
        for each in merged:
            for key, value in each.items() if isinstance(each, dict) else ():
                own.setdefault(key, value)
        return own


def _too_large(value: Any) -> bool:
    """Whether a number is beyond what a dtype or a parameter could hold, however it is meant."""
    return value.bit_length() > _BITS if type(value) is int else type(value) is float and math.isinf(value)


@lru_cache(maxsize=1 << 14)
def plain_scalar(text: str) -> Any:
    """What an unquoted scalar is by YAML 1.2's core schema: null, true, false, an integer, a float, or a word."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.fullmatch(text) and len(text) < 4000:  # longer ones Python refuses to read
        return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
    return float(text) if _FLOAT.fullmatch(text) else text
