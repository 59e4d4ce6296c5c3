"""The numbers that a contract lets vary: sizes, parameters, and the entries of parameters that are lists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from random import Random
from typing import Final

from generators.contracts.model import Contract, Parameter, TensorSpec
from generators.expressions import parse_expression
from mluops_cli.search.fuzz import number_classes
from mluops_cli.search.fuzz.number_classes import INT_MAX
from schemas.status import SUCCESS

# Class -> how often it is drawn where nothing else asks for one: of what makes tensors larger, and of other numbers.
_OF_EXTENTS: Final = {"0": 1, "1": 5, "2": 5, "3": 6, "4 to 15": 12}
_OF_OTHERS: Final = {"0": 8, "1": 12, "2": 6, "3": 5, "4 to 15": 8, "-128 to -1": 2}
_BOLD: Final = {"16 to 129": 2, "130 to 2049": 1}  # of numbers above the small ones, by the range of a class
_OF_AXIS: Final = re.compile(r"(?<![^_])[dhwxyz](?![^_])|[DHW]$")  # in a name: what tells its axis
_WIDTHS: Final = (15, 16, 30, 31)  # bits of numbers that a kernel may keep in too narrow a type


@dataclass(frozen=True, eq=False)  # hashed by identity, often
class Number:
    """A size, a parameter, or an entry of a parameter that is a list.

    extent: it makes tensors larger.
    """

    name: str
    at: int | None  # entry of a list
    low: int
    high: int
    extent: bool
    words: Mapping[int, str] = field(default_factory=dict)  # of a parameter with choices

    @property
    def text(self) -> str:
        """As people write it: h_mask, pad[0]."""
        return self.name if self.at is None else f"{self.name}[{self.at}]"

    @cached_property
    def family(self) -> str:
        """What it shares with the same number of the other axes: h_mask and w_mask, H and W, entries of a list."""
        return self.name if self.at is not None else _OF_AXIS.sub("*", self.name)

    @cached_property
    def axis(self) -> str:
        """Its axis, as its name or its place in a list tells it; empty where neither does."""
        found = _OF_AXIS.search(self.name)
        return str(self.at) if self.at is not None else found[0].lower() if found else ""

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of its classes."""
        return tuple(self.words.values()) or number_classes.within(self.low, self.high)

    def class_of(self, value: int) -> str:
        """The class of a value."""
        return self.words[value] if self.words else number_classes.class_of(value)

    def pick(self, rng: Random, name: str, most: int | None = None) -> int | None:
        """A value of a class, no larger than most; None where there is none."""
        if self.words:
            return next(value for value, word in self.words.items() if word == name)
        return number_classes.pick(rng, name, self.low, self.high if most is None else min(most, self.high))

    def usual(self, rng: Random, most: int | None = None, *, bold: bool = False) -> int:
        """A value as it is drawn where nothing asks for a certain one: small; bold: above the small ones."""
        if self.words:
            return rng.choice(tuple(self.words))
        names, weights = self._bold if bold else self._small
        for _ in range(4):
            value = self.pick(rng, rng.choices(names, cum_weights=weights)[0], most)
            if value is not None:
                return value
        return self.low if most is None else max(self.low, min(most, self.low))

    @cached_property
    def _small(self) -> tuple[Sequence[str], Sequence[int]]:
        known = _OF_EXTENTS if self.extent else _OF_OTHERS
        return self._weighted([known.get(name, 0) for name in self.classes])

    @cached_property
    def _bold(self) -> tuple[Sequence[str], Sequence[int]]:
        return self._weighted([_BOLD.get(name.partition(",")[0], 0) for name in self.classes])

    def _weighted(self, weights: Sequence[int]) -> tuple[Sequence[str], Sequence[int]]:
        """The classes and the sums of their weights; all are alike where none has a weight."""
        return self.classes, tuple(accumulate(weights if any(weights) else [1] * len(weights)))

    def far(self, furthest: int) -> tuple[int, ...]:
        """Powers of two up to this one, and what is beside them, that it may be raised to."""
        found = (2**power + step for power in range(7, furthest + 1) for step in (-1, 0, 1))
        return tuple(value for value in found if self.low <= value <= self.high)

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """The ends of its range, and what lies beside the limits of narrow integers."""
        limits = {sign * 2**bits + step for bits in _WIDTHS for sign in (-1, 1) for step in (-1, 0, 1)}
        ends = {self.low + step for step in range(3)} | {self.high - step for step in range(3)}
        return tuple(sorted(value for value in limits | ends if self.low <= value <= self.high))


def contract_numbers(contract: Contract) -> Iterator[Number]:
    """The numbers of a contract: its sizes, then its parameters."""
    extents = with_defaults(contract, [name for tensor in contract.tensors.values() for name in _read(tensor)])
    for size in contract.sizes:
        if size not in contract.data_sizes:
            low = 0 if contract.zero_elements.get(size) == SUCCESS else 1
            yield Number(size, None, low, INT_MAX, extent=True)
    dims = {dim.text for tensor in contract.tensors.values() for dim in tensor.dims}
    for parameter in contract.passed_parameters:
        # One that follows from the others is left to do so unless it is a dim, as are lists whose length does; C floats
        # and texts keep their defaults.
        follows = parameter.follows and parameter.name not in dims
        if not (follows or isinstance(parameter.length, str)) and parameter.kind in ("int", "bool"):
            yield from _of_parameter(parameter, extent=parameter.name in extents)


def _of_parameter(parameter: Parameter, *, extent: bool) -> Iterator[Number]:
    words = {number: word for word, number in (parameter.choices or {}).items()}
    low = min(words, default=0) if parameter.minimum is None else int(parameter.minimum)
    most = 1 if parameter.kind == "bool" else INT_MAX
    high = max(words, default=most) if parameter.maximum is None else int(parameter.maximum)
    for at in range(parameter.length) if isinstance(parameter.length, int) else [None]:
        yield Number(parameter.name, at, low, high, extent and not words, words)


def _read(tensor: TensorSpec) -> Iterable[str]:
    return frozenset().union(*(expression.names for expression in tensor.dims))


def with_defaults(contract: Contract, names: Iterable[str]) -> frozenset[str]:
    """The names, and those that the defaults of these parameters read, and so on."""
    defaults = {each.name: each.default for each in contract.passed_parameters if each.follows}
    found, new = set(), set(names)
    while new:
        found |= new
        new = {name for each in new if each in defaults for name in parse_expression(defaults[each]).names} - found
    return frozenset(found)
