"""A case file as a call that can be shrunk: its sizes and parameters are numbers, its values are given themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from generators.contracts.binding import bind
from generators.contracts.bound_case import BoundCase
from generators.contracts.model import LARGE, Params, TensorSpec
from generators.contracts.operator import Array, Operator
from generators.operator_registry import operators
from generators.specs.conversions import expect_words, fault_words, tensor_words
from generators.specs.fields import NOT_IN_NAMES
from generators.specs.yaml_loader import Located
from mluops_cli.core.discovery import PlannedCase, open_case
from mluops_cli.search.shrinking.candidate import Candidate, candidate_of
from schemas.case_ids import id_parts
from schemas.casefiles.tensors import TensorRecord
from schemas.errors import InputError, SourceLocation
from schemas.tensor_descriptor import Descriptor

_LONGEST: Final = 100  # characters of a name


def case_of_file(planned: PlannedCase) -> tuple[str, Candidate]:
    """The suite and the call of a case file.

    InputError where it can't be read, its operator has no contract here, or an input's values are not in the file.
    """
    with open_case(planned) as file:
        operator = operators().get(file.op)
        place = SourceLocation(planned.file)
        if operator is None:
            raise InputError(
                f"operator {file.op} has no contract here, so it is unknown which smaller calls are legal and what "
                "they compute; expected one of a plug-in (--plugin FILE with OPERATORS)",
                place,
            )
        bound = bind(file, operator, id_parts(planned.id)[2])
        if bound.valid and bound.omitted:
            listed = ", ".join(sorted(bound.omitted))
            raise InputError(f"the file holds no values of {listed} ({LARGE} elements or more): can't be shrunk", place)
        inputs = bound.input_arrays() if bound.valid else {}
        candidate = candidate_of(bound.op, _entry(bound, operator, _params(bound, operator, inputs)))
        for name, array in inputs.items():
            if array is not None:
                candidate = candidate.with_values(name, array.copy())
        return _word(bound.suite), candidate


def _word(text: str) -> str:
    """A name that specs take."""
    return NOT_IN_NAMES.sub("_", text.lower()).strip("_.-")[:_LONGEST] or "case"


def _params(bound: BoundCase, operator: Operator, inputs: Mapping[str, Array | None]) -> Params:
    """The parameters, without those that are computed from the values of inputs: smaller values give others."""
    own = {name: value for name, value in bound.params.items() if name not in operator.contract.computed_parameters}
    return own if operator.all_params(inputs, bound.shapes, own) == bound.params else bound.params


def _entry(bound: BoundCase, operator: Operator, params: Params) -> dict[str, Any]:
    contract = operator.contract
    entry: dict[str, Any] = {"name": _word(bound.name), "seed": bound.seed, "params": dict(params)}
    dtypes: dict[str, str] = {}
    for role, records in (("inputs", bound.inputs), ("outputs", bound.outputs)):
        entry[role] = {
            name: _tensor(record, contract.tensors[name], dtypes, plain=role == "inputs" and not bound.valid)
            for name, record in records.items()
        }
    own = {name: {each.name: each.threshold for each in bound.criteria[name]} for name in bound.outputs}
    usual = {name: {each.name: each.threshold for each in contract.tensors[name].criteria} for name in bound.outputs}
    if own != usual:
        entry["criteria"] = {name: _located(each, bound) for name, each in own.items() if each != usual[name]}
    if bound.accumulate != contract.accumulate:
        entry["accumulate"] = bound.accumulate
    if not bound.valid or bound.faults:
        entry |= expect_words(bound.expect, beyond_design=bound.beyond_design)
    if bound.tags:
        entry["tags"] = list(bound.tags)
    return entry | fault_words(bound.faults)


def _tensor(record: TensorRecord, spec: TensorSpec, dtypes: dict[str, str], *, plain: bool) -> dict[str, Any]:
    """What an entry says of a tensor. plain: it is an input of an illegal call, whose values mean nothing."""
    dtypes[spec.name] = record.dtype.name
    usual = spec.dtypes[0] if spec.same_dtype_as is None else dtypes[spec.same_dtype_as]
    found = tensor_words(Descriptor(record.layout, record.dtype.name, record.shape, record.strides), usual, spec.layout)
    if plain and record.elements < LARGE and record.dtype.storage is not None:
        found["dist"] = {"constant": 0}
    return found


def _located(thresholds: Mapping[str, float], bound: BoundCase) -> Located:
    """Thresholds as they come out of a spec, which knows where they stand."""
    found = Located(thresholds)
    found.file, found.line = str(bound.file.path), 1
    return found
