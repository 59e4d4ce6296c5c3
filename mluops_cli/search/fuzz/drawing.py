"""A legal call drawn from a domain, as an entry of a spec; it depends on the operator, the seed and the number alone.

Every second call starts from the next pair of classes, in an order of its own per seed: all pairs get their turn. The
bytes of its tensors stay within a budget, and what breaks a rule is changed until nothing does.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate, combinations
from random import Random
from typing import Any, Final

from mluops_cli.search.fuzz import number_classes
from mluops_cli.search.fuzz.factors import Domain, Number, domain_of
from mluops_cli.search.fuzz.value_classes import DEFAULT

SUITE: Final = "fuzz"
_ATTEMPTS: Final = 12
_PINNED: Final = 6  # attempts with the pair of classes
_TIED: Final = 0.25  # share of the calls in which two or three numbers are equal
_USUAL_VALUES: Final = 0.4  # share of the inputs with the contract's own values
_FIRST: Final = 64  # calls of an operator that are as small as can be
_SMALLEST: Final = 4 << 10  # bytes
_TINY: Final = (1 << 10, 128 << 10)
_MIDDLE: Final = (128 << 10, 2 << 20)
_PERIOD, _MIDDLE_ONES = 200, 9  # of so many calls one is large, so many are of middle size, all others tiny
_RAISED, _RAISED_TO = 0.1, 512 << 10  # share of the calls from a pair that may be larger, and how large
_FACTORS: Final = (1, 1, 2, 3, 4, 5, 7)
_NO_PAIR: Final[Mapping[str, str]] = {}

Values = dict[Number, int]


@dataclass(frozen=True)
class Drawn:
    """A call: its entry, and the class of each factor, for what was covered."""

    entry: dict[str, Any]
    classes: Mapping[str, str]

    def plain(self) -> Drawn:
        """The same call with the contract's own values."""
        inputs = {
            name: {key: each for key, each in given.items() if key != "dist"}
            for name, given in self.entry.get("inputs", {}).items()
        }
        classes = {name: DEFAULT if name.startswith("values of ") else each for name, each in self.classes.items()}
        return replace(self, entry={**self.entry, "inputs": inputs}, classes=classes)


