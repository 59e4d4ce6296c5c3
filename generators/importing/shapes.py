"""The shapes of a config's entry: given, or drawn where it leaves sizes open.

A shape is a list. In a random entry each of its places is a size, [low, high] (drawn, both inclusive), or, with
cartesian true, a list of sizes of which every combination is taken; the whole shape may be {"rank": [low, high],
"dims": [low, high]}. count says how many cases are drawn (one by default), seed from what.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final

import numpy as np

from generators.contracts.model import Env, TensorSpec
from generators.data.rng import keyed_generator
from generators.expressions import parse_expression
from generators.importing.draft import as_list
from generators.operator_registry import operators
from schemas.errors import InputError, SourceLocation

Shape = tuple[int, ...]
_TRIES: Final = 1000  # draws until a case meets the operator's rules


def shapes_of(
    op: str,
    raws: Mapping[str, Sequence[Mapping[str, Any]]],
    entry: Mapping[str, Any],
    drawn: bool,
    place: SourceLocation,
) -> Iterator[list[Shape]]:
    """The shapes of all tensors, inputs first, per case; InputError where an entry gives none."""
    tensors = [raw for role in ("inputs", "outputs") for raw in raws[role]]
    for raw in tensors:
        if "shape" not in raw:
            raise InputError("a tensor has no shape", place)
    shapes = [raw["shape"] for raw in tensors]
    if not drawn or all(_is_fixed(shape) for shape in shapes):
        yield [_fixed(shape, place) for shape in shapes]
        return
    if entry.get("cartesian"):
        yield from _products(shapes, place)
        return
    rng = keyed_generator((int(entry.get("seed", 1)), op, str(place)))
    specs = _specs(op, len(raws["inputs"]), len(raws["outputs"]))
    for _ in range(int(entry.get("count", 1))):
        yield _legal(op, shapes, specs, rng, place)


def _is_fixed(shape: Any) -> bool:
    return isinstance(shape, list) and all(isinstance(size, int) for size in shape)


def _fixed(shape: Any, place: SourceLocation) -> Shape:
    sizes = as_list(shape, "shape", place)
    if not all(isinstance(size, int) and not isinstance(size, bool) and size >= 0 for size in sizes):
        raise InputError(f"shape is {shape!r}, expected a list of sizes of 0 or more", place)
    return tuple(sizes)


def _products(shapes: Sequence[Any], place: SourceLocation) -> Iterator[list[Shape]]:
    """Every combination of the sizes that are listed."""
    choices = [
        [size if isinstance(size, list) else [size] for size in as_list(shape, "shape", place)] for shape in shapes
    ]
    for combination in product(*(axis for shape in choices for axis in shape)):
        sizes = iter(combination)
        yield [_fixed([next(sizes) for _ in shape], place) for shape in choices]


def _specs(op: str, inputs: int, outputs: int) -> list[TensorSpec] | None:
    operator = operators().get(op)
    if operator is None or (len(operator.contract.inputs), len(operator.contract.outputs)) != (inputs, outputs):
        return None
    return list(operator.contract.tensors.values())


def _legal(
    op: str, shapes: Sequence[Any], specs: list[TensorSpec] | None, rng: np.random.Generator, place: SourceLocation
) -> list[Shape]:
    """Drawn shapes that meet the rules on sizes of a known operator; of another the first that are drawn."""
    for _ in range(_TRIES):
        sizes: dict[str, int] = {}
        found = []
        for index, shape in enumerate(shapes):
            names = specs[index].shape.split() if specs is not None else []
            found.append(_drawn(shape, names, sizes, rng, place))
        if specs is None:
            return found
        contract = operators()[op].contract
        env = contract.bind({spec.name: shape for spec, shape in zip(specs, found, strict=True)}, sizes)
        agree = all(contract.shape(spec.name, env) == shape for spec, shape in zip(specs, found, strict=True))
        if agree and all(_holds(rule.holds, env) for rule in contract.rules):
            return found
    raise InputError(f"no shapes that {op} accepts were found in {_TRIES} draws", place)


def _holds(rule: str, env: Env) -> bool:
    """Whether a rule holds; one that reads what isn't known yet does."""
    try:
        return bool(parse_expression(rule)(env))
    except (NameError, IndexError, TypeError, ZeroDivisionError):
        return True


def _drawn(
    shape: Any, names: Sequence[str], sizes: dict[str, int], rng: np.random.Generator, place: SourceLocation
) -> Shape:
    """One shape; places of the same name in the operator's contract get the same size."""
    if isinstance(shape, dict):
        rank = len(names) or _between(shape.get("rank", [1, 4]), rng, place)
        shape = [shape.get("dims", [1, 64])] * rank
    found = []
    for axis, size in enumerate(as_list(shape, "shape", place)):
        name = names[axis] if axis < len(names) else ""
        if name.isidentifier() and name in sizes and isinstance(size, list):
            found.append(sizes[name])
            continue
        value = _between(size, rng, place) if isinstance(size, list) else size
        if name.isidentifier():
            sizes.setdefault(name, value)
        elif name.isdecimal() and isinstance(size, list):
            value = int(name)
        found.append(value)
    return _fixed(found, place)


def _between(bounds: Any, rng: np.random.Generator, place: SourceLocation) -> int:
    low, high = _fixed(bounds, place) if isinstance(bounds, list) and len(bounds) == 2 else (1, 0)
    if low > high:
        raise InputError(f"a size is {bounds!r}, expected one or [low, high]", place)
    return int(rng.integers(low, high, endpoint=True))
