"""What an operator's contract lets vary: factors (sizes, parameters, dtypes, values), each with its classes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Final

from generators.contracts.checks import violations
from generators.contracts.model import LARGE, UNKNOWN, Contract, Env, Parameter, Shape, TensorSpec
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
_OF_OTHERS: Final = {"0": 8, "1": 12, "2": 6, "3": 5, "4 to 15": 5, "-128 to -1": 2}
_MIDDLE, _BIG, _RARE = 2, 1, 0  # of extents of 16 to 129, 130 to 2049, and beyond: growth adds the large ones


@dataclass(frozen=True)
class Number:
    """A size, a parameter, or an entry of a parameter that is a list.

    extent: it makes tensors larger.
    """

    name: str
    at: int | None  # entry of a list
    low: int
    high: int
    extent: bool
    words: Mapping[int, str] = field(default_factory=dict, hash=False)  # of a parameter with choices

    @property
    def text(self) -> str:
        """As people write it: h_mask, pad[0]."""
        return self.name if self.at is None else f"{self.name}[{self.at}]"

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

    def usual(self, rng: Random, most: int | None = None) -> int:
        """A value as it is drawn where nothing asks for a certain one; small ones are frequent."""
        if self.words:
            return rng.choice(tuple(self.words))
        names, weights = _usual(self)
        for _ in range(4):
            value = self.pick(rng, rng.choices(names, weights)[0], most)
            if value is not None:
                return value
        return self.low if most is None else max(self.low, min(most, self.low))


@cache
def _usual(number: Number) -> tuple[Sequence[str], Sequence[int]]:
    def weight(name: str) -> int:
        known = (_OF_EXTENTS if number.extent else _OF_OTHERS).get(name)
        if known is not None:
            return known
        return _MIDDLE if name.startswith("16 ") else _BIG if name.startswith("130 ") else _RARE

    names = number.classes
    weights = [weight(name) for name in names]
    return names, weights if any(weights) else [1] * len(weights)


@dataclass(frozen=True, eq=False)
class Domain:
    """The legal calls of an operator, as far as its contract tells them.

    dtypes: of tensors that may have several; values: of inputs, per dtype.
    """

    operator: Operator
    numbers: tuple[Number, ...]
    dtypes: Mapping[str, tuple[str, ...]]
    values: Mapping[tuple[str, str], Mapping[str, Make]]
    _names: dict[str, frozenset[str]] = field(default_factory=dict)

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

    def shapes(self, env: Env) -> dict[str, Shape]:
        """The shapes of all tensors; UNKNOWN stands for sizes that depend on the data."""
        return {name: self.contract.shape(name, env) for name in self.contract.tensors}

    def bytes(self, values: Mapping[Number, int]) -> float:
        """Bytes of all tensors, in their widest dtypes; infinite where there is no shape or a tensor is large.

        A size of 0 counts as 1: kernels may loop over the other sizes all the same.
        """
        try:
            shapes = self.shapes(self.env(values))
        except UNCOMPUTABLE:
            return math.inf
        total = 0.0
        for name, shape in shapes.items():
            elements = math.prod(max(size, 1) for size in shape)
            if elements >= LARGE or min(shape, default=0) < UNKNOWN:
                return math.inf
            total += elements * max(DTYPES[dtype].width for dtype in self.contract.tensors[name].dtypes)
        return total

    def broken(self, values: Mapping[Number, int]) -> dict[str, list[Number]]:
        """Rule -> the numbers that it reads, of each rule that a call with these values breaks."""
        try:
            env = self.env(values)
            shapes = self.shapes(env)
        except UNCOMPUTABLE:
            return {"uncomputable": list(values)}
        descriptors = {
            name: Descriptor(tensor.layout, tensor.dtypes[0], shapes[name])
            for name, tensor in self.contract.tensors.items()
        }
        return {
            violation.rule: self._numbers_of(violation.rule)
            for violation in violations(self.contract, descriptors, env, env)
        }

    def _numbers_of(self, rule: str) -> list[Number]:
        if not self._names:
            self._names.update(_names_of_rules(self.contract))
        names = self._names.get(rule, frozenset(number.name for number in self.numbers))
        return [number for number in self.numbers if number.name in names]


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
        if not isinstance(parameter.default, str):  # one that follows from the others is left to do so
            yield from _of_parameter(parameter, extent=parameter.name in extents)


def _of_parameter(parameter: Parameter, *, extent: bool) -> Iterator[Number]:
    words = {number: word for word, number in (parameter.choices or {}).items()}
    low = min(words, default=0) if parameter.minimum is None else parameter.minimum
    high = max(words, default=INT_MAX) if parameter.maximum is None else parameter.maximum
    for at in [None] if parameter.length is None else range(parameter.length):
        yield Number(parameter.name, at, low, high, extent and not words, words)


def _read(tensor: TensorSpec) -> Iterable[str]:
    return frozenset().union(*(expression.names for expression in tensor.dims))


def _with_defaults(contract: Contract, names: Iterable[str]) -> frozenset[str]:
    """The names, and those that the defaults of these parameters read, and so on."""
    defaults = {each.name: each.default for each in contract.passed_parameters if isinstance(each.default, str)}
    found, new = set(), set(names)
    while new:
        found |= new
        new = {name for each in new if each in defaults for name in parse_expression(defaults[each]).names} - found
    return frozenset(found)


def _names_of_rules(contract: Contract) -> dict[str, frozenset[str]]:
    """Rule, as a violation names it -> the sizes and parameters that it reads."""
    read = {rule.text: parse_expression(rule.holds).names for rule in contract.rules}
    read |= {parameter.name: frozenset((parameter.name,)) for parameter in contract.passed_parameters}
    read |= {f"{size} = 0": frozenset((size,)) for size in contract.zero_elements}
    return {rule: _with_defaults(contract, names) for rule, names in read.items()}
