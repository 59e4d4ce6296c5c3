"""A case file seen through its operator's contract: tensors by name, parameters in full, what is expected."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import xxhash

from generators.contracts.faults import Fault
from generators.contracts.file_parameters import count_of
from generators.contracts.model import LARGE, Shape
from generators.contracts.operator import Array, Arrays, Operator
from generators.contracts.outputs import fitted
from generators.data.random_data import draw_random_data
from schemas.case_ids import case_id
from schemas.casefiles.error_bounds import stored_bounds
from schemas.casefiles.reading import CaseFile
from schemas.casefiles.requested_criteria import baseline_device
from schemas.casefiles.tensors import TensorRecord
from schemas.criteria import Criterion
from schemas.errors import InputError, SourceLocation
from schemas.status import SUCCESS
from schemas.tensor_descriptor import Descriptor

REFERENCE: Final = "reference kernel"  # how a tensor of a case file came about, in the file's metadata
_MAY_BE_CONSTANT: Final = ("boundary", "zero_element")  # suites


@dataclass(frozen=True, slots=True)
class BoundCase:
    """A case file bound to its operator; without a contract tensors are named by their ids.

    params holds ints, floats and tuples under the file's field names, defaults filled in. descriptors holds inputs,
    then outputs; an output called like an input is x~2 there, and None stands for a tensor that is absent. omitted
    names the tensors whose data are absent on purpose. accumulate is the dtype that a kernel may accumulate in: the
    file's, else the contract's.
    """

    file: CaseFile
    operator: Operator | None
    suite: str
    name: str
    params: Mapping[str, Any]
    inputs: Mapping[str, TensorRecord]
    outputs: Mapping[str, TensorRecord]
    descriptors: Mapping[str, Descriptor | None]
    criteria: Mapping[str, tuple[Criterion, ...]]
    expect: tuple[str, ...] = (SUCCESS,)
    beyond_design: bool = False
    faults: tuple[Fault, ...] = ()
    tags: tuple[str, ...] = ()
    omitted: frozenset[str] = frozenset()
    accumulate: str = "float"
    seed: int = 1

    @property
    def op(self) -> str:
        """The operator's name."""
        return self.file.op

    @property
    def id(self) -> str:
        """operator/suite/name."""
        return case_id(self.op, self.suite, self.name)

    @property
    def valid(self) -> bool:
        """Whether a correct implementation computes something: only SUCCESS is expected."""
        return self.expect == (SUCCESS,)

    @property
    def compared(self) -> tuple[str, ...]:
        """The outputs that are compared with the baseline: judged ones that an empty call may not leave unwritten."""
        empty = not all(record.elements for record in self.records.values())
        tensors = {} if self.operator is None else self.operator.contract.tensors
        undefined = {name for name in self.outputs if empty and name in tensors and tensors[name].undefined_when_empty}
        return tuple(
            name
            for name, record in self.outputs.items()
            if record.judged and not record.absent and name not in undefined
        )

    @property
    def carries_baseline(self) -> bool:
        """Whether the file holds the values of every output that is compared, and declares them as the baseline.

        A file of device CPU wants its baseline computed; without a contract nobody could, so what is stored counts.
        """
        if self.operator is not None and baseline_device(self.file.node) == "CPU":
            return False
        counting = (record for record in self.outputs.values() if record.judged and not record.absent)
        return all(record.has_values or not record.elements for record in counting)

    @property
    def carries_foreign_baseline(self) -> bool:
        """Whether the baseline in the file is not known to come from the reference kernel."""
        meta = self.file.meta
        recipes = {origin.tensor: origin.recipe for origin in meta.origins} if meta is not None else {}
        return self.carries_baseline and any(recipes.get(name) != REFERENCE for name in self.compared)

    @property
    def may_be_constant(self) -> bool:
        """Whether a constant or zero baseline is as it should be: by the suite, or because an input is empty."""
        return self.suite in _MAY_BE_CONSTANT or not all(record.elements for record in self.inputs.values())

    @property
    def records(self) -> dict[str, TensorRecord]:
        """Inputs, then outputs, under the names of descriptors."""
        return dict(zip(self.descriptors, (*self.inputs.values(), *self.outputs.values()), strict=True))

    def input_arrays(self, warn: Callable[[str], None] | None = None) -> dict[str, Array | None]:
        """The inputs by name, read-only: stored values (mapped where possible), or drawn; None for omitted ones.

        InputError where values and shape disagree. warn is also called where the file's enum numbering is ambiguous.
        """
        if warn is not None and self.file.numbering.text:
            warn(f"{self.file.path}: {self.file.numbering.text}")
        return {
            name: self._input(index, name, record, warn) for index, (name, record) in enumerate(self.inputs.items())
        }

    @property
    def fingerprint(self) -> str:
        """A hash of the operator, the parameters, and dtype, layout, dims and strides of every tensor.

        It depends on what the file says alone, in either form: not on names, ids, folders or values.
        """
        tensors = [
            (record.dtype.name, record.layout, record.shape, record.strides)
            for record in (*self.inputs.values(), *self.outputs.values())
        ]
        told = (self.op, sorted(self.params.items()), len(self.inputs), tensors)
        return xxhash.xxh3_128_hexdigest(repr(told).encode("utf-8", "surrogateescape"))

    @property
    def shapes(self) -> dict[str, Shape]:
        """The shapes of the tensors that have a descriptor."""
        return {name: each.dims for name, each in self.descriptors.items() if each is not None}

    def check_values(self, inputs: Mapping[str, Array | None]) -> None:
        """InputError where the values of an input are outside the operator's contract."""
        if self.operator is not None and all(array is not None for array in inputs.values()):
            self.operator.check_inputs(inputs, self.shapes, self.params)

    def baseline(self, inputs: Mapping[str, Array | None], outputs: Iterable[str] | None = None) -> Arrays:
        """The baseline by output: what the file carries, else what the reference kernel computes.

        outputs are the wanted ones; by default all that there is a baseline of. An output whose rows are counted has as
        many rows as are defined: the file may have capacity for more. InputError where the values of an input are
        outside the contract, where the file has no capacity for a computed output, or where it carries no baseline and
        its operator has no contract.
        """
        if self.carries_baseline:
            self.check_values(inputs)
            if outputs is None:
                outputs = [name for name, record in self.outputs.items() if record.has_values or not record.elements]
            return {name: self._defined(name, self.outputs[name].array()) for name in outputs}
        computed = self.computed(inputs)
        return {name: self._fitted(name, computed[name]) for name in (computed if outputs is None else outputs)}

    def _fitted(self, name: str, array: Array) -> Array:
        assert self.operator is not None
        record = self.outputs[name]
        capacities = self.operator.contract.capacities(name)
        return fitted(f"output {name}", record.shape, record.dtype.name, array, record.place, capacities)

    def _defined(self, name: str, array: Array) -> Array:
        """The defined rows of a stored output, by the count in the file; all rows where the file has no count.

        A count of 0 says so only in a file with our metadata: others write it where they don't know.
        """
        for parameter in () if self.operator is None else self.operator.contract.parameters:
            assert self.operator is not None
            tensor, axis = parameter.output or ("", 0)
            count = count_of(self.file, self.operator.contract, parameter) if tensor == name else None
            if count is not None:
                if not 0 <= count <= array.shape[axis]:
                    text = f"{parameter.name} is {count}, {name} has {array.shape[axis]} rows"
                    raise InputError(text, self.outputs[name].place)
                array = array[(slice(None),) * axis + (slice(count),)]
        return array

    def computed(self, inputs: Mapping[str, Array | None], params: Mapping[str, Any] | None = None) -> Arrays:
        """All outputs as the reference kernel computes them, with the file's parameters or others."""
        if self.operator is None:
            raise InputError(without_baseline(self.op), SourceLocation(str(self.file.path)))
        return self.operator.baseline(inputs, self.shapes, self.params if params is None else params)

    def references(self, inputs: Mapping[str, Array | None], baseline: Arrays) -> Arrays:
        """The outputs that error bounds surround: the reference kernel's, also where the file carries other ones.

        A baseline of others has rounding errors of its own, or worse; a correct kernel need not be near it.
        """
        floats = any(array.dtype.kind not in "iub" for array in baseline.values())
        if self.operator is None or not floats or not self.carries_foreign_baseline:
            return baseline
        if any(array is None for array in inputs.values()):
            return baseline
        computed = self.computed(inputs)
        if any(computed[name].shape != array.shape for name, array in baseline.items()):
            return baseline
        return {name: computed[name].astype(array.dtype, copy=False) for name, array in baseline.items()}

    def error_bounds(
        self, inputs: Mapping[str, Array | None], baseline: Mapping[str, Array | None], accumulate: str | None = None
    ) -> Arrays:
        """The error bounds of the outputs: those that the file stores, else what the operator says.

        Stored ones hold for the accumulation precision of the file alone. Outputs without a bound are left out.
        """
        if self.operator is None:
            return {}
        wanted = accumulate or self.accumulate
        if wanted == self.accumulate:
            stored = stored_bounds(self.file, {each.id: each.shape for each in self.outputs.values()})
            if stored:
                return {name: stored[each.id] for name, each in self.outputs.items() if each.id in stored}
        return self.operator.bounds(inputs, self.shapes, self.params, baseline, wanted)

    def undecided(self, inputs: Mapping[str, Array | None]) -> Arrays:
        """Where correct kernels may disagree about NaN and Inf, by output: those that have such an element."""
        if self.operator is None:
            return {}
        return self.operator.undecided_elements(inputs, self.shapes, self.params)

    def _input(self, index: int, name: str, record: TensorRecord, warn: Callable[[str], None] | None) -> Array | None:
        if name in self.omitted or record.absent:
            return None
        if record.source == "random_data" and record.elements:
            check_drawn_size(record)
            drawn = draw_random_data(record, (self.fingerprint, index), warn)
            drawn.flags.writeable = False
            return drawn
        return record.array()


def stored_bytes(bound: BoundCase) -> int:
    """Bytes of the tensors that a complete file of this case holds, for planning memory and disk."""
    records = bound.records if bound.valid else bound.inputs
    return sum(math.ceil(each.span * each.dtype.width) for name, each in records.items() if name not in bound.omitted)


def check_drawn_size(record: TensorRecord) -> None:
    """InputError where an input is too large for its values to be drawn."""
    if record.span >= LARGE:
        raise InputError(f"{record.span} elements are to be drawn, {LARGE} or more", record.place)


def without_baseline(op: str) -> str:
    """What is wrong with a file without a baseline whose operator has no contract here."""
    return f"carries no baseline, and operator {op} has no reference kernel to compute it"
