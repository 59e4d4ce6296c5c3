"""What a planted fault is: a right kernel whose outputs are spoiled where a condition holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from generators.expressions import parse_expression
from generators.operator_registry import operator_named

Array = np.ndarray[Any, Any]
Entry = Mapping[str, Any]
SUCCESS = "SUCCESS"


@dataclass(frozen=True)
class KernelCall:
    """One successful call of the right kernel, whose outputs may be spoiled."""

    kernel: Callable[..., Any]
    op: str
    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]
    params: Mapping[str, Any]
    descriptors: Mapping[str, Any]
    handle: Any

    def again(self, inputs: Mapping[str, Array] | None = None, **params: Any) -> Any:
        """Overwrite the outputs by those of other inputs or parameters; the kernel's answer."""
        changed = {**self.inputs, **(inputs or {})}, self.outputs, {**self.params, **params}
        return self.kernel(self.op, *changed, self.descriptors, self.handle)


Spoil = Callable[[KernelCall], Any]


@dataclass(frozen=True, eq=False)  # hashed by identity: entries are dicts
class PlantedFault:
    """A kernel with one fault, as `--impl python:FILE.py:NAME` takes it.

    condition is an expression over sizes, parameters and `half` (1 where the first input is half): where it is 0 the
    kernel is right. values says in words what the inputs hold besides. trigger is the entry of a spec that shows the
    fault; with the keys of spared put over it, the kernel is right. spoil may return another answer than the kernel's.
    """

    name: str
    op: str
    sentence: str
    condition: str
    values: str
    trigger: Entry
    spared: Entry
    spoil: Spoil
    kernel: Callable[..., Any]

    @property
    def workspace_size(self) -> Callable[..., Any] | None:
        """That of the right kernel, if it has one."""
        found: Callable[..., Any] | None = getattr(self.kernel, "workspace_size", None)
        return found

    def __call__(self, op: str, inputs: Any, outputs: Any, params: Any, descriptors: Any, handle: Any) -> Any:
        """Call the right kernel, then spoil what it has written where the condition holds."""
        answer = self.kernel(op, inputs, outputs, params, descriptors, handle)
        status = answer["status"] if isinstance(answer, Mapping) else answer
        empty = any(array is None or not array.size for array in inputs.values())
        if op != self.op or status != SUCCESS or empty:
            return answer
        shapes = {name: array.shape for name, array in {**inputs, **outputs}.items()}
        if not self.holds(shapes, params, next(iter(inputs.values())).dtype == np.float16):
            return answer
        spoiled = self.spoil(KernelCall(self.kernel, op, inputs, outputs, params, descriptors, handle))
        return answer if spoiled is None else spoiled

    def holds(self, shapes: Mapping[str, tuple[int, ...]], params: Mapping[str, Any], half: bool) -> bool:
        """Whether the condition holds for tensors of these shapes with these parameters."""
        given = {name: tuple(value) if isinstance(value, list) else value for name, value in params.items()}
        env = operator_named(self.op).contract.bind(shapes, given)
        return bool(parse_expression(self.condition)({**env, "half": int(half)}))


def planted(
    op: str,
    kernel: Callable[..., Any],
    sentence: str,
    *,
    condition: str = "1",
    values: str = "",
    trigger: Entry,
    spared: Entry,
) -> Callable[[Spoil], PlantedFault]:
    """A decorator that makes a planted fault of a function that spoils outputs; it has the function's name."""

    def decorate(spoil: Spoil) -> PlantedFault:
        return PlantedFault(spoil.__name__, op, sentence, condition, values, trigger, spared, spoil, kernel)

    return decorate
