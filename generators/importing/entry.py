"""A draft as an entry of a spec: named by the operator's contract and checked against it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from generators.contracts.checks import illegal_case, other_number, violations
from generators.contracts.conditions import Violation
from generators.contracts.model import OURS, Contract
from generators.contracts.operator import Operator
from generators.importing.draft import CaseDraft, Note, TensorDraft
from generators.parameters import as_tuples
from generators.specs.case_builder import CaseBuilder
from generators.specs.conversions import Problem, convert_parameters, expect_words
from generators.specs.fields import WORD
from generators.specs.mistakes import mistakes
from generators.specs.models import Entry as EntryModel
from generators.specs.yaml_loader import key_text
from schemas.dtypes import DTYPES
from schemas.errors import InputError
from schemas.status import SUCCESS
from schemas.tensor_descriptor import Descriptor, sparse_strides

Entry = dict[str, Any]
ASIDE: Final = "#"  # key of an entry's parameters that the grammar of specs has no place for
NAME_LENGTH: Final = 80
_ROLES: Final = ("inputs", "outputs")


class Unwritable(InputError):  # noqa: N818  an InputError, reported as one
    """An entry that no spec may hold."""


def entry_of(draft: CaseDraft, operator: Operator | None, note: Note) -> Entry:
    """The entry without its name; InputError where the operator can't have such a case."""
    if operator is None:
        return _foreign(draft, note)
    contract = operator.contract.given(as_tuples(draft.params))
    specs = {"inputs": contract.inputs, "outputs": contract.outputs}
    tensors = {"inputs": draft.inputs, "outputs": draft.outputs}
    for role in _ROLES:
        if len(tensors[role]) != len(specs[role]):
            raise InputError(other_number(draft.op, len(tensors[role]), role, specs[role]))
    entry: Entry = {}
    params = _params(draft, contract, note)
    if params:
        entry["params"] = params
    first: dict[str, str] = {}
    for role in _ROLES:
        entry[role] = {}
        for spec, tensor in zip(specs[role], tensors[role], strict=True):
            default = first.get(spec.same_dtype_as or "", spec.dtypes[0])
            first[spec.name] = tensor.dtype = tensor.dtype or default
            tensor.layout = tensor.layout or spec.layout
            entry[role][spec.name] = _tensor(tensor, default, spec.layout)
    _mend_values(draft, operator, entry, note)
    own = {spec.name: {each.name: each.threshold for each in spec.criteria} for spec in contract.outputs}
    criteria = dict(zip(own, draft.criteria, strict=False))
    if criteria and criteria != own:
        entry["criteria"] = {name: given for name, given in criteria.items() if given != own[name]}
    if draft.tags:
        entry["tags"] = list(draft.tags)
    _set_expectation(entry, draft, contract, params, note)
    return entry


def _set_expectation(entry: Entry, draft: CaseDraft, contract: Contract, params: Mapping[str, Any], note: Note) -> None:
    """What is expected of a case that breaks one rule; InputError where nothing can be expected of it."""
    tensors = (*draft.inputs, *draft.outputs)
    descriptors = {
        name: Descriptor(tensor.layout or "", tensor.dtype or "", tensor.shape, _strides(tensor))
        for name, tensor in zip(contract.tensors, tensors, strict=True)
    }
    try:
        given = convert_parameters(contract, params)
    except Problem as problem:
        raise Unwritable(problem.text) from None
    found: list[Violation] = violations(contract, descriptors, given)
    if len(found) > 1 or (found and not found[0].statuses):
        raise InputError(illegal_case(contract.op, found))
    if found and found[0].statuses != (SUCCESS,):
        if not draft.illegal:
            note(f"{draft.place}: {illegal_case(contract.op, found)}: it is to answer {' or '.join(found[0].statuses)}")
        entry |= expect_words(found[0].statuses, beyond_design=found[0].origin == OURS)


def check_entry(entry: Entry, name: str, operator: Operator | None) -> None:
    """Unwritable unless `mluops gen` would take the entry: the grammar of specs, and the operator's contract."""
    given = {"name": name, **{key: value for key, value in entry.items() if key != ASIDE}}
    wrong = [f"{key_text(each.path)}: {each.message}" for each in mistakes(EntryModel, given)]
    if wrong:
        raise Unwritable("; ".join(wrong))
    if operator is None:
        return
    given.pop("criteria", None)  # the grammar has checked them; a case's carry a line of a file
    try:
        CaseBuilder(operator.contract, Path(), 1).case(given, "imported", name, "")
    except Problem as problem:
        raise Unwritable(problem.text) from None


