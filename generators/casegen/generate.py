"""One planned case into its files: inputs drawn, baseline computed by the reference kernel, files written whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from generators.casegen.case_data import draw_inputs, omitted_tensors
from generators.casegen.case_writer import CaseContent, MaybeArrays, set_theory, write_content
from generators.casegen.manifest import Entry
from generators.casegen.node import build_node, origin, short_place
from generators.casegen.node import recipe as input_recipe
from generators.casegen.thresholds import Metrics, dynamic_criteria
from generators.casegen.write_options import WriteOptions
from generators.contracts.case import Case
from generators.contracts.operator import Array, Operator
from generators.contracts.outputs import fitted, padded
from generators.operator_registry import operator_named
from schemas.errors import InputError, SourceLocation, located
from schemas.status import SUCCESS
from schemas.suggest import counted


def generate(case: Case, options: WriteOptions, metrics: Metrics | None = None, recipe: str = "") -> Entry:
    """Write OUT/operator/suite/name.pb (.prototxt, or both) and return the case's manifest entry.

    A case that may succeed gets its baseline, any other no outputs. metrics measures an output; only dynamic thresholds
    need it. recipe is the case's (casegen/recipes.py), for its entry. InputError, with the spec's place, where the
    baseline's shapes differ from the planned ones; MluopsError where the reference kernel breaks its contract.
    """
    operator = operator_named(case.op)
    omitted = omitted_tensors(case)
    inputs = draw_inputs(case, operator, omitted)
    if operator.contract.computed_parameters:
        case = replace(case, params=operator.all_params(inputs, case.shapes(operator.contract), case.params))
    outputs: MaybeArrays = dict.fromkeys(plan.name for plan in case.outputs)
    baseline = SUCCESS in case.expect
    dynamic = options.dynamic_thresholds
    if baseline:
        case, outputs = _with_baseline(case, operator, inputs)
        if dynamic:
            assert metrics is not None
            case = _with_dynamic_criteria(case, operator, inputs, outputs, metrics)
    defined = {name: array for name, array in outputs.items() if array is not None}
    node = build_node(case, operator.contract, baseline, operator.contract.counts(defined), per_output=dynamic)
    bounds: Mapping[str, Array] = {}
    if baseline:
        if options.bounds:
            shapes = {plan.name: plan.dims for plan in case.plans}
            bounds = operator.bounds(inputs, shapes, case.params, outputs, case.accumulate)
        set_theory(node, operator, case.params, inputs, outputs)
        outputs = {plan.name: padded(defined[plan.name], plan.dims) for plan in case.outputs}
    content = CaseContent(
        id=case.id,
        node=node,
        inputs=inputs,
        outputs=outputs,
        recipes={plan.name: input_recipe(plan) for plan in case.inputs},
        omitted=omitted,
        expect=case.expect,
        faults=case.faults,
        tags=case.tags,
        params=case.params,
        place=short_place(case.place),
        origin=origin(case.spec) if case.spec is not None else "",
        bounds=bounds,
        tensors=[(plan.name, plan.dtype, plan.layout, plan.dims) for plan in case.plans],
        recipe=recipe,
    )
    return write_content(content, options)


def _with_baseline(case: Case, operator: Operator, inputs: MaybeArrays) -> tuple[Case, Mapping[str, Array]]:
    """The case with the sizes that only the data tell, and its baseline without the rows that a capacity adds."""
    with located(SourceLocation(case.place)):
        computed = operator.baseline(inputs, case.shapes(operator.contract), case.params)
        _refuse_undecided(case, operator, inputs)
    place = SourceLocation(case.place) if case.place else None
    plans, outputs = [], {}
    for plan in case.outputs:
        capacities = operator.contract.capacities(plan.name) if plan.capacity else ()
        array = computed[plan.name]
        outputs[plan.name] = fitted(f"{case.id}: {plan.name}", plan.dims, plan.dtype, array, place, capacities)
        plans.append(plan if plan.capacity else replace(plan, dims=array.shape))
    return replace(case, outputs=tuple(plans)), outputs


def _refuse_undecided(case: Case, operator: Operator, inputs: MaybeArrays) -> None:
    """InputError where correct kernels may disagree about NaN and Inf: the case would test nothing there."""
    for name, mask in operator.undecided_elements(inputs, case.shapes(operator.contract), case.params).items():
        at = list(map(int, np.argwhere(mask)[0]))
        number = counted(int(np.count_nonzero(mask)), "element")
        raise InputError(
            f"{number} of {name}, the first at {at}, may or may not be NaN or Inf in a correct kernel: a "
            "coordinate may round to either side of a pixel there; use a grid that is exact, such as dyadic values "
            "with H-1 and W-1 powers of two"
        )


def _with_dynamic_criteria(
    case: Case, operator: Operator, inputs: MaybeArrays, outputs: Mapping[str, Array], metrics: Metrics
) -> Case:
    env = operator.contract.bind(case.shapes(operator.contract), case.params)
    dtypes = {plan.name: plan.dtype for plan in case.outputs}
    given = {name: array for name, array in inputs.items() if array is not None}
    return replace(case, criteria=dynamic_criteria(case.criteria, dtypes, operator, given, env, dict(outputs), metrics))
