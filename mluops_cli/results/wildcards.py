"""Patterns of case ids, implementations and platforms: `*` is any text, `?` any one character, the rest is literal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fnmatch import translate
from functools import cache
from typing import Final, Generic, TypeVar

Item = TypeVar("Item")

_WILDCARD: Final = re.compile(r"[*?]")


def matches(text: str, pattern: str) -> bool:
    """Whether the pattern matches the whole text. Unlike in a shell, `[1]` is literal: case ids contain brackets."""
    return _compiled(pattern).fullmatch(text) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern.replace("[", "[[]")))


class PatternTable(Generic[Item]):
    """Items found by their pattern, in a time that hardly depends on how many there are.

    A pattern is tried only on a text that contains one of its literal pieces: the piece that the fewest other patterns
    have.
    """

    def __init__(self, items: Sequence[Item], pattern_of: Callable[[Item], str]) -> None:
        self._by_piece: dict[int, dict[str, list[tuple[int, str, Item]]]] = {}  # length of the piece -> piece
        pieces = [set(_WILDCARD.split(pattern_of(item))) for item in items]
        shared = Counter(piece for each in pieces for piece in each)
        for number, (item, own) in enumerate(zip(items, pieces, strict=True)):
            rarest = min(own, key=lambda piece: (not piece, shared[piece], -len(piece), piece))
            same_length = self._by_piece.setdefault(len(rarest), {})
            same_length.setdefault(rarest, []).append((number, pattern_of(item), item))

    def find(self, text: str) -> list[Item]:
        """The items whose pattern matches the text, in the order in which they were given."""
        found = [entry for entry in self.candidates(text) if matches(text, entry[1])]
        return [item for _, _, item in sorted(found, key=lambda entry: entry[0])]

    def candidates(self, text: str) -> Iterator[tuple[int, str, Item]]:
        """(position, pattern, item) of those whose piece the text contains."""
        for length, by_piece in self._by_piece.items():
            pieces = {text[start : start + length] for start in range(len(text) - length + 1)}
            for piece in by_piece.keys() & pieces:
                yield from by_piece[piece]
