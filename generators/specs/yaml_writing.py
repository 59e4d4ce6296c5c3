"""Specs as text: entries of a suite, values in YAML's flow style, comments."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

_BARE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_WORDS: Final = ("true", "false", "null", "True", "False", "Null", "TRUE", "FALSE", "NULL")


def flow(value: Any) -> str:
    """A value in YAML's flow style."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{flow(key)}: {flow(each)}" for key, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(flow, value)) + "]"
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, float):
        return {math.inf: ".inf", -math.inf: "-.inf"}.get(value, ".nan" if math.isnan(value) else repr(value))
    if isinstance(value, str):
        plain = _BARE.fullmatch(value) and value not in _WORDS
        return value if plain else json.dumps(value, ensure_ascii=False)
    return str(value)


def comment_line(text: str) -> str:
    """A comment of one line: whatever names hold, it ends where the line ends."""
    return f"    # {''.join(each if each.isprintable() else '?' for each in text)}"


def entry_lines(name: str, entry: Mapping[str, Any]) -> Iterator[str]:
    """An entry of a suite; entry holds everything but the name."""
    yield f"    - name: {flow(name)}"
    for key, value in entry.items():
        if key in ("inputs", "outputs") and value:
            yield f"      {key}:"
            yield from (f"        {tensor}: {flow(described)}" for tensor, described in value.items())
        else:
            yield f"      {key}: {flow(value)}"
