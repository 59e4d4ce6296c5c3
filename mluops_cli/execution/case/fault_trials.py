"""Faults injected into the right outputs of one case file, judged as a run judges them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from generators.contracts.bound_case import BoundCase
from mluops_cli.core.case_options import CaseOptions
from mluops_cli.execution.case.case_run import Prepared, prepare
from mluops_cli.execution.case.explainer import Explainer
from mluops_cli.execution.case.judgement import counts_differ, has_undefined_parts, judge, outputs_under_test
from mluops_cli.execution.case.output_buffers import Array
from mluops_cli.judging.fault_injection.detectability import Detectability
from mluops_cli.judging.fault_injection.injected_faults import InjectionTarget
from mluops_cli.judging.fault_injection.kernel_faults import kernel_faults
from mluops_cli.judging.fault_injection.verification import Trial, try_faults
from mluops_cli.judging.measurement import DenominatorCache
from mluops_cli.judging.rules import defined_pairs
from mluops_cli.judging.verdict import Verdict, judge_status
from schemas.casefiles.reading import CaseFile
from schemas.status import BAD_PARAM, SUCCESS

_LARGE: Final = 1 << 22  # elements from which more threads are faster
_NAMED: Final = 1 << 14  # elements of all tensors of a case whose faults are to be named
_OTHER: Final = "EXECUTION_FAILED"
_COUNTS: Final = "indice_num"  # of a rulebook: how many pairs of each offset are defined
_PAIRS: Final = "indice_pairs"


@dataclass(frozen=True, slots=True)
class Tested:
    """The trials of a case; alarm says why the judge fails outputs that are right, empty where it does not."""

    case: str
    op: str
    trials: tuple[Trial, ...]
    alarm: str = ""


def selftest_case(file: CaseFile, threads: int = 1) -> Tested:
    """Inject every fault into every output of the case; InputError where the file is inconsistent.

    Takes the memory of a run: the file's arrays and one buffer per output.
    """
    prepared = prepare(file, CaseOptions(bound="off"))  # only small cases need error bounds (_named)
    bound, options = prepared.bound, CaseOptions()
    trials = [_wrong_status(bound), *_wrong_counts(prepared)]
    for name, buffer in prepared.outputs.items():
        buffer.prepare(0)
        if name in prepared.baseline:
            np.copyto(buffer.defined, prepared.baseline[name])

    caches: dict[str, dict[str, DenominatorCache]] = {name: {} for name in prepared.baseline}

    def verdict(output: str = "") -> Verdict:
        judged = outputs_under_test(bound, prepared.baseline, prepared.outputs, options, prepared.undecided)
        judged = [replace(item, caches=caches[item.name]) for item in judged]
        if output and not has_undefined_parts(bound):
            judged = [item for item in judged if item.name == output]
        return judge(bound, judged, options, threads=threads)

    alarm = ""
    if prepared.baseline:
        if max(array.size for array in prepared.baseline.values()) < _LARGE:
            threads = 1
        right = verdict()
        alarm = right.reason if right.status == "fail" else ""
        trials += try_faults(dict(_targets(prepared)), verdict)
        trials += _named(prepared)
    return Tested(bound.id, bound.op, tuple(trials), alarm)


def _targets(prepared: Prepared) -> Iterator[tuple[str, tuple[InjectionTarget, Detectability]]]:
    for name, baseline in prepared.baseline.items():
        size = baseline.size
        if not size:
            continue
        criteria = prepared.bound.criteria[name]
        places, defined = (0, size // 2, size - 1), None
        if name == _PAIRS and _COUNTS in prepared.baseline:
            number = prepared.baseline[_COUNTS].astype(np.int64)
            if not number.any():
                continue  # nothing is defined
            places, defined = _defined_places(number, baseline.shape[-1]), defined_pairs(number, baseline.shape[-1])
        elif name in prepared.undecided:
            judged = ~prepared.undecided[name].reshape(-1)
            if not judged.any():
                continue
            numbers = np.flatnonzero(judged)
            places = int(numbers[0]), int(numbers[len(numbers) // 2]), int(numbers[-1])
            defined = _part_of(judged)
        buffer = prepared.outputs[name]
        exact = all(criterion.threshold == 0 for criterion in criteria)
        target = InjectionTarget(baseline, buffer.defined, buffer.sentinels, exact, *places)
        dtype = prepared.bound.outputs[name].dtype.name
        yield name, (target, Detectability(baseline, criteria, dtype, defined))


def _part_of(mask: Array) -> Callable[[int, int], Array]:
    return lambda start, stop: mask[start:stop]


def _named(prepared: Prepared) -> Iterator[Trial]:
    """Kernels with one fault each, whose name must be among the explanations of their outputs."""
    bound, operator = prepared.bound, prepared.bound.operator
    inputs = {name: array for name, array in prepared.call.inputs.items() if array is not None}
    size = sum(array.size for array in (*inputs.values(), *prepared.baseline.values()))
    if operator is None or len(inputs) < len(bound.inputs) or not 0 < size <= _NAMED or has_undefined_parts(bound):
        return
    options, bounds = CaseOptions(), bound.error_bounds(inputs, prepared.baseline)
    explainer = Explainer(bound, inputs, prepared.baseline, bounds, prepared.undecided, options)
    env = operator.contract.bind(bound.shapes, bound.params)
    with np.errstate(all="ignore"):
        faults = list(kernel_faults(operator, inputs, env))
    for fault in faults:
        with np.errstate(all="ignore"):
            outputs = fault.outputs()
        for item in outputs_under_test(bound, prepared.baseline, prepared.outputs, options):
            limit, output = bounds.get(item.name), outputs[item.name]
            if limit is None or output.dtype != item.baseline.dtype:
                continue
            if reason := fault.unrecognisable(item.baseline, output, limit):
                yield Trial(item.name, f"named: {fault.name}", False, False, False, reason)
                continue
            found = explainer.all(replace(item, output=output))
            named = any(fault.text in pattern.text for pattern in found)
            reason = "; ".join(pattern.text for pattern in found) or "no explanation"
            yield Trial(item.name, f"named: {fault.name}", True, True, named, reason)


def _defined_places(number: Any, length: int) -> tuple[int, int, int]:
    """The first, one in the middle, and the last flat element of indice_pairs [K, 2, length] that is defined."""
    offsets = np.flatnonzero(number)
    first, middle, last = (int(offsets[i]) for i in (0, len(offsets) // 2, -1))
    return (
        first * 2 * length,
        middle * 2 * length + int(number[middle]) // 2,
        last * 2 * length + length + int(number[last]) - 1,
    )


def _wrong_status(bound: BoundCase) -> Trial:
    """An operator that answers with a status that isn't accepted."""
    if bound.beyond_design:
        return Trial("", "wrong status", False, False, False, "no design demands a status")
    wrong = next(each for each in (SUCCESS, BAD_PARAM, _OTHER) if each not in bound.expect)
    verdict = judge_status(bound.expect, wrong)
    return Trial("", "wrong status", True, True, verdict is not None and verdict.status == "fail", wrong)


def _wrong_counts(prepared: Prepared) -> Iterator[Trial]:
    """A returned count (num_act_out) that is one too large."""
    operator = prepared.bound.operator
    for parameter in operator.contract.parameters if operator is not None else ():
        if parameter.output is not None and parameter.output[0] in prepared.baseline:
            tensor, dim = parameter.output
            returned = {parameter.name: prepared.baseline[tensor].shape[dim] + 1}
            caught = bool(counts_differ(prepared.bound, prepared.baseline, returned))
            yield Trial(tensor, "wrong count", True, True, caught, parameter.name)
