"""Kernels with one fault each, as the contract tells them, and the words that an explanation must have for them.

They are calls of the reference kernel in float32, or in half, so that their outputs are rounded otherwise than those
that a diagnosis computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import ml_dtypes
import numpy as np

from generators.contracts.model import Env
from generators.contracts.operator import Arrays, Operator
from mluops_cli.judging.arithmetic import Array

CLEAR: Final = 16  # bounds: an element that is further off is clearly wrong
_ALIKE: Final = 4  # rows that are multiples of each other: of more, an explanation may not try the wrong one
_PARALLEL: Final = 1 - 1e-6  # the squared cosine from which two rows count as multiples of each other
_FACTOR: Final = np.float32(1.001)


@dataclass(frozen=True, slots=True)
class KernelFault:
    """A fault, part of the text that explains it, and the outputs of a kernel that has it.

    enough: so many clearly wrong elements must an output have for the fault to be recognised.
    distinct: so many different values must the baseline have there.
    ambiguous: why the inputs do not tell the fault from others; empty where they do.
    """

    name: str
    text: str
    outputs: Callable[[], Arrays]
    enough: int = 32
    distinct: int = 1
    ambiguous: str = ""

    def unrecognisable(self, baseline: Array, output: Array, bound: Any) -> str:
        """Return why the numbers of an output with this fault do not show it; nothing where they do."""
        clear = _clearly_wrong(baseline, output, bound)
        number = int(np.count_nonzero(clear))
        if number < self.enough:
            return f"changes {number} elements clearly, fewer than {self.enough}"
        values = len(np.unique(baseline[clear]))
        if values < self.distinct:
            return f"changes {values} different value(s) clearly, fewer than {self.distinct}"
        return self.ambiguous


def kernel_faults(operator: Operator, inputs: Arrays, env: Env) -> Iterator[KernelFault]:
    """All faults that the contract lets an operator have; inputs are complete, env is that of the reference kernel."""

    def right(**changed: Array) -> Arrays:
        given = {**inputs, **changed}
        single = operator.reference_in(np.float32, given, env)
        return operator.reference(given, env) if single is None else single

    # An offset changes equal values just as a factor does.
    yield KernelFault("factor", "times 1.001 (least squares", lambda: _scaled(right()), distinct=2)
    contract = operator.contract.given(env)
    one, other = (*contract.coordinates[:2], None, None)[:2]
    if one is not None and other is not None and one.tensor and one.tensor == other.tensor:
        swapped = inputs[one.tensor].copy()
        swapped[..., [one.column, other.column]] = swapped[..., [other.column, one.column]]
        text = f"coordinates {one.name} and {other.name} swapped"
        yield KernelFault("swapped coordinates", text, lambda: right(**{one.tensor: swapped}))
    if one is not None and other is not None and one.ends == other.ends == "centres":
        sizes = np.array([env[one.size], env[other.size]], np.float32)
        if (sizes > 1).all():
            moved = inputs[one.tensor].copy()
            moved[..., [one.column, other.column]] *= sizes / (sizes - 1)
            yield KernelFault("other corners", "(align_corners = False)", lambda: right(**{one.tensor: moved}))
    for name in [name for name, array in inputs.items() if array.dtype == np.float32][:1]:
        for dtype, rounded in _ROUNDED.items():
            yield KernelFault(f"inputs in {dtype}", dtype, _calling(right, name, rounded(inputs[name])))
    half = operator.reference_in(np.float16, inputs, env) if contract.category != "pure_io" else None
    if half is not None:
        in_half = {name: _through_half(array) for name, array in half.items()}
        yield KernelFault("sums in half", "half", lambda: in_half)
    for each in contract.sums:
        terms = inputs[each.terms]
        rows = terms.reshape(-1, terms.shape[-1])
        enough = max(6, 64 // max(1, rows.shape[1]))
        wrong = len(rows) // 2
        alike = _multiples(rows, wrong)
        ambiguous = f"{alike} rows of {each.terms} are multiples of each other" if alike > _ALIKE else ""
        for name, text, times in (("missing term", "missing", 0), ("doubled term", "added twice", 2)):
            changed = rows.copy()
            changed[wrong] *= np.float32(times)
            outputs = _calling(right, each.terms, changed.reshape(terms.shape))
            yield KernelFault(name, text, outputs, enough, ambiguous=ambiguous)
    for relation in contract.relations:
        count = env.get(relation.size, 1) if relation.kind == "batch" and not relation.within else 1
        if 1 < count <= 64:
            rolled = partial(_rolled, right, relation.axes, count)
            yield KernelFault("mixed batch", "mixed items", rolled, 32 + count * count)


def _multiples(rows: Array, row: int) -> int:
    """The number of rows that are multiples of this one, with itself: their terms differ by no more than a weight."""
    wide = rows.astype(np.float64)
    sizes = np.einsum("pc,pc->p", wide, wide)
    return int(np.count_nonzero((sizes > 0) & ((wide @ wide[row]) ** 2 >= _PARALLEL * sizes * sizes[row])))


def _calling(right: Callable[..., Arrays], name: str, array: Array) -> Callable[[], Arrays]:
    return lambda: right(**{name: array})


def _to_tf32(values: Array) -> Array:
    """Rounded to multiples of the last of 11 significant bits, of subnormal numbers of 2^-136."""
    wide = values.astype(np.float64)
    last = np.ldexp(1.0, np.maximum(np.frexp(wide)[1] - 11, -136))
    rounded: Array = (np.rint(wide / last) * last).astype(np.float32)
    return rounded


_ROUNDED: Final[Mapping[str, Callable[[Array], Array]]] = {
    "half": lambda values: values.astype(np.float16).astype(np.float32),
    "tf32": _to_tf32,
    "bfloat16": lambda values: values.astype(ml_dtypes.bfloat16).astype(np.float32),
}


def _through_half(array: Array) -> Array:
    return array.astype(np.float16).astype(array.dtype) if array.dtype.kind == "f" else array


def _scaled(outputs: Arrays) -> Arrays:
    return {name: array * _FACTOR if array.dtype == np.float32 else array for name, array in outputs.items()}


def _rolled(right: Callable[..., Arrays], axes: Mapping[str, int], count: int) -> Arrays:
    """Every item in the place of the next one."""
    outputs = right()
    for name in outputs.keys() & axes.keys():
        outputs[name] = np.roll(outputs[name], outputs[name].shape[axes[name]] // count, axes[name])
    return outputs


def _clearly_wrong(baseline: Array, output: Array, bound: Any) -> Array:
    """Where the elements are CLEAR bounds off, and not zero."""
    with np.errstate(all="ignore"):
        wide = output.astype(np.float64)
        error = np.abs(wide - baseline)
        unit = np.maximum(bound, np.spacing(np.abs(baseline)).astype(np.float64))
        clear: Array = (error > CLEAR * unit) & np.isfinite(error) & (wide != 0)
    return clear
