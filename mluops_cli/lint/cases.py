"""Rules on the case as a whole: its operator's contract, its criteria."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from generators.casegen.thresholds import SOURCE as DYNAMIC
from generators.contracts.binding import bind
from generators.contracts.bound_case import BoundCase
from generators.contracts.operator import Operator
from mluops_cli.lint.finding import ERROR, NOTE, WARNING, Finding
from schemas.casefiles.reading import CaseFile
from schemas.casefiles.requested_criteria import criteria_of
from schemas.criteria import Criterion
from schemas.errors import InputError, SourceLocation

_LOOSEST: Final = 3e-3  # of the public fixed thresholds by category (docs/judging.md)
_FRACTIONS: Final = ("diff4", "diff_kl")  # metrics of another kind than a relative error
_COMPUTED: Final = 1 << 26  # bytes of inputs that are drawn or read, and computed with


def check_ids(case: CaseFile, operator: Operator | None) -> Iterator[Finding]:
    """Different ids for the tensors, and at least one tensor of each role."""
    for role, records in (("input", case.inputs), ("output", case.outputs)):
        if not records:
            yield Finding(WARNING, "tensors", str(case.path), f"the case has no {role}")
    for name, count in Counter(record.id for record in (*case.inputs, *case.outputs)).items():
        if count > 1:
            severity = NOTE if operator is not None else WARNING
            text = f"{count} tensors have the id {name!r}: only their positions tell them apart"
            yield Finding(severity, "tensors", str(case.path), text, "give each its own id")


def check_contract(case: CaseFile, operator: Operator | None) -> Iterator[Finding]:
    """Whether the operator accepts the tensors, the parameters, the shapes, and the values of its indices."""
    try:
        bound = bind(case, operator)
    except InputError as error:
        yield Finding(ERROR, "contract" if operator is not None else "case", str(error.place), error.message)
        return
    if operator is not None and bound.valid:
        yield from _check_data(bound, operator)


def _check_data(bound: BoundCase, operator: Operator) -> Iterator[Finding]:
    """Whether the values are those of the contract: indices in range, none twice, capacity for the rows they make."""
    counted = bool(operator.contract.data_sizes)
    finite = any(tensor.finite for tensor in operator.contract.inputs)
    if type(operator).check_values is Operator.check_values and not (counted or finite):
        return
    if sum(record.span * record.dtype.width for record in bound.inputs.values()) > _COMPUTED:
        return
    try:
        inputs = bound.input_arrays()
    except InputError:
        return  # other rules report it
    drawn = any(record.source == "random_data" for record in bound.inputs.values())
    try:
        if counted and all(array is not None for array in inputs.values()):
            bound.baseline(inputs)
        else:
            bound.check_values(inputs)
    except InputError as error:
        text = f"{error.message}{' (as drawn here)' if drawn else ''}"
        fix = "store indices that are in range and distinct; random_data can't promise either" if drawn else ""
        yield Finding(ERROR, "indices", str(bound.file.path), text, fix)


def check_criteria(case: CaseFile, operator: Operator | None) -> Iterator[Finding]:
    """Criteria that can be judged, with thresholds of the operator's category."""
    notes: list[Finding] = []

    def note(place: SourceLocation, text: str) -> None:
        notes.append(Finding(WARNING, "criteria", str(place), text))

    try:
        given = criteria_of(case, note)
    except InputError as error:
        yield Finding(ERROR, "criteria", str(error.place), error.message)
        return
    yield from notes
    known = operator.contract.outputs if operator is not None else ()
    if not any(given) and operator is None and case.outputs:
        yield Finding(WARNING, "criteria", str(case.path), "no criteria: nothing can be judged")
    for index, (record, criteria) in enumerate(zip(case.outputs, given, strict=True)):
        own = {each.name: each.threshold for each in known[index].criteria} if index < len(known) else {}
        for criterion in criteria:
            if text := _oddity(criterion, own, operator):
                yield Finding(WARNING, "threshold", str(record.place), f"{text} ({criterion.source})")


def _oddity(criterion: Criterion, own: dict[str, float], operator: Operator | None) -> str:
    """Return what is odd about a threshold, empty where nothing is."""
    name = criterion.name
    for threshold in (criterion.threshold, criterion.imaginary):
        if threshold is None:
            continue
        if criterion.source.startswith(DYNAMIC):
            continue  # measured for this case
        if operator is not None and name in own:
            category = operator.contract.category
            if threshold != own[name]:
                word = "looser" if threshold > own[name] else "stricter"
                return f"threshold {threshold:g} of {name} is {word} than {own[name]:g} of category {category}"
        elif name not in _FRACTIONS and threshold > _LOOSEST:
            return f"threshold {threshold:g} of {name} is looser than that of any category ({_LOOSEST:g})"
    return ""
