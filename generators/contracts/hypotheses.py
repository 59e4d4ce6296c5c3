"""Hypotheses on a wrong kernel: changed calls of the reference kernel that give what a kernel with one fault gives.

A kernel that swaps y and x computes from the case's inputs what the reference kernel computes from swapped ones. Which
calls there are follows from the contract: coordinates, parameters, dtypes, and the axes of its batch relation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import ml_dtypes
import numpy as np

from generators.contracts.model import Contract, Coordinate, Env
from generators.contracts.relations import take_items

Array = np.ndarray[Any, Any]

_TF32_LOST: Final = 13  # bits of a float32's mantissa that tf32 does not have


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One call: inputs and parameters; word and text name the fault.

    Calls of one text are variants of a fault, told apart by variant; it ends the sentence. A wider fault, which
    includes an earlier one of its word, comes after it.
    """

    word: str
    text: str
    inputs: Mapping[str, Array]
    params: Mapping[str, Any]
    variant: str = ""


def hypotheses(
    contract: Contract, inputs: Mapping[str, Array], params: Mapping[str, Any], env: Env
) -> Iterator[Hypothesis]:
    """All calls for the case with these inputs; env holds sizes and parameters by name (Contract.bind).

    A call may be outside the contract. Nothing for what the contract does not declare.
    """
    yield from _swapped(contract, inputs, params)
    yield from _other_ends(contract, inputs, params, env)
    yield from _rounded(inputs, params)
    yield from _of_other_items(contract, inputs, params, env)


def _swapped(contract: Contract, inputs: Mapping[str, Array], params: Mapping[str, Any]) -> Iterator[Hypothesis]:
    """Two coordinates in each other's place, then the parameters that go with them."""
    for one, other in combinations(contract.coordinates, 2):
        if one.tensor and other.tensor and _values(one, inputs).shape == _values(other, inputs).shape:
            changed = {name: inputs[name].copy() for name in (one.tensor, other.tensor)}
            _values(one, changed)[...] = _values(other, inputs)
            _values(other, changed)[...] = _values(one, inputs)
            yield Hypothesis(
                "swapped coordinates", f"coordinates {one.name} and {other.name} swapped", {**inputs, **changed}, params
            )
        pairs = [pair for pair in zip(one.parameters, other.parameters, strict=True) if set(pair) <= params.keys()]
        for chosen in [[pair] for pair in pairs] + ([pairs] if len(pairs) > 1 else []):
            exchanged = {name: params[with_] for pair in chosen for name, with_ in (pair, pair[::-1])}
            text = ", ".join(f"{first} and {second}" for first, second in chosen)
            yield Hypothesis("swapped parameters", f"{text} swapped", inputs, {**params, **exchanged})


def _values(coordinate: Coordinate, inputs: Mapping[str, Array]) -> Array:
    """The values of a coordinate, a view."""
    array = inputs[coordinate.tensor]
    return array if coordinate.column is None else array[..., coordinate.column]


def _other_ends(
    contract: Contract, inputs: Mapping[str, Array], params: Mapping[str, Any], env: Env
) -> Iterator[Hypothesis]:
    """-1 and 1 at the outer edges of the outermost pixels instead of at their centres, or the other way round.

    Centres: pixel (g + 1)(S - 1)/2. Edges: ((g + 1) S - 1)/2, which is where g S/(S - 1) is with centres.
    """
    ended = [each for each in contract.coordinates if each.ends]
    if not ended or any(env[each.size] < 2 for each in ended):
        return
    changed = {each.tensor: inputs[each.tensor].astype(np.float64) for each in ended}
    for each in ended:
        size, values = env[each.size], _values(each, changed)
        values *= size / (size - 1) if each.ends == "centres" else (size - 1) / size
    edges = ended[0].ends == "centres"
    where = "outer edges of the outermost pixels" if edges else "centres of the outermost pixels"
    text = f"-1 and 1 at the {where} (align_corners = {not edges})"
    yield Hypothesis("other corners", text, {**inputs, **changed}, params)


def _to_half(values: Array) -> Array:
    return values.astype(np.float16)


def _to_bfloat16(values: Array) -> Array:
    return values.astype(ml_dtypes.bfloat16)


def _to_tf32(values: Array) -> Array:
    """Rounded to 10 bits of mantissa, ties to even, as float32; NaN and Inf stay."""
    single = np.ascontiguousarray(values, np.float32)
    bits = single.view(np.uint32)
    even = (bits >> np.uint32(_TF32_LOST)) & np.uint32(1)
    up = bits + np.uint32((1 << (_TF32_LOST - 1)) - 1) + even
    rounded: Array = (up & ~np.uint32((1 << _TF32_LOST) - 1)).view(np.float32)
    return np.where(np.isfinite(single), rounded, single)


_ROUNDINGS: Final[Mapping[str, Callable[[Array], Array]]] = {
    "half": _to_half,
    "tf32": _to_tf32,
    "bfloat16": _to_bfloat16,
}


def _rounded(inputs: Mapping[str, Array], params: Mapping[str, Any]) -> Iterator[Hypothesis]:
    """Each input of float32 values, then all of them, rounded to a narrower dtype."""
    names = [name for name, array in inputs.items() if array.dtype == np.float32]
    for chosen in [[name] for name in names] + ([names] if len(names) > 1 else []):
        for variant, rounded in _ROUNDINGS.items():
            with np.errstate(all="ignore"):  # beyond half's range values become Inf
                changed = {name: rounded(inputs[name]).astype(np.float32) for name in chosen}
            text = f"{' and '.join(chosen)} rounded to "
            yield Hypothesis("rounded inputs", text, {**inputs, **changed}, params, variant)


def _of_other_items(
    contract: Contract, inputs: Mapping[str, Array], params: Mapping[str, Any], env: Env
) -> Iterator[Hypothesis]:
    """One input read at other items of the batch than those of the other inputs: at item 0, at a neighbour."""
    for relation in contract.relations:
        if relation.kind != "batch" or relation.within or relation.size not in env or env[relation.size] < 2:
            continue  # with within, the items of a batch are groups of those of the relation
        count = env[relation.size]
        numbers = np.arange(count)
        read = [("item 0", np.zeros_like(numbers)), ("the item before", np.roll(numbers, 1))]
        read += [("the item after", np.roll(numbers, -1))] if count > 2 else []
        for name, axis in relation.axes.items():
            for text, order in read if name in inputs else ():
                changed = {name: take_items(inputs[name], axis, count, order)}
                yield Hypothesis(
                    "mixed batch", f"{text} of {name} in place of every item's own", {**inputs, **changed}, params
                )
