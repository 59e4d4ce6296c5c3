"""Judges the outputs of one call: criteria, the contract's comparison rules, a diagnosis of what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from generators.contracts.bound_case import BoundCase
from generators.contracts.checks import violations
from generators.contracts.operator import Arrays
from mluops_cli.core.case_options import CaseOptions
from mluops_cli.core.exceptions import describe
from mluops_cli.execution.case.explainer import Explainer
from mluops_cli.execution.case.output_buffers import Array, OutputBuffer
from mluops_cli.judging.bounds import EXACT, bound_ratio, says_nothing
from mluops_cli.judging.diagnosis import Diagnosis, diagnose
from mluops_cli.judging.patterns import Explain
from mluops_cli.judging.rules import OUTPUTS as RULEBOOK
from mluops_cli.judging.rules import rulebook
from mluops_cli.judging.verdict import OutputUnderTest, Verdict, judge_case
from schemas.errors import InputError

_TRIED: Final = 32 << 20  # bytes of an output for which other modes are tried


def judge_outputs(
    bound: BoundCase,
    inputs: Mapping[str, Array | None],
    baseline: Arrays,
    buffers: Mapping[str, OutputBuffer],
    bounds: Mapping[str, Array],
    references: Arrays,
    options: CaseOptions,
    undecided: Mapping[str, Array] | None = None,
) -> dict[str, Any]:
    """Status, reason and metrics of every compared output, as keys of a record.

    The reason of a failing output begins with its diagnosis, which counts only elements beyond the tolerance. An
    undecided element (correct kernels may disagree about NaN there) is counted and not judged. An output beyond its
    error bound, which surrounds the references, is reported in the record, with what explains it; it fails the case
    only if the options say so.
    """
    judged = outputs_under_test(bound, baseline, buffers, options, undecided)
    verdict = judge(bound, judged, options)
    result = verdict.as_record()
    explainer = Explainer(bound, inputs, baseline, bounds, undecided or {}, options)
    for name, mask in (undecided or {}).items():
        if name in result["outputs"]:
            result["outputs"][name]["undecided"] = int(np.count_nonzero(mask))
    reasons: list[str] = []
    for item in judged:
        compared = verdict.outputs[item.name]
        if compared.passed or compared.empty:
            continue
        try:
            diagnosis = diagnosed(item, explainer, buffers[item.name].sentinels)
        except Exception as raised:  # the output is wrong with or without a diagnosis
            reasons.append(f"{item.name}: {compared.reason}; no diagnosis, which raised {describe(raised)}")
            continue
        if diagnosis is None:
            reasons.append(f"{item.name}: {compared.reason}")
            continue
        result["outputs"][item.name]["diagnosis"] = diagnosis.as_record()
        reasons.append(f"{item.name}: {diagnosis.words()}; {compared.failing_criteria or compared.reason}")
    surrounded = [replace(item, baseline=references[item.name]) if item.name in bounds else item for item in judged]
    exact = {name for name, found in verdict.outputs.items() if found.identical and references is baseline}
    beyond = _judge_bounds(bound, surrounded, exact, bounds, options, result)
    for item in surrounded:
        if item.name in beyond and verdict.outputs[item.name].passed:  # a failing one has its diagnosis
            result["outputs"][item.name] |= _explained(beyond[item.name], partial(explainer.first, item))
    if beyond and options.bound == "fail" and result["status"] in ("pass", "mistrusted", "fail"):
        result["status"] = "fail"
        reasons += [f"{name}: beyond the error bound, {result['outputs'][name]['bound_sentence']}" for name in beyond]
    if reasons:
        result["reason"] = "; ".join(reasons)
    return result


def diagnosed(item: OutputUnderTest, explainer: Explainer, sentinels: Array | None) -> Diagnosis | None:
    """What is wrong with a compared output, with what explains it; None as of `diagnose`."""
    return diagnose(
        item.baseline,
        item.output,
        item.criteria,
        loose_nan=explainer.options.loose_nan,
        sentinels=sentinels,
        alternatives=_other_modes(explainer.bound, explainer.inputs, item),
        explain=partial(explainer.first, item),
    )


def _explained(sentence: str, explain: Explain) -> dict[str, Any]:
    """The keys bound_sentence and explanations of an output that passes beyond its error bound."""
    try:
        patterns = explain()
    except Exception as raised:  # the output is beyond its bound with or without an explanation
        return {"bound_sentence": f"{sentence}; no explanation, which raised {describe(raised)}"}
    return {
        "bound_sentence": "; ".join([sentence, *(pattern.text for pattern in patterns)]),
        "explanations": [{"word": pattern.word, "text": pattern.text} for pattern in patterns],
    }


def _judge_bounds(
    bound: BoundCase,
    judged: Sequence[OutputUnderTest],
    exact: Collection[str],
    bounds: Mapping[str, Array],
    options: CaseOptions,
    result: dict[str, Any],
) -> dict[str, str]:
    """Enter the ratios of errors and bounds into a result; return a sentence per output that is beyond its bound.

    exact: the outputs that are known to have no error.
    """
    beyond: dict[str, str] = {}
    known = False
    for item in judged:
        record = result["outputs"].get(item.name)
        limit = bounds.get(item.name)
        if record is None:
            continue
        if limit is None or item.output.shape != item.baseline.shape or item.output.dtype != item.baseline.dtype:
            record["bound_ratio"] = None
            continue
        found = EXACT if item.name in exact else bound_ratio(item.baseline, item.output, limit)
        if found.index is None and says_nothing(limit):
            record["bound_ratio"] = None
            continue
        known = True
        record |= found.as_record()
        if found.beyond:
            beyond[item.name] = record["bound_sentence"] = found.sentence(options.accumulate or bound.accumulate)
    result["beyond_bound"] = bool(beyond) if known else None
    return beyond


def decided(output: Array, expected: Array, undecided: Array) -> Array:
    """The output with what is expected in place of its undecided elements: they are never held against it."""
    return np.where(undecided, expected, output)


def outputs_under_test(
    bound: BoundCase,
    baseline: Arrays,
    buffers: Mapping[str, OutputBuffer],
    options: CaseOptions,
    undecided: Mapping[str, Array] | None = None,
) -> list[OutputUnderTest]:
    """The compared outputs with their baselines; those of a rulebook are brought into comparable form.

    undecided elements are those of the baseline, whatever the implementation wrote.
    """
    specs = {} if bound.operator is None else bound.operator.contract.tensors
    found = {name: buffer.defined for name, buffer in buffers.items()}
    # Guards against an implementation that returns arrays; today all write into the buffers.
    shared = {name for name, array in baseline.items() if np.may_share_memory(array, found[name])}
    if has_undefined_parts(bound) and baseline.keys() >= set(RULEBOOK):
        canonical = not set(RULEBOOK).isdisjoint(options.canonical)
        baseline, found = rulebook(baseline, found, canonical=canonical, strict_tail=options.strict_tail)
    undecided = undecided or {}
    for name in undecided.keys() & baseline.keys():
        found[name] = decided(found[name], baseline[name], undecided[name])
    return [
        OutputUnderTest(
            name,
            baseline[name],
            found[name],
            bound.criteria[name],
            record.dtype.name,
            specs[name].expected_zero_fraction if name in specs else 0.0,
            name in shared,
            signed_zero=_is_copy(bound, name) and not options.loose_zero,
            undecided=undecided.get(name),
        )
        for name, record in bound.outputs.items()
        if name in baseline
    ]


def _is_copy(bound: BoundCase, name: str) -> bool:
    """Whether the output is a copy of inputs to the bit: a threshold of 0, category pure_io."""
    exact = any(criterion.threshold == 0 for criterion in bound.criteria[name])
    return exact and bound.operator is not None and bound.operator.contract.category == "pure_io"


def judge(bound: BoundCase, judged: Sequence[OutputUnderTest], options: CaseOptions, *, threads: int = 1) -> Verdict:
    """The verdict on the outputs, without a diagnosis."""
    return judge_case(judged, exempt=bound.may_be_constant, loose_nan=options.loose_nan, threads=threads)


def has_undefined_parts(bound: BoundCase) -> bool:
    """Whether the outputs are a rulebook: elements after the defined pairs may have any value."""
    return bound.operator is not None and any(each.compare == "rulebook" for each in bound.operator.contract.outputs)


def counts_differ(bound: BoundCase, baseline: Arrays, returned: Mapping[str, int]) -> str:
    """Why a returned count (num_act_out) is wrong, empty where none is; checked before the outputs."""
    for parameter in bound.operator.contract.parameters if bound.operator is not None else ():
        if parameter.output is not None and parameter.name in returned:
            tensor, dim = parameter.output
            expected, found = baseline[tensor].shape[dim], returned[parameter.name]
            if found != expected:
                return f"{parameter.name} is {found}, expected {expected}"
    return ""


def missing_counts(bound: BoundCase, baseline: Arrays, returned: Mapping[str, int]) -> list[str]:
    """The counts (num_act_out) that the implementation should return and left out: nothing checks them."""
    expected = {} if bound.operator is None else bound.operator.contract.counts(baseline)
    return [name for name in expected if name not in returned]


def _other_modes(
    bound: BoundCase, inputs: Mapping[str, Array | None], item: OutputUnderTest
) -> dict[str, Callable[[], Array | None]]:
    """The output with another legal value of a parameter, by which the diagnosis recognises a swapped mode.

    A call gives None where the other mode takes no such values, or lacks the output. None for large outputs: another
    baseline is as large as the first, and judging is to take little memory.
    """
    operator = bound.operator
    if operator is None or any(array is None for array in inputs.values()) or item.baseline.nbytes > _TRIED:
        return {}

    def computed(params: dict[str, Any]) -> Callable[[], Array | None]:
        def compute() -> Array | None:
            try:
                return bound.computed(inputs, params).get(item.name)
            except InputError:
                return None

        return compute

    return {
        f"{parameter.name} = {word}": computed(params)
        for parameter in operator.contract.passed_parameters
        for word, value in (parameter.choices or {}).items()
        if value != bound.params.get(parameter.name)
        and not violations(operator.contract, bound.descriptors, params := {**bound.params, parameter.name: value})
    }
