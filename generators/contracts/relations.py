"""Relations between the outputs of an operator for related inputs, as data, and the related inputs.

They need no baseline: an implementation's outputs for one call are held against its own outputs for another. They find
a fault that kernel and baseline share.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np

from generators.expressions import parse_expression

Array = np.ndarray[Any, Any]

FACTOR: Final = 16  # of scaling: a power of two, so that no product or sum is rounded otherwise
_FLOATING: Final = "fcV"  # kinds of dtypes; V: bfloat16 and others of ml_dtypes
_LARGEST: Final = float(np.finfo(np.float32).max)  # a partial sum beyond it is Inf
ALONE: Final = 4  # items of a batch that are computed alone, spread evenly
_RENUMBERED: Final = 4096  # of the numbers of items, besides those that occur, so many change: there may be 2^31 items


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation that the outputs of a correct implementation keep.

    kind is one of

    - batch: an item computed alone gives what it gives within the batch.
    - permutation: items in another order give outputs in that order; an output that has no such axis stays as it is.
    - scaling: floating outputs are linear in the input `linear`: 16 times the input gives 16 times the output.
    - zero: where the input `linear` is zero, floating outputs are zero; +0 where no term reaches the element.
    - outside: with the inputs of `constants` nothing reaches an output: its elements are +0, or the contract's fill.
    - adjoint: the operator named `adjoint` is the transpose of this one as a map from the input `linear` to the only
      output: <output, z> = <input, adjoint(z)> for any z. Parameters and the other inputs are shared.

    size names the size or parameter that counts the items, axes the axis of each tensor along which they lie: an item
    takes an equal part of the axis, so many elements in a row. within: a size; the items lie in so many groups of equal
    length. A permutation keeps them in their group, a batch has the same item of each group alone. columns: the column
    (of the last axis) of a tensor that holds the number of the item, or a negative one; where an input has it, its rows
    belong to items by that number. constants: the value of each element of an input, an expression. where: an
    expression; the relation is there only where it holds.
    """

    name: str
    kind: Literal["batch", "permutation", "scaling", "zero", "outside", "adjoint"]
    size: str = ""
    axes: Mapping[str, int] = field(default_factory=dict)
    within: str = ""
    columns: Mapping[str, int] = field(default_factory=dict)
    linear: str = ""
    constants: Mapping[str, str] = field(default_factory=dict)
    where: str = ""
    adjoint: str = ""


@dataclass(frozen=True, slots=True)
class Renumbering:
    """The new number of each of these items, whose numbers are ascending; other numbers stay."""

    old: Array
    new: Array

    def of(self, values: Array) -> Array:
        """The values, int32 or int64, with the new numbers in place of the old ones."""
        at = np.searchsorted(self.old, values).clip(max=len(self.old) - 1)
        found: Array = np.where(self.old[at] == values, self.new[at], values).astype(values.dtype)
        return found


@dataclass(frozen=True, slots=True)
class RelatedCall:
    """Inputs and parameters that are related to those of a case, and what becomes of its outputs.

    text names the difference. order: the items of the call, in their order. numbers: new numbers of items, where a
    column holds numbers and they change. item: the number in the input's column of the item that is computed alone.
    fills: what an output holds where nothing reaches it, 0 where it is not named.
    """

    relation: Relation
    text: str
    inputs: Mapping[str, Array]
    params: Mapping[str, Any]
    count: int = 1
    order: Array | None = None
    numbers: Renumbering | None = None
    item: int | None = None
    fills: Mapping[str, int] = field(default_factory=dict)

    def moved(self, name: str, array: Array) -> Array:
        """What becomes of an output of the case, or of its error bound, by the choice and the order of items."""
        axis = self.relation.axes.get(name)
        if self.order is None or axis is None or not array.ndim:
            return array
        return take_items(array, axis, self.count, self.order)

    def expected(self, name: str, array: Array) -> Array:
        """The output that the call must give, from that of the case."""
        if self.relation.kind == "outside":
            return np.full_like(array, self.fills.get(name, 0))
        if self.relation.linear and array.dtype.kind in _FLOATING:
            with np.errstate(all="ignore"):
                scaled: Array = array * array.dtype.type(FACTOR)
            return scaled if self.relation.kind == "scaling" else np.zeros_like(array)
        array, column = self.moved(name, array), self.relation.columns.get(name)
        if column is not None and self.numbers is not None:
            array = array.copy()
            array[..., column] = self.numbers.of(array[..., column])
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
    relation: Relation,
    inputs: Mapping[str, Array],
    params: Mapping[str, Any],
    env: Mapping[str, Any],
    seed: int,
    fills: Mapping[str, int] | None = None,
) -> Iterator[RelatedCall]:
    """The calls by which a relation is tried; none where the case is too small, or its sums may overflow when scaled.

    An adjoint is another operator and has none here.

    env: sizes and parameters by name (Contract.bind). seed decides the order of a permutation. fills: as in
    RelatedCall.
    """
    if relation.adjoint or (relation.where and not parse_expression(relation.where)(env)):
        return
    if relation.constants:
        values = {
            name: np.full_like(inputs[name], parse_expression(text)(env)) for name, text in relation.constants.items()
        }
        yield RelatedCall(relation, "nothing inside", {**inputs, **values}, params, fills=fills or {})
    elif relation.linear:
        yield from _linear(relation, inputs, params)
    elif any(name in inputs for name in relation.columns):
        yield from _by_column(relation, inputs, params, env, seed)
    else:
        yield from _by_axis(relation, inputs, params, env, seed)


