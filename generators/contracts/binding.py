"""A case file is bound to its operator's contract: its tensors get their names, and it is checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from generators.contracts.bound_case import BoundCase
from generators.contracts.checks import illegal_case, other_number, violations
from generators.contracts.faults import Fault, tensors_with
from generators.contracts.file_parameters import parameters_of
from generators.contracts.model import LARGE, Contract
from generators.contracts.operator import Operator
from generators.error_bounds.precision import PRECISIONS
from schemas.casefiles.enum_numbering import OLD
from schemas.casefiles.reading import CaseFile
from schemas.casefiles.requested_criteria import criteria_of
from schemas.casefiles.tensors import TensorRecord
from schemas.criteria import Criterion
from schemas.errors import InputError, SourceLocation, located
from schemas.path_names import check_case_name
from schemas.status import SUCCESS

EXTERNAL = "external"  # the suite of files without our metadata


def bind(file: CaseFile, operator: Operator | None, name: str = "") -> BoundCase:
    """Bind a case file to its operator by position, and check it.

    name is that of a file without our metadata (the path below the folder that was asked for); its stem by default.
    InputError where tensors or parameters are missing, an input has no data, or a case that should succeed breaks the
    contract.
    """
    meta = file.meta
    place = SourceLocation(str(file.path))
    if file.numbering.word == OLD:
        raise InputError(file.numbering.text, place)
    if meta:
        check_case_name(meta.suite, meta.name, place)
    params = parameters_of(file, None if operator is None else operator.contract)
    inputs, outputs = _named(file, None if operator is None else operator.contract.given(params), place)
    records = dict(zip(_distinct([*inputs, *outputs]), (*inputs.values(), *outputs.values()), strict=True))
    with located(place):
        faults = tuple(map(Fault.parse, meta.faults)) if meta else ()
    null_descriptors = tensors_with("null_descriptor", faults)
    bound = BoundCase(
        file=file,
        operator=operator,
        suite=meta.suite if meta else EXTERNAL,
        name=meta.name if meta else name or file.path.stem,
        params=params,
        inputs=inputs,
        outputs=outputs,
        descriptors={
            key: None if record.absent or key in null_descriptors else record.descriptor
            for key, record in records.items()
        },
        criteria=_criteria(file, operator, outputs),
        expect=(tuple(meta.expect) if meta else ()) or (SUCCESS,),
        beyond_design=bool(meta and meta.beyond_design),
        faults=faults,
        tags=tuple(meta.tags) if meta else (),
        omitted=frozenset(meta.omitted if meta else ()) | tensors_with("null_pointer", faults),
        accumulate=(str(meta.accumulate) if meta else "")
        or ("float" if operator is None else operator.contract.accumulate),
        seed=meta.seed if meta and meta.HasField("seed") else 1,
    )
    _check(bound, place)
    return bound


def _named(file: CaseFile, contract: Contract | None, place: SourceLocation) -> tuple[dict[str, TensorRecord], ...]:
    """Inputs and outputs by name."""
    roles = file.inputs, file.outputs
    if contract is None:
        if not file.outputs:
            raise InputError(f"{file.op} has no outputs, expected at least one", place)
        return tuple(dict(zip(_distinct([each.id for each in role]), role, strict=True)) for role in roles)
    for role, given, wanted in (("inputs", file.inputs, contract.inputs), ("outputs", file.outputs, contract.outputs)):
        if len(given) != len(wanted):
            raise InputError(other_number(file.op, len(given), role, wanted), place)
    specs = contract.inputs, contract.outputs
    return tuple(
        {spec.name: record for spec, record in zip(own, role, strict=True)}
        for own, role in zip(specs, roles, strict=True)
    )


def _distinct(ids: Sequence[str]) -> list[str]:
    """The ids, the second of the same one as `id~2` and so on: public files have two tensors called input."""
    names: list[str] = []
    for each in ids:
        name, number = each, 1
        while name in names:
            number += 1
            name = f"{each}~{number}"
        names.append(name)
    return names


def _criteria(
    file: CaseFile, operator: Operator | None, outputs: Mapping[str, TensorRecord]
) -> dict[str, tuple[Criterion, ...]]:
    """The file's criteria per output; the contract's where the file names none at all."""
    given: Sequence[tuple[Criterion, ...]] = criteria_of(file)
    if operator is None or any(given):
        return dict(zip(outputs, given, strict=True))
    tensors = operator.contract.tensors
    return {name: tensors[name].criteria if record.judged else () for name, record in outputs.items()}


def _check(bound: BoundCase, place: SourceLocation) -> None:
    """What must hold before a case is generated or run."""
    if bound.accumulate not in PRECISIONS:
        raise InputError(f"accumulate is {bound.accumulate!r:.60}, expected one of {', '.join(PRECISIONS)}", place)
    for name, record in bound.inputs.items():
        stored = record.source is not None or name in bound.omitted or record.absent
        if not stored and record.elements:
            raise InputError(f"input {name} has neither values nor random_data", record.place)
    for record in _unread(bound):
        record.check_count()
    if bound.operator is not None and bound.expect == (SUCCESS,) and not bound.faults:
        _check_contract(bound, bound.operator.contract, place)


def _unread(bound: BoundCase) -> Iterator[TensorRecord]:
    """Tensors with values that count but may never be read: large ones, and outputs that a run doesn't compare."""
    kept = SUCCESS in bound.expect and bound.carries_baseline
    for record in bound.inputs.values():
        if record.has_values and record.span >= LARGE:
            yield record
    for name, record in bound.outputs.items():
        if kept and record.has_values and (record.span >= LARGE or name not in bound.compared):
            yield record


def _check_contract(bound: BoundCase, contract: Contract, place: SourceLocation) -> None:
    found = violations(contract, bound.descriptors, bound.params)
    if found:
        raise InputError(illegal_case(contract.op, found), place)
