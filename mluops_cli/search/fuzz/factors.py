"""What an operator's contract lets vary: factors (sizes, parameters, dtypes, values), each with its classes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final

from generators.contracts import checks
from generators.contracts.model import LARGE, UNKNOWN, Contract, Env
from generators.contracts.operator import Operator
from generators.expressions import UNCOMPUTABLE, parse_expression
from generators.operator_registry import operator_named
from mluops_cli.search.fuzz.numbers import Number, contract_numbers, with_defaults
from mluops_cli.search.fuzz.value_classes import Make, value_classes
from schemas.dtypes import DTYPES
from schemas.tensor_descriptor import Descriptor

_UNCOMPUTABLE: Final = "uncomputable"  # in place of a rule
_FURTHEST: Final = 17  # the power of two up to which sizes are raised far
_FURTHEST_LOOP: Final = 15  # and parameters that kernels may loop over
SIZES_OFTEN: Final = 3  # so much more often is a size raised than such a parameter: that costs little time


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
            shapes = {name: self.contract.shape(name, env) for name in self.contract.given(env).tensors}
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
        specs = self.contract.given(env).tensors.values()
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
        return {rule: with_defaults(contract, names) for rule, names in read.items()}


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
    return Domain(operator, tuple(contract_numbers(contract)), dtypes, values)
