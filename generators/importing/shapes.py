"""The shapes of a config's entry: given, or sampled where it leaves sizes open.

A shape is a list. In a random entry each of its places is a size, [low, high] (sampled, both inclusive), or, with
cartesian true, a list of sizes of which every combination is taken; the whole shape may be {"rank": [low, high],
"dims": [low, high]}. count is how many cases are sampled, one by default; seed keys the samples.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, Final

import numpy as np

from generators.contracts.model import Env, TensorSpec
from generators.data.rng import keyed_generator
from generators.expressions import UNCOMPUTABLE, Expression, parse_expression
from generators.importing.config_models import CaseConfig, RandomShape
from generators.operator_registry import operators
from generators.parameters import as_tuples
from generators.specs.fields import MOST_CASES
from schemas.errors import InputError, SourceLocation

Shape = tuple[int, ...]
_Open = list[int | list[int]] | RandomShape
_TRIES: Final = 1000  # samples until a case satisfies the operator's rules


def shapes_of(op: str, entry: CaseConfig, random: bool, place: SourceLocation) -> Iterator[list[Shape]]:
    """The shapes of all tensors, inputs first, per case; InputError where an entry gives none."""
    shapes: list[_Open] = [tensor.shape for tensor in (*entry.inputs, *entry.outputs)]
    fixed = [_fixed(shape) for shape in shapes]
    if all(shape is not None for shape in fixed):
        yield [shape for shape in fixed if shape is not None]
        return
    if not random:
        raise InputError("a shape leaves sizes open, expected a list of sizes of 0 or more", place)
    if entry.cartesian:
        yield from _products(shapes, place)
        return
    rng = keyed_generator((entry.seed, op, str(place.key)))
    params = {**entry.proto_params, **entry.op_params}
    specs = _specs(op, params, len(entry.inputs), len(entry.outputs))
    for _ in range(entry.count):
        yield _legal(op, shapes, specs, params, rng, place)


def _fixed(shape: _Open) -> Shape | None:
    """The shape, None where it leaves sizes open."""
    if isinstance(shape, RandomShape):
        return None
    sizes = [size for size in shape if isinstance(size, int)]
    return tuple(sizes) if len(sizes) == len(shape) else None


def _products(shapes: Sequence[_Open], place: SourceLocation) -> Iterator[list[Shape]]:
    """Every combination of the sizes that are listed."""
    choices: list[list[list[int]]] = []
    for shape in shapes:
        if isinstance(shape, RandomShape):
            raise InputError("a cartesian entry lists the sizes of its shapes, it draws no rank", place)
        choices.append([size if isinstance(size, list) else [size] for size in shape])
    count = math.prod(len(sizes) for shape in choices for sizes in shape)
    if count > MOST_CASES:
        raise InputError(f"the sizes make {count} cases, expected {MOST_CASES} at most", place)
    for combination in product(*(axis for shape in choices for axis in shape)):
        sizes = iter(combination)
        yield [tuple(next(sizes) for _ in shape) for shape in choices]


def _specs(op: str, params: dict[str, Any], inputs: int, outputs: int) -> list[TensorSpec] | None:
    """The tensors of a known operator's contract, None where the entry has others."""
    operator = operators().get(op)
    contract = None if operator is None else operator.contract.given(as_tuples(params))
    if contract is None or (len(contract.inputs), len(contract.outputs)) != (inputs, outputs):
        return None
    return list(contract.tensors.values())


def _legal(
    op: str,
    shapes: Sequence[_Open],
    specs: list[TensorSpec] | None,
    params: dict[str, Any],
    rng: np.random.Generator,
    place: SourceLocation,
) -> list[Shape]:
    """Sampled shapes that satisfy a known operator's rules on sizes; of another operator the first that are sampled."""
    if specs is None:
        return [_sampled(shape, (), {}, rng, place) for shape in shapes]
    contract = operators()[op].contract
    passed = {each.name for each in contract.passed_parameters}
    given = as_tuples(params)
    for _ in range(_TRIES):
        env: Env = {name: value for name, value in given.items() if name in passed}
        found = [_sampled(shape, spec.dims, env, rng, place) for shape, spec in zip(shapes, specs, strict=True)]
        try:
            env = contract.bind({spec.name: shape for spec, shape in zip(specs, found, strict=True)}, env)
            agree = all(contract.shape(spec.name, env) == shape for spec, shape in zip(specs, found, strict=True))
        except UNCOMPUTABLE as error:
            raise InputError(f"the shapes of {op} can't be computed from its parameters: {error}", place) from None
        if agree and all(_holds(rule.holds, env) for rule in contract.rules):
            return found
    raise InputError(f"no shapes that {op} accepts were found in {_TRIES} draws", place)


def _holds(rule: str, env: Env) -> bool:
    """Whether a rule holds; one that reads what isn't known yet does."""
    try:
        return bool(parse_expression(rule)(env))
    except UNCOMPUTABLE:
        return True


def _sampled(
    shape: _Open, dims: Sequence[Expression], env: Env, rng: np.random.Generator, place: SourceLocation
) -> Shape:
    """One shape; an open size that the contract computes from what is known (another size, a parameter) is that."""
    if isinstance(shape, RandomShape):
        rank = len(dims) or _between(shape.rank, rng, place)
        shape = [shape.dims] * rank
    found = []
    for axis, size in enumerate(shape):
        expression = dims[axis] if axis < len(dims) else None
        value = size if isinstance(size, int) else _known(expression, env)
        if value is None:
            assert isinstance(size, list)
            value = _between(size, rng, place)
        if expression is not None and expression.text.isidentifier():
            env.setdefault(expression.text, value)
        found.append(value)
    return tuple(found)


def _known(expression: Expression | None, env: Env) -> int | None:
    """The size that a dim of a contract computes, None where that needs more than is known."""
    try:
        value = None if expression is None else expression(env)
    except UNCOMPUTABLE:
        return None
    return value if type(value) is int and value >= 0 else None


def _between(bounds: Sequence[int], rng: np.random.Generator, place: SourceLocation) -> int:
    low, high = bounds if len(bounds) == 2 else (1, 0)
    if low > high:
        raise InputError(f"a size is {list(bounds)!r}, expected one or [low, high]", place)
    return int(rng.integers(low, high, endpoint=True))