def _params(draft: CaseDraft, contract: Contract, note: Note) -> dict[str, Any]:
    passed = {parameter.name for parameter in contract.passed_parameters}
    for name in sorted(draft.params.keys() - {parameter.name for parameter in contract.parameters}):
        note(f"{name!r} is no parameter of {draft.op}")
    params = {name: draft.params[name] for name in sorted(passed & draft.params.keys())}
    for name, value in params.items():
        if not _holdable(value):
            raise Unwritable(f"parameter {name} is {value!r}, expected numbers, true, false or words")
    return params


def _mend_values(draft: CaseDraft, operator: Operator, entry: Entry, note: Note) -> None:
    """Take the contract's default where the operator demands something of values that a distribution can't promise."""
    for spec, tensor in zip(operator.contract.given(as_tuples(draft.params)).inputs, draft.inputs, strict=True):
        dist = entry["inputs"][spec.name].get("dist", {})
        if spec.finite and ("nan" in dist or "inf" in dist):
            note(f"{spec.name} of {draft.op} takes no NaN and Inf: left out")
            dist.pop("nan", None), dist.pop("inf", None)
        whole = not DTYPES[tensor.dtype or spec.dtypes[0]].is_float
        if whole and ("nan" in dist or "inf" in dist):
            note(f"{spec.name} of {draft.op} holds integers, so no NaN and Inf: left out")
            dist.pop("nan", None), dist.pop("inf", None)
        if dist and whole and type(operator).check_values is not Operator.check_values:
            note(f"{spec.name} must satisfy rules that its distribution doesn't: the contract's default is sampled")
            dist.clear()
        if not dist:
            entry["inputs"][spec.name].pop("dist", None)


def _foreign(draft: CaseDraft, note: Note) -> Entry:
    """An entry of an operator without a contract: nothing is left to defaults."""
    entry: Entry = {}
    held = {name: value for name, value in draft.params.items() if _holdable(value)}
    if held:
        entry["params"] = held
    if len(held) < len(draft.params):
        entry[ASIDE] = {name: value for name, value in draft.params.items() if name not in held}
        for name in entry[ASIDE]:
            note(f"parameter {name} of {draft.op} is nothing that specs hold: kept as a comment")
    for role, tensors in zip(_ROLES, (draft.inputs, draft.outputs), strict=True):
        entry[role] = {f"{role[:-1]}{index}": _tensor(tensor, None, None) for index, tensor in enumerate(tensors)}
    if any(draft.criteria):
        entry["criteria"] = {f"output{index}": given for index, given in enumerate(draft.criteria)}
    if draft.tags:
        entry["tags"] = list(draft.tags)
    return entry


def _holdable(value: Any) -> bool:
    """Whether a parameter is what the grammar of specs has a place for: numbers, true, false, words."""
    values = value if isinstance(value, list) else [value]
    return all(WORD.search(each) if isinstance(each, str) else isinstance(each, (int, float)) for each in values)


def _tensor(tensor: TensorDraft, dtype: str | None, layout: str | None) -> dict[str, Any]:
    """A tensor of a spec, without what is the contract's default."""
    described: dict[str, Any] = {"shape": list(tensor.shape)}
    if tensor.dtype not in (None, dtype):
        described["dtype"] = tensor.dtype
    if tensor.layout not in (None, layout):
        described["layout"] = tensor.layout
    strides = _strides(tensor)
    if strides is not None:
        described["strides"] = list(strides)
    if tensor.dist:
        described["dist"] = dict(tensor.dist)
    return described


def _strides(tensor: TensorDraft) -> tuple[int, ...] | None:
    """The strides, None when dense; InputError where they don't fit the shape."""
    if tensor.strides is None:
        return None
    try:
        return sparse_strides(tensor.shape, tensor.strides)
    except ValueError as error:
        raise InputError(str(error)) from None


def case_name(draft: CaseDraft) -> str:
    """A name made of the inputs' shapes, such as 4x8x8x2_16x2x4x2."""
    words = ["x".join(map(str, tensor.shape)) or "scalar" for tensor in draft.inputs]
    return "_".join(words)[:NAME_LENGTH].rstrip("_x") or "case"
