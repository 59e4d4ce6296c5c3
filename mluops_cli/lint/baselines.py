"""Rules on the baseline and on recorded hashes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from generators.casegen.manifest import hash_mismatches
from generators.contracts.binding import bind
from generators.contracts.bound_case import without_baseline
from generators.contracts.operator import Operator
from mluops_cli.core.discovery import manifest_entry
from mluops_cli.judging.weakness import swallowed, weakness
from mluops_cli.lint.finding import ERROR, NOTE, WARNING, Finding
from mluops_cli.lint.tensor_values import expects_failure
from schemas.casefiles.reading import CaseFile
from schemas.casefiles.requested_criteria import baseline_device
from schemas.errors import InputError, MluopsError
from schemas.suggest import counted

_LARGEST: Final = 1 << 26  # bytes of a baseline that is read whole; run finds the weakness of a larger one


def check_baseline(case: CaseFile, operator: Operator | None) -> Iterator[Finding]:
    """A baseline that is stored, or can be computed."""
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
        text = f"device GPU says that the file carries its baseline, but there are {listed}"
        if operator is None:
            text = f"{without_baseline(case.op)}: {text}"
        fix = "mluops gen --from fills it in" if operator is not None else "dump the outputs into the file"
        yield Finding(ERROR if operator is None else WARNING, "baseline", place, text, fix)
    elif missing and operator is None:
        text = f"{without_baseline(case.op)}: {listed}"
        yield Finding(WARNING, "baseline", place, text, "dump the outputs into the file")
    elif judged and not missing and device == "CPU":
        text = "device CPU means that the baseline is computed: other runners ignore the stored outputs"
        yield Finding(NOTE, "baseline", place, text, "set device: GPU if they are the baseline")


def check_weakness(case: CaseFile, operator: Operator | None) -> Iterator[Finding]:
    """A stored baseline that wrong outputs would pass too: run reports such a pass as mistrusted."""
    try:
        bound = bind(case, operator)
    except InputError:
        return  # check_contract reports it
    if not bound.valid or not bound.carries_baseline or bound.may_be_constant:
        return
    for name, record in bound.outputs.items():
        if name not in bound.compared or not 0 < record.span * record.dtype.width <= _LARGEST:
            continue
        spec = operator.contract.tensors.get(name) if operator is not None else None
        try:
            array, dtype = record.array(), record.dtype.name
            text = weakness(array, dtype, spec.expected_zero_fraction if spec else 0.0)
            text = text or swallowed(array, bound.criteria[name], dtype)
        except MluopsError:
            continue  # check_values reports it
        if text:
            place = str(record.place)
            yield Finding(WARNING, "baseline", place, f"{text}: run reports a pass as mistrusted", "use other inputs")


def check_undecided(case: CaseFile, operator: Operator | None) -> Iterator[Finding]:
    """Elements about whose NaN and Inf correct kernels may disagree: run doesn't judge them."""
    if operator is None or sum(record.span * record.dtype.width for record in case.inputs) > _LARGEST:
        return
    try:
        bound = bind(case, operator)
        masks = bound.undecided(bound.input_arrays()) if bound.valid else {}
    except MluopsError:
        return  # other rules report it
    for name, mask in masks.items():
        number = counted(int(mask.sum()), "element")
        text = f"NaN or Inf lies where a coordinate rounds to either side of a pixel: run doesn't judge {number}"
        yield Finding(WARNING, "baseline", str(bound.outputs[name].place), text, "use a grid that is exact")


def check_hashes(case: CaseFile, operator: Operator | None) -> Iterator[Finding]:
    """Values whose hash is that of the manifest."""
    place = str(case.path)
    try:
        found = manifest_entry(case.path)
        for _, text in hash_mismatches(case, found[1]) if found is not None else ():
            yield Finding(ERROR, "manifest", place, text, "generate the case again")
    except InputError as error:
        if error.place is not None and error.place.file != place:  # the manifest; check_values reports the others
            yield Finding(ERROR, "manifest", place, f"{error.place}: {error.message}")
