"""The outputs of one call judged: criteria, the contract's comparison rules, a diagnosis of what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from generators.binding import Bound
from generators.operator import Arrays
from mluops_cli.execution.buffers import Array, OutputBuffer
from mluops_cli.execution.settings import Judging
from mluops_cli.judging.diagnosis import diagnose
from mluops_cli.judging.rules import OUTPUTS as RULEBOOK
from mluops_cli.judging.rules import rulebook
from mluops_cli.judging.verdict import OutputUnderTest, judge_case

_EXEMPT: Final = ("boundary", "zero_element")  # suites whose baselines may well be constant


def judge_outputs(
    bound: Bound,
    inputs: Mapping[str, Array | None],
    baseline: Arrays,
    buffers: Mapping[str, OutputBuffer],
    options: Judging,
) -> dict[str, Any]:
    """Status, reason and figures of every output that counts, as a record holds them."""
    specs = {} if bound.operator is None else bound.operator.contract.tensors
    found = {name: buffer.array for name, buffer in buffers.items()}
    if has_undefined_parts(bound):
        canonical = not set(RULEBOOK).isdisjoint(options.canonical)
        baseline, found = rulebook(baseline, found, canonical=canonical)
    judged = [
        OutputUnderTest(
            name,
            baseline[name],
            found[name],
            bound.criteria[name],
            record.dtype.name,
            specs[name].natural_zeros if name in specs else 0.0,
        )
        for name, record in bound.outputs.items()
        if name in baseline
    ]
    verdict = judge_case(judged, exempt=bound.suite in _EXEMPT)
    result = verdict.as_record()
    for item in judged:
        compared = verdict.outputs[item.name]
        if compared.passed or compared.empty:
            continue
        others = _other_modes(bound, inputs, item.name)
        sentinel = buffers[item.name].sentinel
        diagnosis = diagnose(item.baseline, item.output, item.criteria, sentinel=sentinel, alternatives=others)
        if diagnosis is not None:
            result["outputs"][item.name]["diagnosis"] = diagnosis.as_record() | {"words": diagnosis.words}
    return result


def has_undefined_parts(bound: Bound) -> bool:
    """Whether the outputs are a rulebook: what lies behind the defined pairs may hold anything."""
    return bound.operator is not None and any(each.compare == "rulebook" for each in bound.operator.contract.outputs)


def counts_differ(bound: Bound, baseline: Arrays, returned: Mapping[str, int]) -> str:
    """Why a count that was returned (num_act_out) is wrong, looked at before the outputs; empty where none is."""
    for parameter in bound.operator.contract.parameters if bound.operator is not None else ():
        if parameter.output is not None and parameter.name in returned:
            tensor, dim = parameter.output
            expected, found = baseline[tensor].shape[dim], returned[parameter.name]
            if found != expected:
                return f"{parameter.name} is {found}, expected {expected}"
    return ""


def _other_modes(bound: Bound, inputs: Mapping[str, Array | None], output: str) -> dict[str, Callable[[], Array]]:
    """What the output would be with another choice of a parameter, to recognise a swapped mode by."""
    operator = bound.operator
    if operator is None or any(array is None for array in inputs.values()):
        return {}
    given = {name: array for name, array in inputs.items() if array is not None}

    def computed(parameter: str, value: int) -> Callable[[], Array]:
        return lambda: operator.reference(given, {**bound.params, parameter: value})[output]

    return {
        f"{parameter.name} = {word}": computed(parameter.name, value)
        for parameter in operator.contract.passed_parameters
        for word, value in (parameter.choices or {}).items()
        if value != bound.params.get(parameter.name)
    }
