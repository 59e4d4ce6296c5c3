"""A case: a plain value with everything that decides the bytes of its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from generators.contracts.faults import Fault
from generators.contracts.model import Contract, Shape
from generators.data.draw import Values
from schemas.case_ids import case_id
from schemas.criteria import Criterion
from schemas.status import SUCCESS
from schemas.tensor_descriptor import Descriptor


@dataclass(frozen=True, slots=True)
class TensorPlan:
    """One tensor of a case: its descriptor and, for an input, how its values are drawn.

    A size of UNKNOWN (-1) in an output's dims is filled in from the baseline. capacity: the sizes of the output that
    depend on the data may be smaller than dims.
    """

    name: str
    dtype: str
    layout: str
    dims: Shape
    strides: Shape | None = None
    values: Values | None = None
    capacity: bool = False

    @property
    def descriptor(self) -> Descriptor:
        """The tensor's descriptor, as a call passes it."""
        return Descriptor(self.layout, self.dtype, self.dims, self.strides)


@dataclass(frozen=True, slots=True)
class Case:
    """One case of an operator.

    expect lists the accepted statuses; beyond_design: no design and no vendor demands them. breaks is the number of
    rules that an invalid case breaks. faults are what the call of an invalid case omits. criteria holds an entry per
    output. place is the spec's file:line. accumulate is the dtype that a kernel may accumulate in, None for the
    contract's. spec is the spec file that the case is of, which may include the one of place.
    """

    op: str
    suite: str
    name: str
    params: Mapping[str, Any]
    inputs: tuple[TensorPlan, ...]
    outputs: tuple[TensorPlan, ...]
    criteria: Mapping[str, tuple[Criterion, ...]]
    expect: tuple[str, ...] = (SUCCESS,)
    beyond_design: bool = False
    breaks: int = 1
    faults: tuple[Fault, ...] = ()
    tags: tuple[str, ...] = ()
    seed: int = 1
    place: str = ""
    accumulate: str | None = None
    spec: Path | None = field(default=None, compare=False)

    @property
    def plans(self) -> tuple[TensorPlan, ...]:
        """All tensors: the inputs, then the outputs."""
        return (*self.inputs, *self.outputs)

    def shapes(self, contract: Contract) -> dict[str, Shape]:
        """The shapes of all tensors, UNKNOWN where a capacity stands for a size that depends on the data."""
        shapes = {plan.name: plan.dims for plan in self.plans}
        return shapes | contract.known({plan.name: plan.dims for plan in self.plans if plan.capacity})

    @property
    def id(self) -> str:
        """operator/suite/name: the same in the YAML, the file, the result, the waiver and the repro line."""
        return case_id(self.op, self.suite, self.name)

    @property
    def valid(self) -> bool:
        """Whether a correct implementation computes something: only SUCCESS is expected."""
        return self.expect == (SUCCESS,)
