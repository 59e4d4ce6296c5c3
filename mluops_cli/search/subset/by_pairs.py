"""The power of cases by the pairs of classes that they have: of sizes, parameters, dtypes, values and statuses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

from generators.contracts.binding import bind
from generators.contracts.bound_case import BoundCase
from generators.operator_registry import operators
from mluops_cli.core.discovery import PlannedCase, open_case
from mluops_cli.search.fuzz.number_classes import class_of
from mluops_cli.search.subset.choice import Element, Power, estimated


def covering_power(cases: Sequence[PlannedCase]) -> Power:
    """The pairs of classes that each case has; InputError where a case can't be read."""
    power = {case.id: frozenset(_pairs(case.op, dict(_classes(case)))) for case in cases}
    return Power(power, {case.id: estimated(case.size) for case in cases}, "pairs of classes")


def _pairs(op: str, classes: dict[str, str]) -> Iterator[Element]:
    for (one, first), (other, second) in combinations(sorted(classes.items()), 2):
        yield Element(op, f"{one} x {other}", f"{one} = {first} with {other} = {second}")


def _classes(case: PlannedCase) -> Iterator[tuple[str, str]]:
    """Factor -> class of one case."""
    with open_case(case) as file:
        bound = bind(file, operators().get(file.op))
        yield "status", " or ".join(bound.expect)
        yield "faults", ", ".join(sorted(map(str, bound.faults))) or "none"
        for name, value in _numbers(bound):
            yield name, class_of(value) if isinstance(value, int) else str(value)
        for name, record in bound.records.items():
            yield f"dtype of {name}", record.dtype.name
        for origin in file.meta.origins if file.meta is not None else ():
            if origin.tensor in bound.inputs:
                yield f"values of {origin.tensor}", origin.recipe.partition(";")[0]


def _numbers(bound: BoundCase) -> Iterator[tuple[str, Any]]:
    """The parameters, of lists each entry, and the sizes: by the contract's symbols, otherwise per tensor and axis."""
    for name, value in bound.params.items():
        if isinstance(value, (tuple, list)):
            yield from ((f"{name}[{index}]", each) for index, each in enumerate(value))
        else:
            yield name, value
    if bound.operator is not None and bound.valid:
        env = bound.operator.contract.bind(bound.shapes, bound.params)
        yield from ((name, value) for name, value in env.items() if name not in bound.params)
    else:
        for name, shape in bound.shapes.items():
            yield from ((f"{name}[{axis}]", size) for axis, size in enumerate(shape))
