"""Sizes and parameters of a call: drawn by its kind, lowered until its bytes fit, changed until no rule is broken."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from random import Random
from typing import Final

from mluops_cli.search.fuzz import number_classes
from mluops_cli.search.fuzz.call_kinds import TINY, Kind, between
from mluops_cli.search.fuzz.factors import SIZES_OFTEN, Domain
from mluops_cli.search.fuzz.numbers import Number

_BOLD: Final = (0, 0, 1, 1, 1, 2, 3)  # how many numbers of a call may be above the small ones
_BOLD_OF_PAIRS: Final = (0, 0, 0, 1)  # besides those of the pair
_NEUTRAL: Final = 0.3  # fraction of lists that make no tensor larger whose entries are all the lowest: pad 0, stride 1
_TIED: Final = 0.3  # fraction of the calls in which numbers follow others
_FOLLOWING: Final = (0, 0, 0, 1, 2, 3, 3, 4)  # how: as _follow counts
_FACTORS: Final = (1, 1, 2, 3, 4, 5, 7)
_LOOPS: Final = (16, 4096)  # so often may a kernel loop over parameters, by the call: it takes as long
_ALIKE: Final = 0.3  # fraction of the far calls that raise a number on all axes: a product of sizes may overflow too
_ALIKE_LOOPS: Final = 1 << 17  # so often may a kernel loop then
_ANY_SIZE: Final = 0.5  # fraction of them with a size anywhere below what fits: a buffer may hold any number
_BORDER: Final = (
    0.15  # fraction of the calls in which a number is as large as the rules allow: a grid full of sites, ...
)
_BORDER_MOST: Final = 1 << 18  # a border beyond is that of an integer: ends of ranges are drawn by themselves
_TRIES: Final = 8  # changes that may be tried for one rule
_NEAREST: Final = 9  # of the numbers that a size may be raised to, the largest ones

Values = dict[Number, int]


def legal_numbers(domain: Domain, rng: Random, kind: Kind, pins: Mapping[str, str]) -> Values | None:
    """A value for each number, all legal together; None where none were found. pins are classes of factors."""
    if kind.far is not None and domain.far:
        return _far(domain, rng, kind.most, *domain.far[kind.far % len(domain.far)])
    pinned = {number: pins[number.text] for number in domain.numbers if number.text in pins}
    bold = rng.sample(domain.numbers, min(len(domain.numbers), rng.choice(_BOLD_OF_PAIRS if pins else _BOLD)))
    values: Values = {}
    for number in domain.numbers:
        most = _LOOPS[1] if number in domain.loops else None
        value = number.pick(rng, pinned[number], most) if number in pinned else None
        values[number] = number.usual(rng, bold=number in bold) if value is None else value
    for name in domain.lists:
        if rng.random() < _NEUTRAL:
            values |= {each: each.low for each in domain.others if each.name == name and each not in pinned}
    held, loops = set(pinned), between(rng, _LOOPS)
    tied = _tie(domain, rng, values, held) if rng.random() < _TIED else set()
    if kind.ends and domain.others:
        for number in rng.sample(domain.others, min(len(domain.others), rng.choice((1, 1, 2)))):
            values[number] = rng.choice(number.ends)
            held.add(number)
    if not _fit(domain, rng, values, held, kind.most, loops):
        return None
    _grow(domain, rng, values, held | tied, kind.most, loops)
    if rng.random() < _BORDER:
        _to_border(domain, rng, values, held | tied, kind.most)
    return values if _repair(domain, rng, values, held, kind.most) else None


def _far(domain: Domain, rng: Random, most: int, number: Number, candidates: Sequence[int]) -> Values | None:
    """One number, or one on all axes, as large as the bytes allow: next to a power of two or not; all others small."""
    values = {
        each: min(each.high, max(each.low, rng.choice((1, 1, 1, 2, 3)))) if each.extent else each.usual(rng)
        for each in domain.numbers
    }
    raised, largest = [number], max(candidates, default=number.low)
    if rng.random() < _ALIKE:
        raised = [each for each in domain.extents if each.family == number.family]
        if number in domain.loops:
            largest = min(largest, int(_ALIKE_LOOPS ** (1 / len(raised))))

    def fits(value: int) -> bool:
        return domain.bytes({**values, **dict.fromkeys(raised, value)}) <= most

    limit = _last(fits, number.low, largest)
    fitting = [value for value in candidates if value <= limit]
    if not fitting:
        return None
    value = rng.randint((limit + 1) // 2, limit) if rng.random() < _ANY_SIZE else rng.choice(fitting[-_NEAREST:])
    values |= dict.fromkeys(raised, value)
    return values if _repair(domain, rng, values, set(raised), most) else None


def _last(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The last number from low to high up to which something holds; low where it holds for none."""
    return low + bisect_left(range(low + 1, high + 1), True, key=lambda number: not holds(number))


def _to_border(domain: Domain, rng: Random, values: Values, held: Collection[Number], most: int) -> None:
    """Raise a number until one more breaks a rule, where that is within the bytes."""
    free = [each for each in domain.numbers if each not in held and not each.words]
    if not free or domain.broken_rule(values) is not None:
        return
    number = rng.choice(free)

    def legal(value: int) -> bool:
        return domain.broken_rule({**values, number: value}) is None

    high = min(number.high, _BORDER_MOST)
    value = _last(legal, values[number], high)
    if value < high and domain.bytes({**values, number: value}) <= most:
        values[number] = value


