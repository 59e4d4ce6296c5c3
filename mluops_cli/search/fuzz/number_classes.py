"""Classes of whole numbers: those that kernels treat differently, such as powers of two and what is beside them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from random import Random
from typing import Final

_MIDDLE: Final = (16, 129)
_LARGE: Final = (130, 2049)
_HUGE: Final = (2050, 1 << 18)
INT_MAX: Final = 2**31 - 1

_POWERS: Final = tuple(2**k for k in range(2, 32))
_BESIDE: Final = frozenset(power + step for power in _POWERS for step in (-1, 1))


def class_of(number: int) -> str:
    """The name of the class that a number is in."""
    if number < -128:
        return "below -128"
    if number < 0:
        return "-128 to -1"
    if number < 4:
        return str(number)
    if number < 16:
        return "4 to 15"
    for low, high in (_MIDDLE, _LARGE):
        if number <= high:
            return f"{low} to {high}, {_kind(number)}"
    return "2050 to 2^18" if number <= _HUGE[1] else "above 2^18"


def _kind(number: int) -> str:
    if number & (number - 1) == 0:
        return "2^k"
    if number in _BESIDE:
        return "2^k ± 1"
    return "odd" if number % 2 else "even"


def _spread(low: int, high: int, count: int) -> Iterable[int]:
    """Numbers whose logarithms are evenly spread, odd and even ones in turn."""
    ratio = (high / low) ** (1 / count)
    return (min(high, int(low * ratio**step) // 2 * 2 + step % 2) for step in range(1, count))


def _members() -> dict[str, tuple[int, ...]]:
    """Class -> the numbers of it that are drawn, ascending."""
    numbers = [
        *range(-128, 2050),
        *(-(2**k) - step for k in (8, 15, 16, 20) for step in (0, 1)),
        *range(-INT_MAX - 1, -INT_MAX + 3),
        *(power + step for power in _POWERS for step in (-1, 0, 1)),
        *_spread(_HUGE[0], _HUGE[1], 60),
    ]
    found: dict[str, list[int]] = {}
    for number in sorted({number for number in numbers if number <= INT_MAX}):
        found.setdefault(class_of(number), []).append(number)
    return {name: tuple(members) for name, members in found.items()}


MEMBERS: Final = _members()
NAMES: Final = tuple(MEMBERS)


def pick(rng: Random, name: str, low: int, high: int) -> int | None:
    """A number of a class from low to high; None where it has none."""
    members = MEMBERS[name]
    first, end = bisect_left(members, low), bisect_right(members, high)
    return members[rng.randrange(first, end)] if first < end else None


def within(low: int, high: int) -> tuple[str, ...]:
    """The classes that have numbers from low to high."""
    return tuple(name for name, members in MEMBERS.items() if bisect_left(members, low) < bisect_right(members, high))
