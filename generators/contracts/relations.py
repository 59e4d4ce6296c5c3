"""Relations between the outputs of an operator for related inputs, as data, and the related inputs.

They need no baseline: an implementation's outputs for one call are held against its own outputs for another. They find
a fault that kernel and baseline share.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np

Array = np.ndarray[Any, Any]

FACTOR: Final = 16  # of scaling: a power of two, so that no product or sum is rounded otherwise
_FLOATING: Final = "fcV"  # kinds of dtypes; V: bfloat16 and others of ml_dtypes
_ALONE: Final = 4  # items of a batch that are computed alone, spread evenly


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation that the outputs of a correct implementation keep.

    kind is one of

    - batch: an item computed alone gives what it gives within the batch.
    - permutation: items in another order give outputs in that order; an output that has no such axis stays as it is.
    - scaling: floating outputs are linear in the input `linear`: 16 times the input gives 16 times the output.
    - zero: where the input `linear` is zero, floating outputs are zero.
    - adjoint: the operator named `adjoint` is the transpose of this one as a map from the input `linear` to the only
      output: <output, z> = <input, adjoint(z)> for any z. Parameters and the other inputs are shared.

    size names the size or parameter that counts the items, axes the axis of each tensor along which they lie: an item
    takes an equal part of the axis, so many elements in a row. within (permutation only): a size; the items lie in so
    many groups of equal length, and keep their group. columns: the column (of the last axis) of a tensor that holds the
    number of the item, or a negative one; where an input has it, its rows are the items of a batch.
    """

    name: str
    kind: Literal["batch", "permutation", "scaling", "zero", "adjoint"]
    size: str = ""
    axes: Mapping[str, int] = field(default_factory=dict)
    within: str = ""
    columns: Mapping[str, int] = field(default_factory=dict)
    linear: str = ""
    adjoint: str = ""


@dataclass(frozen=True, slots=True)
class RelatedCall:
    """Inputs and parameters that are related to those of a case, and what becomes of its outputs.

    text names the difference. item is the number of the item that is computed alone, None for another relation.
    """

    relation: Relation
    text: str
    inputs: Mapping[str, Array]
    params: Mapping[str, Any]
    count: int = 1
    order: Array | None = None  # the items of the call, in their order
    item: int | None = None

    def moved(self, name: str, array: Array) -> Array:
        """What becomes of an output of the case, or of its error bound, by the choice and the order of items."""
        axis = self.relation.axes.get(name)
        if self.order is None or axis is None or not array.ndim:
            return array
        return take_items(array, axis, self.count, self.order)

    def expected(self, name: str, array: Array) -> Array:
        """The output that the call must give, from that of the case."""
        if self.relation.linear and array.dtype.kind in _FLOATING:
            with np.errstate(all="ignore"):
                scaled: Array = array * array.dtype.type(FACTOR)
            return scaled if self.relation.kind == "scaling" else np.zeros_like(array)
        array, column = self.moved(name, array), self.relation.columns.get(name)
        if column is not None and self.item is not None:
            array = array.copy()
            array[..., column] -= np.where(array[..., column] >= 0, self.item, 0).astype(array.dtype)
        return array

    def shape(self, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of a tensor of this call, from that of the case."""
        axis = self.relation.axes.get(name)
        if axis is None or self.order is None:
            return shape
        return (*shape[:axis], shape[axis] // self.count * len(self.order), *shape[axis + 1 :])


def take_items(array: Array, axis: int, count: int, order: Array) -> Array:
    """The chosen ones of count items, each an equal part of an axis, in this order."""
    length = array.shape[axis] // count
    taken: Array = np.take(array, (order[:, None] * length + np.arange(length)).reshape(-1), axis)
    return taken


def related_calls(
    relation: Relation, inputs: Mapping[str, Array], params: Mapping[str, Any], env: Mapping[str, Any], seed: int
) -> Iterator[RelatedCall]:
    """The calls by which a relation is tried; none where the case is too small, or an input too large to be scaled.

    An adjoint is another operator and has none here.

    env: sizes and parameters by name (Contract.bind). seed decides the order of a permutation.
    """
    if relation.adjoint:
        return
    if relation.linear:
        yield from _linear(relation, inputs, params)
    elif any(name in inputs for name in relation.columns):
        yield from _by_column(relation, inputs, params)
    elif relation.kind == "batch":
        count = env[relation.size]
        for item in sorted({round(each) for each in np.linspace(0, count - 1, _ALONE)} if count > 1 else ()):
            own = {**params, relation.size: 1} if relation.size in params else params
            yield _chosen(relation, inputs, own, count, np.array([item]), f"item {item} alone", item)
    else:
        count, groups = env[relation.size], env[relation.within] if relation.within else 1
        if groups and count // groups > 1:
            rng, length = np.random.default_rng(seed), count // groups
            order = np.concatenate([group * length + _moved(rng, length) for group in range(groups)])
            yield _chosen(relation, inputs, params, count, order, "in another order")


def _moved(rng: np.random.Generator, count: int) -> Array:
    """A random order of so many items, each of them in another place: one cycle through all."""
    cycle = rng.permutation(count)
    order = np.empty_like(cycle)
    order[cycle] = np.roll(cycle, 1)
    return order


def _chosen(
    relation: Relation,
    inputs: Mapping[str, Array],
    params: Mapping[str, Any],
    count: int,
    order: Array,
    text: str,
    item: int | None = None,
) -> RelatedCall:
    changed = {
        name: take_items(array, relation.axes[name], count, order) if name in relation.axes else array
        for name, array in inputs.items()
    }
    return RelatedCall(relation, text, changed, params, count, order, item)


def _by_column(relation: Relation, inputs: Mapping[str, Array], params: Mapping[str, Any]) -> Iterator[RelatedCall]:
    """The rows of one item alone; the number in the column stays, and the parameters do."""
    name, column = next((name, column) for name, column in relation.columns.items() if name in inputs)
    numbers = inputs[name][:, column]
    present = np.unique(numbers)
    for at in sorted({round(each) for each in np.linspace(0, len(present) - 1, _ALONE)} if len(present) > 1 else ()):
        item = int(present[at])
        rows = np.flatnonzero(numbers == item)
        yield _chosen(relation, inputs, params, len(numbers), rows, f"item {item} alone", item)


def _linear(relation: Relation, inputs: Mapping[str, Array], params: Mapping[str, Any]) -> Iterator[RelatedCall]:
    values = inputs[relation.linear]
    if relation.kind == "zero":
        yield RelatedCall(
            relation, f"{relation.linear} = 0", {**inputs, relation.linear: np.zeros_like(values)}, params
        )
        return
    with np.errstate(over="ignore"):
        scaled = values * values.dtype.type(FACTOR)
    if np.array_equal(np.isinf(scaled), np.isinf(values)):
        yield RelatedCall(relation, f"{FACTOR} x {relation.linear}", {**inputs, relation.linear: scaled}, params)