def _tie(domain: Domain, rng: Random, values: Values, held: Collection[Number]) -> set[Number]:
    """Let one number or two follow another: equal to it, next to it, twice or half of it; often on all axes alike.

    Returns the numbers that follow, and what they follow: kernels have short cuts for a window as large as the feature,
    and the like.
    """
    free = [number for number in domain.numbers if not number.words]
    if len(free) < 2:
        return set()
    first, *others = rng.sample(free, min(len(free), rng.choice((2, 2, 3))))
    tied = set()
    for other in others:
        how = rng.choice(_FOLLOWING)
        follows = {other: first}
        if first.axis and other.axis and first.family != other.family and rng.random() < 0.5:
            follows = {each: _like(domain, first, each) for each in free if each.family == other.family}
        for each, model in follows.items():
            value = _follow(values[model], how)
            if each not in held and each.low <= value <= each.high:
                values[each] = value
                tied |= {each, model}
    return tied


def _follow(value: int, how: int) -> int:
    return (value, value - 1, value + 1, value // 2, 2 * value)[how]


def _like(domain: Domain, model: Number, entry: Number) -> Number:
    """The number of another family on the axis of a number; where there is none, the given one."""
    alike = (each for each in domain.numbers if (each.family, each.axis) == (model.family, entry.axis))
    return next(alike, model)


def _fit(domain: Domain, rng: Random, values: Values, held: Collection[Number], most: int, loops: int) -> bool:
    """Lower numbers until the tensors have at most so many bytes and kernels don't loop too often."""
    lowest = {each: value if each in held else min(value, max(1, each.low)) for each, value in values.items()}
    if domain.bytes(values | {each: lowest[each] for each in domain.extents}) > most:
        return False
    while (large := domain.bytes(values) > most) or _slow(domain, values, held, loops):
        movable = [
            each for each in (domain.extents if large else domain.loops) if each not in held and values[each] > 1
        ]
        if not movable:
            return False
        number = max(movable, key=values.__getitem__) if rng.random() < 0.5 else rng.choice(movable)
        values[number] = max(1, number.low, number.usual(rng, most=values[number] // 2, bold=values[number] > 64))
    return True


def _slow(domain: Domain, values: Values, held: Collection[Number], loops: int) -> bool:
    """Whether a kernel may loop over parameters more often than a call may; what is held may raise that to the most."""
    counts = {each: max(1, values[each]) for each in domain.loops}
    free = math.prod(count for each, count in counts.items() if each not in held)
    return free > loops or math.prod(counts.values()) > _LOOPS[1]


def _grow(domain: Domain, rng: Random, values: Values, held: Collection[Number], most: int, loops: int) -> None:
    """Raise one number or two as far as the bytes allow; of a call that isn't tiny, several."""
    rounds = 12 if most > TINY[1] else rng.choice((0, 0, 1, 1, 1, 2))
    free = [number for number in domain.extents if number not in held]
    often = [1 if number in domain.loops else SIZES_OFTEN for number in free]
    for _ in range(rounds if free else 0):
        size = domain.bytes(values)
        number = rng.choices(free, often)[0]
        now = values[number]
        if not size or (rounds > 2 and size > most / 8):
            return
        names = number_classes.within(now + 1, min(number.high, int(max(1, now) * most / size)))
        if names:
            value = number.pick(rng, rng.choice(names), int(max(1, now) * most / size))
            values[number] = now if value is None else value
            if domain.bytes(values) > most or _slow(domain, values, held, loops):
                values[number] = now


def _repair(domain: Domain, rng: Random, values: Values, held: Collection[Number], most: int) -> bool:
    """Change numbers that broken rules read until no rule is broken; whether that was possible."""
    for _ in range(2 * len(domain.numbers)):
        rule = domain.broken_rule(values)
        if rule is None:
            return True
        if not any(_mended(domain, rng, values, held, rule, most) for _ in range(_TRIES)):
            return False
    return False


def _mended(domain: Domain, rng: Random, values: Values, held: Collection[Number], rule: str, most: int) -> bool:
    """Try one change; keep it, and return True, where the rule holds then."""
    read = domain.numbers_of(rule)
    if not read:
        return False
    number = rng.choice([number for number in read if number not in held] or read)
    changed = dict(values)
    way = rng.random()
    if way < 0.3 and number.at is not None:  # a list as a whole
        like = rng.choice([each for each in read if each.at is not None])
        for entry in domain.numbers:
            if entry.name == number.name:
                changed[entry] = entry.low if like.name == number.name else values[_like(domain, like, entry)]
    elif way < 0.5:
        changed[number] = max(number.low, 1 if number.extent else 0)
    elif way < 0.8 and not number.words:  # as large as another number, or a multiple or a part of it
        other, factor = values[rng.choice(read)], rng.choice(_FACTORS)
        changed[number] = other * factor if rng.random() < 0.7 else other // factor
    else:
        changed[number] = number.usual(rng)
    legal = all(each.low <= value <= each.high for each, value in changed.items())
    if not legal or domain.breaks(changed, rule) or domain.bytes(changed) > most:
        return False
    values.update(changed)
    return True
