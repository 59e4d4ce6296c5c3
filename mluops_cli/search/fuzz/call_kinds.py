"""What kind of call the number-th of an operator is: how many bytes, and which numbers are far from small."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

_FIRST: Final = 64  # calls of an operator that are as small as can be
_SMALLEST: Final = 4 << 10  # bytes
TINY: Final = (1 << 10, 128 << 10)
_MIDDLE: Final = (128 << 10, 2 << 20)
_FAR: Final = (512 << 10, 24 << 20)
_LARGE_EVERY, _MIDDLE_EVERY = 200, 20  # of so many calls one is large, of middle size
_FAR_EVERY, _FAR_AT = 30, (2, 22)  # of so many calls some raise a number far, at these places
_ENDS_AT: Final = 16  # and here one has numbers at the ends of their range
_RAISED, _RAISED_TO = 0.1, 512 << 10  # fraction of the calls from a pair that may be larger, and how large


@dataclass(frozen=True, slots=True)
class Kind:
    """What kind of call it is.

    most: bytes of its tensors. paired: it starts from a pair of classes. far: one number that makes tensors larger, of
    those numbers this one in turn, is raised as far as the bytes allow while all others stay small. ends: one number or
    two that make no tensor larger are at the ends of their range, or beside the limits of narrow integers.
    """

    most: int
    paired: bool = False
    far: int | None = None
    ends: bool = False


def kind_of(rng: Random, number: int, most: int) -> Kind:
    """The kind of the number-th call of an operator, whose tensors may have so many bytes."""
    paired = number % 2 == 1
    if number < _FIRST:
        return Kind(min(most, _SMALLEST), paired)
    if paired:
        size = between(rng, TINY)
        return Kind(min(most, max(size, _RAISED_TO) if rng.random() < _RAISED else size), paired)
    if number % _LARGE_EVERY == 0:
        return Kind(between(rng, (min(_MIDDLE[1], most), most)))
    place = number % _FAR_EVERY
    if place in _FAR_AT:
        far = number // _FAR_EVERY * len(_FAR_AT) + _FAR_AT.index(place)
        return Kind(min(most, between(rng, _FAR)), far=far)
    if place == _ENDS_AT:
        return Kind(min(most, between(rng, TINY)), ends=True)
    return Kind(min(most, between(rng, _MIDDLE if number % _MIDDLE_EVERY == 0 else TINY)))


def between(rng: Random, ends: tuple[int, int]) -> int:
    """A number from low to high; the logarithms are evenly spread."""
    low, high = ends
    return int(low * (high / low) ** rng.random())