class Pairs:
    """All pairs of classes of two factors, numbered; factors are (name, classes)."""

    def __init__(self, factors: Sequence[tuple[str, tuple[str, ...]]]) -> None:
        self._of_two = list(combinations(factors, 2))
        self._ends = list(accumulate(len(first[1]) * len(second[1]) for first, second in self._of_two))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def at(self, number: int) -> dict[str, str]:
        """Factor -> class of the two."""
        index = bisect_right(self._ends, number)
        first, second = self._of_two[index]
        rest = number - (self._ends[index - 1] if index else 0)
        return {first[0]: first[1][rest // len(second[1])], second[0]: second[1][rest % len(second[1])]}

    def start(self, seed: int, number: int) -> dict[str, str]:
        """The pair of the number-th call that starts from one: each once, then again."""
        count = len(self)
        if not count:
            return {}
        step, first = _order(seed, count)
        return self.at((first + number * step) % count)


@cache
def _order(seed: int, count: int) -> tuple[int, int]:
    """A step that meets all of so many numbers, and where it starts."""
    rng = Random(f"{seed} pairs")
    step = rng.randrange(count)
    while math.gcd(step, count) != 1:
        step += 1
    return step, rng.randrange(count)


@cache
def pairs_of(op: str) -> Pairs:
    """The pairs of classes of an operator."""
    return Pairs(domain_of(op).factors)


def draw_call(domain: Domain, seed: int, number: int, most: int) -> Drawn | None:
    """The number-th call of an operator, with tensors of at most so many bytes; None where no attempt is legal."""
    op = domain.contract.op
    for attempt in range(_ATTEMPTS):
        rng = Random(f"{seed} {op} {number} {attempt}")
        paired = number % 2 and attempt < _PINNED
        pins = pairs_of(op).start(seed, number // 2) if paired else _NO_PAIR
        size = budget(rng, number, most)
        if paired and rng.random() < _RAISED:
            size = max(size, min(most, _RAISED_TO))
        values = _values(domain, rng, size, pins)
        if values is not None:
            return _entry(domain, rng, values, pins, f"seed{seed}_{number}", seed)
    return None


def budget(rng: Random, number: int, most: int) -> int:
    """The bytes of the tensors of the number-th call of an operator."""
    place = number % _PERIOD
    if number < _FIRST:
        low, high = _SMALLEST, _SMALLEST
    elif place == 0:
        low, high = min(_MIDDLE[1], most), most
    else:
        low, high = _MIDDLE if place <= _MIDDLE_ONES else _TINY
    return min(most, int(low * (high / low) ** rng.random()))


def _values(domain: Domain, rng: Random, most: int, pins: Mapping[str, str]) -> Values | None:
    """A value for each number, all legal together; None where none were found."""
    pinned = {number: pins[number.text] for number in domain.numbers if number.text in pins}
    values: Values = {}
    for number in domain.numbers:
        value = number.pick(rng, pinned[number]) if number in pinned else None
        values[number] = number.usual(rng) if value is None else value
    if rng.random() < _TIED:
        _tie(domain, rng, values, pinned)
    if not _fit(domain, rng, values, pinned, most):
        return None
    _grow(domain, rng, values, pinned, most)
    return values if _repair(domain, rng, values, pinned, most) else None


def _tie(domain: Domain, rng: Random, values: Values, pinned: Mapping[Number, str]) -> None:
    """Make two or three numbers equal."""
    free = [number for number in domain.numbers if not number.words]
    if len(free) < 2:
        return
    first, *others = rng.sample(free, min(len(free), rng.choice((2, 2, 3))))
    for other in others:
        if other not in pinned and other.low <= values[first] <= other.high:
            values[other] = values[first]


def _fit(domain: Domain, rng: Random, values: Values, pinned: Mapping[Number, str], most: int) -> bool:
    """Lower numbers until the tensors have at most so many bytes."""
    while domain.bytes(values) > most:
        movable = [each for each in domain.numbers if each.extent and each not in pinned and values[each] > 1]
        if not movable:
            return False
        number = max(movable, key=values.__getitem__) if rng.random() < 0.5 else rng.choice(movable)
        values[number] = max(1, number.low, number.usual(rng, most=values[number] // 2))
    return True


def _grow(domain: Domain, rng: Random, values: Values, pinned: Mapping[Number, str], most: int) -> None:
    """Raise one number or two as far as the budget allows; of a call that isn't tiny, several."""
    rounds = 12 if most > _TINY[1] else rng.choice((0, 0, 1, 1, 1, 2))
    free = [number for number in domain.numbers if number.extent and number not in pinned]
    for _ in range(rounds if free else 0):
        size = domain.bytes(values)
        number = rng.choice(free)
        now = values[number]
        if not size or (rounds > 2 and size > most / 8):
            return
        names = number_classes.within(now + 1, min(number.high, int(max(1, now) * most / size)))
        if names:
            value = number.pick(rng, rng.choice(names), int(max(1, now) * most / size))
            values[number] = now if value is None else value
            if domain.bytes(values) > most:
                values[number] = now


def _repair(domain: Domain, rng: Random, values: Values, pinned: Mapping[Number, str], most: int) -> bool:
    """Change numbers that broken rules read until no rule is broken; whether that was possible."""
    for _ in range(2 * len(domain.numbers)):
        broken = domain.broken(values)
        if not broken:
            return True
        rule, read = next(iter(broken.items()))
        read = [number for number in read if number not in pinned] or read
        if not any(_mended(domain, rng, values, read, rule, most) for _ in range(8)):
            return False
    return False


def _mended(domain: Domain, rng: Random, values: Values, read: Sequence[Number], rule: str, most: int) -> bool:
    """Try one change; keep it, and return True, where the rule holds then."""
    if not read:
        return False
    number = rng.choice(read)
    changed = dict(values)
    kind = rng.random()
    if kind < 0.3 and number.at is not None:  # a list as a whole
        like = rng.choice([each for each in read if each.at is not None])
        for entry in domain.numbers:
            if entry.name == number.name:
                changed[entry] = entry.low if like.name == number.name else _entry_of(domain, values, like, entry)
    elif kind < 0.5:
        changed[number] = number.low if number.low >= 0 else 0
    elif kind < 0.8 and not number.words:  # as large as another number, or a multiple or a part of it
        other, factor = values[rng.choice(read)], rng.choice(_FACTORS)
        changed[number] = other * factor if rng.random() < 0.7 else other // factor
    else:
        changed[number] = number.usual(rng)
    legal = all(each.low <= changed[each] <= each.high for each in domain.numbers)
    if not legal or domain.bytes(changed) > most or rule in domain.broken(changed):
        return False
    values.update(changed)
    return True


def _entry_of(domain: Domain, values: Values, like: Number, entry: Number) -> int:
    """The value of another list at the place of an entry."""
    return next((values[each] for each in domain.numbers if (each.name, each.at) == (like.name, entry.at)), entry.low)


def _entry(domain: Domain, rng: Random, values: Values, pins: Mapping[str, str], name: str, seed: int) -> Drawn:
    contract = domain.contract
    classes = {number.text: number.class_of(value) for number, value in values.items()}
    sections: dict[str, dict[str, Any]] = {"sizes": {}, "params": {}, "inputs": {}, "outputs": {}}
    defaults = {each.name: each.default for each in contract.passed_parameters if each.default is not None}
    for number, value in values.items():
        section = sections["sizes" if number.name in contract.sizes else "params"]
        if number.at is not None:
            section.setdefault(number.name, []).append(value)
        elif number.low < number.high or number.name not in defaults:
            section[number.name] = number.words.get(value, value)
    dtypes: dict[str, str] = {}
    for tensor in contract.tensors.values():
        role = "inputs" if tensor in contract.inputs else "outputs"
        key = f"dtype of {tensor.name}"
        if tensor.name in domain.dtypes:
            dtype = pins.get(key) or rng.choice(domain.dtypes[tensor.name])
            classes[key] = dtype
            if dtype != tensor.dtypes[0]:
                sections[role].setdefault(tensor.name, {})["dtype"] = dtype
        else:
            dtype = dtypes.get(tensor.same_dtype_as or "", tensor.dtypes[0])
        dtypes[tensor.name] = dtype
    env = domain.env(values)
    for tensor in contract.inputs:
        makers, key = domain.values[tensor.name, dtypes[tensor.name]], f"values of {tensor.name}"
        chosen = DEFAULT if rng.random() < _USUAL_VALUES else rng.choice(tuple(makers))
        chosen = pins[key] if pins.get(key) in makers else chosen
        classes[key] = chosen
        dist = makers[chosen](rng, env)
        if dist:
            sections["inputs"].setdefault(tensor.name, {})["dist"] = dist
    entry = {"name": name, "seed": seed, **{key: given for key, given in sections.items() if given}}
    return Drawn(entry, classes)
