"""What an operator's contract lets vary: factors (sizes, parameters, dtypes, values), each with its classes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import accumulate
from random import Random
from typing import Final

from generators.contracts import checks
from generators.contracts.model import LARGE, UNKNOWN, Contract, Env, Parameter, TensorSpec
from generators.contracts.operator import Operator
from generators.expressions import UNCOMPUTABLE, parse_expression
from generators.operator_registry import operator_named
from mluops_cli.search.fuzz import number_classes
from mluops_cli.search.fuzz.number_classes import INT_MAX
from mluops_cli.search.fuzz.value_classes import Make, value_classes
from schemas.dtypes import DTYPES
from schemas.status import SUCCESS
from schemas.tensor_descriptor import Descriptor

# Class -> how often it is drawn where nothing else asks for one: of what makes tensors larger, and of other numbers.
_OF_EXTENTS: Final = {"0": 1, "1": 5, "2": 5, "3": 6, "4 to 15": 12}
_OF_OTHERS: Final = {"0": 8, "1": 12, "2": 6, "3": 5, "4 to 15": 8, "-128 to -1": 2}
_BOLD: Final = {"16 to 129": 2, "130 to 2049": 1}  # of numbers above the small ones, by the range of a class
_UNCOMPUTABLE: Final = "uncomputable"  # in place of a rule
_FURTHEST: Final = 17  # the power of two up to which sizes are raised far
_FURTHEST_LOOP: Final = 15  # and parameters that kernels may loop over
SIZES_OFTEN: Final = 3  # so much more often is a size raised than such a parameter: that costs little time
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


@dataclass(frozen=True, eq=False)
class Domain:
    """The legal calls of an operator, as far as its contract tells them.

    dtypes: of tensors that may have several; values: of inputs, per dtype.
    """

    operator: Operator
    numbers: tuple[Number, ...]
    dtypes: Mapping[str, tuple[str, ...]]
    values: Mapping[tuple[str, str], Mapping[str, Make]]

    @property
    def contract(self) -> Contract:
        """The operator's contract."""
        return self.operator.contract

    @property
    def factors(self) -> list[tuple[str, tuple[str, ...]]]:
        """(name, classes) of everything that varies; a factor of one class doesn't."""
        values = [
            (
                f"values of {tensor.name}",
                tuple(dict.fromkeys(name for dtype in tensor.dtypes for name in self.values[tensor.name, dtype])),
            )
            for tensor in self.contract.inputs
        ]
        numbers = [(number.text, number.classes) for number in self.numbers]
        dtypes = [(f"dtype of {tensor}", dtypes) for tensor, dtypes in self.dtypes.items()]
        return [factor for factor in (*numbers, *dtypes, *values) if len(factor[1]) > 1]

    @cached_property
    def extents(self) -> tuple[Number, ...]:
        """The numbers that make tensors larger."""
        return tuple(number for number in self.numbers if number.extent)

    @cached_property
    def loops(self) -> tuple[Number, ...]:
        """The parameters that make tensors larger beside sizes, such as a window's: kernels may loop over them."""
        return tuple(
            number for number in self.extents if self.contract.sizes and number.name not in self.contract.sizes
        )

    @cached_property
    def far(self) -> tuple[tuple[Number, tuple[int, ...]], ...]:
        """What is raised far, in turn, and how far: sizes more often than the parameters beside them."""
        sizes = [(each, each.far(_FURTHEST)) for each in self.extents if each not in self.loops]
        return (*sizes * SIZES_OFTEN, *((each, each.far(_FURTHEST_LOOP)) for each in self.loops))

    @cached_property
    def others(self) -> tuple[Number, ...]:
        """The numbers that don't; parameters with choices are left out."""
        return tuple(number for number in self.numbers if not number.extent and not number.words)

    @cached_property
    def lists(self) -> tuple[str, ...]:
        """The parameters among them that are lists."""
        return tuple(dict.fromkeys(number.name for number in self.others if number.at is not None))

    def env(self, values: Mapping[Number, int]) -> Env:
        """Sizes and parameters by name, defaults included; UNCOMPUTABLE where one has no value."""
        given: Env = {}
        lists: dict[str, list[int]] = {}
        for number, value in values.items():
            if number.at is None:
                given[number.name] = value
            else:
                lists.setdefault(number.name, []).append(value)
        given |= {name: tuple(entries) for name, entries in lists.items()}
        return self.contract.bind({}, given)

    @cached_property
    def _widths(self) -> dict[str, float]:
        """Bytes of an element of each tensor, in its widest dtype."""
        return {name: max(DTYPES[each].width for each in spec.dtypes) for name, spec in self.contract.tensors.items()}

    def bytes(self, values: Mapping[Number, int]) -> float:
        """Bytes of all tensors, in their widest dtypes; infinite where there is no shape or a tensor is large.

        A size of 0 counts as 1: kernels may loop over the other sizes all the same.
        """
        try:
            env = self.env(values)
            shapes = {name: self.contract.shape(name, env) for name in self.contract.tensors}
        except UNCOMPUTABLE:
            return math.inf
        total = 0.0
        for name, shape in shapes.items():
            elements = math.prod(max(size, 1) for size in shape)
            if elements >= LARGE or min(shape, default=0) < UNKNOWN:
                return math.inf
            total += elements * self._widths[name]
        return total

    def broken_rule(self, values: Mapping[Number, int]) -> str | None:
        """A rule that a call with these values breaks; None where it is legal."""
        try:
            env = self.env(values)
            tensors = self._tensors(env)
        except UNCOMPUTABLE:
            return _UNCOMPUTABLE
        return None if checks.sound(self.contract, tensors, env) else checks.broken_rule(self.contract, tensors, env)

    def breaks(self, values: Mapping[Number, int], rule: str) -> bool:
        """Whether a call with these values breaks this rule."""
        try:
            env = self.env(values)
            return checks.breaks(self.contract, rule, self._tensors(env), env)
        except UNCOMPUTABLE:
            return True

    def _tensors(self, env: Env) -> list[Descriptor]:
        """The descriptors of all tensors, with their first dtypes."""
        specs = self.contract.tensors.values()
        return [Descriptor(spec.layout, spec.dtypes[0], self.contract.shape(spec.name, env)) for spec in specs]

    def numbers_of(self, rule: str) -> list[Number]:
        """The numbers that a rule reads, all where that is unknown."""
        names = self._names_of_rules.get(rule)
        return [number for number in self.numbers if names is None or number.name in names]

    @cached_property
    def _names_of_rules(self) -> dict[str, frozenset[str]]:
        """Rule, as a violation names it -> the sizes and parameters that it reads."""
        contract = self.contract
        read = {rule.text: parse_expression(rule.holds).names for rule in contract.rules}
        read |= {parameter.name: frozenset((parameter.name,)) for parameter in contract.passed_parameters}
        read |= {f"{size} = 0": frozenset((size,)) for size in contract.zero_elements}
        return {rule: _with_defaults(contract, names) for rule, names in read.items()}


