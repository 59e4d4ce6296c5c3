"""Words of messages: suggestions for a misspelt name, numbers with their nouns."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`: did you mean 'x'?` for the nearest known name, else `: expected one of ...`; empty where nothing is known."""
    names = sorted(known)
    near = get_close_matches(name, names, n=1)
    if near:
        return f": did you mean {near[0]!r}?"
    return f": expected one of {', '.join(names)}" if names else ""


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: 1 case, 2 cases. plural: where it isn't the noun with an s."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"
