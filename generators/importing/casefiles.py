"""Case files of others, dumps of networks for instance, as drafts."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from generators.contracts.file_parameters import parameters_of
from generators.data.random_data import KINDS, RandomData
from generators.importing.draft import CaseDraft, Imported, Note, TensorDraft, dist_of, plain, short
from generators.operator_registry import operators
from generators.parameters import as_lists
from schemas.casefiles.enum_numbering import CURRENT, OLD
from schemas.casefiles.reading import CaseFile, read_case
from schemas.casefiles.requested_criteria import criteria_of
from schemas.casefiles.tensors import TensorRecord
from schemas.errors import InputError, SourceLocation
from schemas.path_names import check_name
from schemas.status import SUCCESS

_KEPT: Final = 1 << 20  # bytes of stored values that are copied beside a spec
_DISTRIBUTIONS: Final = ("UNIFORM", "GAUSSIAN")


def read_dump(path: Path, name: str, enum_numbering: str = CURRENT) -> Imported:
    """The draft of one case file; name is how comments call it. InputError where it can't be read."""
    imported = Imported()
    with read_case(path, enum_numbering) as case:
        if case.numbering.word == OLD:
            raise InputError(f"{path}: {case.numbering.text}")
        if case.numbering.text:
            imported.note(f"{path}: {case.numbering.text}")
        check_name(case.op, "operator", SourceLocation(str(path)))
        operator = operators().get(case.op)
        params = parameters_of(case, None if operator is None else operator.contract)
        draft = CaseDraft(
            case.op,
            name,
            [_tensor(record, True, imported.note) for record in case.inputs],
            [_tensor(record, False, imported.note) for record in case.outputs],
            {name: _plain_floats(value) for name, value in as_lists(params).items()},
            _criteria(case, imported.note),
            illegal=case.meta is not None and bool(case.meta.expect) and SUCCESS not in case.meta.expect,
            message=case.params_field,
            floats=frozenset(name for name, value in as_lists(params).items() if _is_float(value)),
        )
    imported.drafts.append(draft)
    return imported


def _tensor(record: TensorRecord, is_input: bool, note: Note) -> TensorDraft:
    draft = TensorDraft(record.shape, record.dtype.name, record.layout, record.strides, name=record.id)
    if not is_input or not record.elements or record.absent:
        return draft
    if record.source == "random_data":
        draft.dist = _dist(record, note)
    elif record.has_values and record.span * record.dtype.width <= _KEPT:
        try:
            draft.stored = np.ascontiguousarray(record.array())
        except InputError as error:
            note(f"{error}: these values are not kept, the contract's default is sampled")
    elif not record.has_values:
        note(f"{record.place}: neither values nor random_data: the contract's default is sampled")
    else:
        note(f"values of more than {_KEPT} bytes are not kept: the contract's default is sampled")
    return draft


def _dist(record: TensorRecord, note: Note) -> dict[str, Any]:
    random = RandomData.of(record.random)
    if random.distribution not in _DISTRIBUTIONS:
        note(f"random_data of {random.distribution}: the contract's default is sampled")
        return {}
    first, second = (plain(short(value)) for value in (random.first, random.second))
    return dist_of(KINDS[random.distribution], first, second, note)


def _is_float(value: Any) -> bool:
    return any(isinstance(each, float) for each in (value if isinstance(value, list) else [value]))


def _plain_floats(value: Any) -> Any:
    """A parameter with each C float as people write it."""
    if isinstance(value, list):
        return [_plain_floats(each) for each in value]
    return plain(short(value)) if isinstance(value, float) else value


def _criteria(case: CaseFile, note: Note) -> list[dict[str, float]]:
    given = criteria_of(case, lambda _, text: note(text))
    return [{each.name: each.threshold for each in output} for output in given] if any(given) else []
