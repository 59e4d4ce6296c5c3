"""Rules on the case as a whole: its operator's contract, its baseline, its criteria."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from generators.casegen.thresholds import SOURCE as DYNAMIC
from generators.contracts.binding import Bound, bind
from generators.contracts.operator import Operator
from mluops_cli.lint.finding import ERROR, NOTE, WARNING, Finding
from mluops_cli.lint.tensor_values import expects_failure
from schemas.casefiles.reading import CaseFile
from schemas.casefiles.requested_criteria import baseline_device, criteria_of
from schemas.criteria import Criterion
from schemas.errors import InputError

_LOOSEST: Final = 3e-3  # of the public fixed thresholds by category (EVALUATION.md)
_SHARES: Final = ("diff4", "diff_kl")  # figures of another kind than a relative error
_DRAWN: Final = 1 << 26  # bytes of inputs that are made or read to look into their values


def check_ids(case: CaseFile, operator: Operator | None) -> Iterator[Finding]:
    """Tensors that can be told apart, and at least one of each role."""
    for role, records in (("input", case.inputs), ("output", case.outputs)):
        if not records:
            yield Finding(WARNING, "tensors", str(case.path), f"the case has no {role}")
    for name, count in Counter(record.id for record in (*case.inputs, *case.outputs)).items():
        if count > 1:
            severity = NOTE if operator is not None else WARNING
            told = f"{count} tensors have the id {name!r}: only their positions tell them apart"
            yield Finding(severity, "tensors", str(case.path), told, "give each its own id")


def check_contract(case: CaseFile, operator: Operator | None) -> Iterator[Finding]:
    """What the operator accepts: tensors, parameters, shapes, and the values of its indices."""
    try:
        bound = bind(case, operator)
    except InputError as error:
        yield Finding(ERROR, "contract" if operator is not None else "case", str(error.place), error.message)
        return
    if operator is not None and bound.valid:
        yield from _check_indices(bound, operator)


def _check_indices(bound: Bound, operator: Operator) -> Iterator[Finding]:
    """What the operator's contract demands of values: indices in range, none twice, room for the rows they make."""
    counted = bool(operator.contract.data_sizes)
    if type(operator).check_values is Operator.check_values and not counted:
        return
    if sum(record.span * record.dtype.width for record in bound.inputs.values()) > _DRAWN:
        return
    try:
        inputs = bound.input_arrays()
    except InputError:
        return  # other rules tell
    drawn = any(record.source == "random_data" for record in bound.inputs.values())
    try:
        if counted and all(array is not None for array in inputs.values()):
            bound.baseline(inputs)
        else:
            bound.check_values(inputs)
    except InputError as error:
        told = f"{error.message}{' (as drawn here)' if drawn else ''}"
        fix = "store indices that are in range and distinct; random_data can't promise either" if drawn else ""
        yield Finding(ERROR, "indices", str(bound.file.path), told, fix)


def check_baseline(case: CaseFile, operator: Operator | None) -> Iterator[Finding]:
    """Somebody must know what the outputs should be."""
    if expects_failure(case):
        return
    judged = [record for record in case.outputs if record.judged and record.elements and not record.absent]
    missing = [f'"{record.id}"' for record in judged if not record.has_values]
    listed = f"no values for {', '.join(missing)}"
    device = baseline_device(case.node)
    place = str(case.path)
    if case.outputs and not any(record.judged for record in case.outputs):
        yield Finding(WARNING, "baseline", place, "threshold_use leaves out every output: nothing is judged")
    if missing and device == "GPU":
        told = f"device GPU says that the file carries its baseline, but there are {listed}"
        fix = "mluops gen --from fills it in" if operator is not None else "dump the outputs into the file"
        yield Finding(ERROR if operator is None else WARNING, "baseline", place, told, fix)
    elif missing and operator is None:
        told = f"no baseline: {listed}, and there is no reference kernel of {case.op} here"
        yield Finding(WARNING, "baseline", place, told, "dump the outputs into the file")
    elif judged and not missing and device == "CPU":
        told = "device CPU means that the baseline is computed: the stored outputs are ignored by other runners"
        yield Finding(NOTE, "baseline", place, told, "set device: GPU if they are the baseline")


def check_criteria(case: CaseFile, operator: Operator | None) -> Iterator[Finding]:
    """Criteria that can be judged, with thresholds of the operator's category."""
    try:
        given = criteria_of(case)
    except InputError as error:
        yield Finding(ERROR, "criteria", str(error.place), error.message)
        return
    known = operator.contract.outputs if operator is not None else ()
    if not any(given) and operator is None and case.outputs:
        yield Finding(WARNING, "criteria", str(case.path), "no criteria: nothing can be judged")
    for index, (record, criteria) in enumerate(zip(case.outputs, given, strict=True)):
        own = {each.name: each.threshold for each in known[index].criteria} if index < len(known) else {}
        for name, count in Counter(each.name for each in criteria).items():
            if count > 1:
                yield Finding(WARNING, "criteria", str(record.place), f"{name} is named {count} times")
        for criterion in criteria:
            if told := _oddity(criterion, own, operator):
                yield Finding(WARNING, "threshold", str(record.place), f"{told} ({criterion.source})")


def _oddity(criterion: Criterion, own: dict[str, float], operator: Operator | None) -> str:
    """What is odd about a threshold, empty where nothing is."""
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
        elif name not in _SHARES and threshold > _LOOSEST:
            return f"threshold {threshold:g} of {name} is looser than that of any category ({_LOOSEST:g})"
    return ""