@cache
def domain_of(op: str) -> Domain:
    """The domain of an operator; InputError where it is unknown."""
    operator = operator_named(op)
    contract = operator.contract
    dtypes = {
        tensor.name: tensor.dtypes
        for tensor in contract.tensors.values()
        if len(tensor.dtypes) > 1 and tensor.same_dtype_as is None
    }
    values = {
        (tensor.name, dtype): value_classes(contract, tensor, dtype)
        for tensor in contract.inputs
        for dtype in tensor.dtypes
    }
    return Domain(operator, tuple(_numbers(contract)), dtypes, values)


def _numbers(contract: Contract) -> Iterator[Number]:
    extents = _with_defaults(contract, [name for tensor in contract.tensors.values() for name in _read(tensor)])
    for size in contract.sizes:
        if size not in contract.data_sizes:
            low = 0 if contract.zero_elements.get(size) == SUCCESS else 1
            yield Number(size, None, low, INT_MAX, extent=True)
    for parameter in contract.passed_parameters:
        # One that follows from the others is left to do so, as are lists whose length does; C floats and texts keep
        # their defaults.
        if not (parameter.follows or isinstance(parameter.length, str)) and parameter.kind in ("int", "bool"):
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


def _with_defaults(contract: Contract, names: Iterable[str]) -> frozenset[str]:
    """The names, and those that the defaults of these parameters read, and so on."""
    defaults = {each.name: each.default for each in contract.passed_parameters if each.follows}
    found, new = set(), set(names)
    while new:
        found |= new
        new = {name for each in new if each in defaults for name in parse_expression(defaults[each]).names} - found
    return frozenset(found)
