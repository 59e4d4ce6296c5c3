"""A contract, and what is derived from it, as Python source, laid out as ruff and black do."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Final

from generators.contracts.model import Contract

_WIDTH: Final = 120
_INDENT: Final = 4


class Code:
    """An expression that is source already."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def source(value: Any, indent: int = 0, before: int = 0, after: int = 0) -> str:
    """The source of a dataclass, tuple, list, dict, constant or Code.

    indent is that of the line that it begins on; before and after count the characters before it, from the indent on,
    and behind it. A dataclass is a call with the fields that differ from their defaults; but for those of a Contract
    the fields without a default are positional.
    """
    brackets = _brackets(value)
    flat = _flat(value)
    if brackets is None or indent + before + len(flat) + after <= _WIDTH:
        return flat
    inner = indent + _INDENT
    body = _body(value)
    if is_dataclass(value) and inner + len(body) <= _WIDTH:
        return f"{brackets[0]}\n{' ' * inner}{body}\n{' ' * indent}{brackets[1]}"
    lines = [f"{' ' * inner}{prefix}{source(each, inner, len(prefix), 1)},\n" for prefix, each in _children(value)]
    return f"{brackets[0]}\n{''.join(lines)}{' ' * indent}{brackets[1]}"


def _brackets(value: Any) -> tuple[str, str] | None:
    """What stands before and behind the children of a value; None for a constant."""
    if is_dataclass(value):
        return f"{type(value).__name__}(", ")"
    if isinstance(value, tuple):
        return "(", ")"
    if isinstance(value, list):
        return "[", "]"
    return ("{", "}") if isinstance(value, Mapping) else None


def _flat(value: Any) -> str:
    """The source in one line."""
    brackets = _brackets(value)
    if brackets is not None:
        return f"{brackets[0]}{_body(value)}{brackets[1]}"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def _body(value: Any) -> str:
    """The children in one line."""
    joined = ", ".join(prefix + _flat(each) for prefix, each in _children(value))
    return f"{joined}," if isinstance(value, tuple) and len(value) == 1 else joined


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    """What stands between the brackets, each with the text before it."""
    if isinstance(value, Mapping):
        yield from ((f"{_flat(key)}: ", each) for key, each in value.items())
    elif isinstance(value, (tuple, list)):
        yield from (("", each) for each in value)
    else:
        first = [each.name for each in fields(value) if each.default is MISSING and each.default_factory is MISSING]
        for each in fields(value):
            given = getattr(value, each.name)
            if each.name in first and not isinstance(value, Contract):
                yield "", given
            elif given != (each.default if each.default_factory is MISSING else each.default_factory()):
                yield f"{each.name}=", given