def _moved(seed: int, length: int) -> Array:
    """A random order of so many items, each of them in another place: one cycle through all."""
    cycle = np.random.default_rng(seed).permutation(length)
    order = np.empty_like(cycle)
    order[cycle] = np.roll(cycle, 1)
    return order


def _some(count: int) -> list[int]:
    """The items that are tried alone; none where there is only one."""
    return sorted({round(each) for each in np.linspace(0, count - 1, ALONE)}) if count > 1 else []


def _by_axis(
    relation: Relation, inputs: Mapping[str, Array], params: Mapping[str, Any], env: Mapping[str, Any], seed: int
) -> Iterator[RelatedCall]:
    """Items that lie along an axis: some of them alone, or all in another order."""
    count, groups = env[relation.size], env[relation.within] if relation.within else 1
    length = count // groups if groups else 0
    starts = length * np.arange(groups)[:, None]
    if relation.kind == "batch":
        own = {**params, relation.size: 1} if relation.size in params else params
        for item in _some(length):
            yield _chosen(relation, inputs, own, count, (starts + item).reshape(-1), f"item {item} alone")
    elif length > 1:
        order = np.concatenate([start + _moved(seed + group, length) for group, start in enumerate(starts[:, 0])])
        yield _chosen(relation, inputs, params, count, order, "in another order")


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
    places = np.argsort(order)
    return RelatedCall(relation, text, changed, params, count, order, Renumbering(order[places], places), item)


def _by_column(
    relation: Relation, inputs: Mapping[str, Array], params: Mapping[str, Any], env: Mapping[str, Any], seed: int
) -> Iterator[RelatedCall]:
    """Items whose numbers stand in a column: the rows of one of them alone, or other numbers for all of them."""
    name, column = next((name, column) for name, column in relation.columns.items() if name in inputs)
    held = inputs[name][:, column]
    if relation.kind == "permutation":
        if (count := env[relation.size]) > 1:
            occurring = held[(held >= 0) & (held < count)]
            old = np.union1d(np.append(occurring, count - 1), np.arange(min(count, _RENUMBERED)))
            numbers, rows = Renumbering(old, old[_moved(seed, len(old))]), inputs[name].copy()
            rows[:, column] = numbers.of(held)
            yield RelatedCall(relation, "with other numbers", {**inputs, name: rows}, params, numbers=numbers)
        return
    present = np.unique(held)
    for at in _some(len(present)):
        item = int(present[at])
        yield _chosen(relation, inputs, params, len(held), np.flatnonzero(held == item), f"item {item} alone", item)


def _linear(relation: Relation, inputs: Mapping[str, Array], params: Mapping[str, Any]) -> Iterator[RelatedCall]:
    values = inputs[relation.linear]
    if relation.kind == "zero":
        yield RelatedCall(
            relation, f"{relation.linear} = 0", {**inputs, relation.linear: np.zeros_like(values)}, params
        )
        return
    with np.errstate(over="ignore"):
        scaled = values * values.dtype.type(FACTOR)
    sizes = np.abs(values.astype(np.float32))
    largest = float(np.max(sizes, initial=0.0, where=np.isfinite(sizes)))
    if np.array_equal(np.isinf(scaled), np.isinf(values)) and FACTOR * largest * values.size <= _LARGEST:
        yield RelatedCall(relation, f"{FACTOR} x {relation.linear}", {**inputs, relation.linear: scaled}, params)
