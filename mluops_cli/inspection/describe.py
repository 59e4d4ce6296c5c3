"""A case file as a plain dict: tensors, parameters, criteria, metadata, and warnings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from generators.contracts.bound_case import REFERENCE
from generators.contracts.file_parameters import parameters_of, plain_message
from generators.operator_registry import operators
from mluops_cli.inspection.statistics import statistics_of
from schemas.casefiles.reading import CaseFile
from schemas.casefiles.requested_criteria import baseline_device, criteria_of
from schemas.casefiles.tensors import TensorRecord
from schemas.errors import InputError, MluopsError
from schemas.protos.messages import print_text
from schemas.status import SUCCESS


def describe(case: CaseFile, limit: float) -> dict[str, Any]:
    """Return everything that `mluops show` shows; statistics of the values of tensors up to limit bytes."""
    warnings = [f"{case.path}: {case.numbering.text}"] if case.numbering.text else []
    params, meta = case.params_message(), case.meta
    try:
        given = criteria_of(case, lambda place, text: warnings.append(f"{place}: {text}"))
        criteria = [[_criterion(each) for each in output] for output in given]
    except InputError as error:
        warnings.append(str(error))
        criteria = [[] for _ in case.outputs]
    records = [*(("input", each) for each in case.inputs), *(("output", each) for each in case.outputs)]
    return {
        "file": str(case.path),
        "op": case.op,
        "device": baseline_device(case.node),
        "baseline": baseline_origin(case),
        "numbering": case.numbering.word,
        "tensors": [
            {"role": role, "name": name, **_tensor(record, limit, warnings)}
            for (role, record), name in zip(records, contract_names(case), strict=True)
        ],
        "params": plain_message(params) if params is not None else {},
        "criteria": dict(zip(_distinct(case.outputs), criteria, strict=True)),
        "meta": {} if meta is None else {field.name: _plain(value) for field, value in meta.ListFields()},
        "warnings": warnings,
    }


def baseline_origin(case: CaseFile) -> str:
    """Return where the baseline of a run comes from, in words.

    The interface's device says only whether the file carries the baseline (GPU) or a run computes it (CPU).
    """
    meta, outputs = case.meta, [each for each in case.outputs if each.judged and each.elements and not each.absent]
    if meta is not None and meta.expect and SUCCESS not in meta.expect:
        return "none, the operator must refuse the case"
    if not outputs:
        return "none, no output has elements that are compared"
    computed = case.op in operators()
    if computed and (baseline_device(case.node) == "CPU" or not all(each.has_values for each in outputs)):
        return "computed by the reference kernel in each run"
    if not all(each.has_values for each in outputs):
        return "missing, and there is no reference kernel"
    recipes = {origin.tensor: origin.recipe for origin in meta.origins} if meta is not None else {}
    names = zip(case.outputs, contract_names(case)[len(case.inputs) :], strict=True)
    if all(recipes.get(name or "") == REFERENCE for record, name in names if record in outputs):
        return "stored in the file, computed by the reference kernel"
    return "stored in the file, not computed by mluops"


def contract_names(case: CaseFile) -> list[str | None]:
    """Return the tensors' names in the operator's contract, by position; None where there is none."""
    operator = operators().get(case.op)
    if operator is not None:
        try:
            contract = operator.contract.given(parameters_of(case, operator.contract))
        except InputError:  # the file lacks parameters
            contract = operator.contract
        if (len(case.inputs), len(case.outputs)) == (len(contract.inputs), len(contract.outputs)):
            return list(contract.tensors)
    return [None] * (len(case.inputs) + len(case.outputs))


def _distinct(records: Sequence[TensorRecord]) -> list[str]:
    """Return the tensors' ids; where two are equal, their positions."""
    ids = [record.id for record in records]
    return [each.id if ids.count(each.id) == 1 else str(each.place.key) for each in records]


def named_tensors(case: CaseFile) -> dict[str, TensorRecord]:
    """Return the tensors by id, by contract name, and as input0, output0 ...; the first of equal names counts."""
    found: dict[str, TensorRecord] = {}
    records = (*case.inputs, *case.outputs)
    for record, name in zip(records, contract_names(case), strict=True):
        if name is not None:
            found.setdefault(name, record)
    for record in records:
        found.setdefault(record.id, record)
    for role, each in (("input", case.inputs), ("output", case.outputs)):
        for index, record in enumerate(each):
            found.setdefault(f"{role}{index}", record)
    return found


def _criterion(criterion: Any) -> tuple[Any, ...]:
    shown = (criterion.name, criterion.threshold, criterion.source)
    return shown if criterion.imaginary is None else (*shown, criterion.imaginary)


def _plain(value: Any) -> Any:
    if hasattr(value, "DESCRIPTOR"):  # of the bytes of an error bound, how many there are
        fields = plain_message(value).items()
        return {name: f"{len(each)} bytes" if isinstance(each, bytes) else each for name, each in fields}
    return value if isinstance(value, (str, int, float)) else [_plain(each) for each in value]


def _tensor(record: TensorRecord, limit: float, warnings: list[str]) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": record.id,
        "dtype": record.dtype.name,
        "layout": record.layout,
        "shape": list(record.shape),
        "strides": list(record.strides) if record.strides is not None else None,
        "data": _source(record),
    }
    if not record.has_values:
        return shown
    problems: list[MluopsError] = []
    try:
        record.check_count()
    except MluopsError as error:
        problems.append(error)
    if not problems or record.source != "path":  # external data of another size may be of any size
        try:
            if record.span * record.dtype.width <= limit:
                shown |= statistics_of(record)
        except MluopsError as error:
            problems.append(error)
    warnings += dict.fromkeys(map(str, problems))
    return shown


def _source(record: TensorRecord) -> str:
    if record.absent:
        return "absent"
    if not record.elements:
        return "no elements"
    if record.source == "path":
        source = f"path {record.header.path}"
    elif record.source == "random_data":
        source = f"random_data {' '.join(print_text(record.random).split())}"
    else:
        source = record.source or "none"
    others = ", ".join(record.sources[1:])
    return f"{source} (wins over {others})" if others else source
