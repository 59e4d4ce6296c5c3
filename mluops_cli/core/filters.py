"""`-k EXPR`: and, or, not and parentheses over substrings of the case id; `--shard I/N`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from schemas.errors import InputError

T = TypeVar("T")
Matcher = Callable[[str], bool]
_TOKEN: Final = re.compile(r"\s*([()]|[^\s()]+)")


def parse_keywords(text: str) -> Matcher:
    """Return a test of case ids that ignores upper and lower case; InputError for a wrong expression."""
    tokens = _TOKEN.findall(text.lower())
    matcher, rest = _either(tokens, text)
    if rest:
        raise _wrong(text, f"{rest[0]!r} is out of place")
    return lambda case: matcher(case.lower())


def _either(tokens: list[str], text: str) -> tuple[Matcher, list[str]]:
    left, tokens = _both(tokens, text)
    while tokens[:1] == ["or"]:
        right, tokens = _both(tokens[1:], text)
        left = (lambda a, b: lambda case: a(case) or b(case))(left, right)
    return left, tokens


def _both(tokens: list[str], text: str) -> tuple[Matcher, list[str]]:
    left, tokens = _negated(tokens, text)
    while tokens[:1] == ["and"]:
        right, tokens = _negated(tokens[1:], text)
        left = (lambda a, b: lambda case: a(case) and b(case))(left, right)
    return left, tokens


def _negated(tokens: list[str], text: str) -> tuple[Matcher, list[str]]:
    if not tokens or tokens[0] in (")", "and", "or"):
        raise _wrong(text, "a part of the case id is missing")
    first, *rest = tokens
    if first == "not":
        inner, rest = _negated(rest, text)
        return (lambda case: not inner(case)), rest
    if first == "(":
        inner, rest = _either(rest, text)
        if rest[:1] != [")"]:
            raise _wrong(text, "a ) is missing")
        return inner, rest[1:]
    return (lambda case: first in case), rest


def _wrong(text: str, what: str) -> InputError:
    return InputError(f"-k {text!r}: {what}; expected parts of case ids joined by and, or, not, ( )")


def parse_shard(text: str) -> tuple[int, int]:
    """Return (I, N) of `I/N` with I from 1 to N; InputError for anything else."""
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise InputError(f"--shard {text!r}: expected I/N with I from 1 to N, such as 1/4")
    return int(match[1]), int(match[2])


def is_partial(part: str) -> bool:
    """Return whether `I/N`, empty for no --shard, is less than all cases."""
    return bool(part) and parse_shard(part)[1] > 1


def shard(cases: Sequence[T], index: int, count: int, weight: Callable[[T], int], name: Callable[[T], str]) -> list[T]:
    """Return the cases of shard index (from 1) of count, in their order."""
    chosen = {name(case) for case in partition(cases, count, weight, name)[index - 1]}
    return [case for case in cases if name(case) in chosen]


def partition(cases: Sequence[T], count: int, weight: Callable[[T], int], name: Callable[[T], str]) -> list[list[T]]:
    """Return the cases in count parts of about equal weight: the heaviest first, each into the lightest part so far.

    Every case is in exactly one part, and the same cases always give the same parts.
    """
    loads = [0] * count
    parts: list[list[T]] = [[] for _ in range(count)]
    for case in sorted(cases, key=lambda case: (-weight(case), name(case))):
        lightest = loads.index(min(loads))
        loads[lightest] += max(1, weight(case))
        parts[lightest].append(case)
    return parts
