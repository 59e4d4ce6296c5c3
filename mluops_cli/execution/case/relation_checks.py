"""--relations: calls the implementation on related inputs, and holds its outputs against those of the case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from generators.contracts.relations import RelatedCall, related_calls
from mluops_cli.core.case_options import CaseOptions
from mluops_cli.execution.case.adjoint import unlike_adjoint
from mluops_cli.execution.case.calls import Prepared, Result
from mluops_cli.execution.case.judgement import has_undefined_parts
from mluops_cli.execution.case.output_buffers import Array, OutputBuffer
from mluops_cli.execution.case.related_call import Outputs, called
from mluops_cli.execution.case.related_outputs import difference, pairs_differ, pairs_of
from mluops_cli.implementations.base import CannotShow, Implementation

HOLDS: Final = "holds"
BROKEN: Final = "broken: "


def check_relations(prepared: Prepared, implementation: Implementation, options: CaseOptions) -> Result:
    """The record's key `relations` of a case whose last call was right, with status and reason where one is broken.

    A relation is left out where the case is too small for it, where the related call is outside the contract, and where
    the implementation can't be given it.
    """
    bound = prepared.bound
    if bound.operator is None or not bound.valid or not _plain(prepared):
        return {}
    inputs = {name: array for name, array in prepared.call.inputs.items() if array is not None}
    bounds = prepared.bounds or bound.error_bounds(inputs, prepared.baseline, options.accumulate)
    env = bound.operator.contract.bind(bound.shapes, bound.params)
    verdicts: dict[str, str] = {}
    for relation in bound.operator.contract.relations:
        for related in related_calls(relation, inputs, bound.params, env, bound.seed):
            try:
                found = _outputs(prepared, implementation, related)
            except CannotShow:
                break
            if found is None:
                break
            broken = found if isinstance(found, str) else next(_differences(prepared, related, found, bounds), "")
            verdicts[relation.name] = f"{BROKEN}{related.text}: {broken}" if broken else HOLDS
            if broken:
                break
        if relation.adjoint:
            unlike = unlike_adjoint(prepared, implementation, relation, bounds, options.accumulate or bound.accumulate)
            verdicts |= {} if unlike is None else {relation.name: f"{BROKEN}{unlike}" if unlike else HOLDS}
    failures = [f"relation {name} is {text}" for name, text in verdicts.items() if text != HOLDS]
    return {"relations": verdicts} | ({"status": "fail", "reason": "; ".join(failures)} if failures else {})


def _plain(prepared: Prepared) -> bool:
    """Whether all tensors are there, dense and not empty."""
    records = prepared.bound.records.values()
    given = [*prepared.outputs.values(), *(array for array in prepared.call.inputs.values() if array is not None)]
    return (
        len(given) == len(records)
        and not prepared.call.faults
        and all(each.elements and each.strides is None for each in records)
    )


def _outputs(prepared: Prepared, implementation: Implementation, related: RelatedCall) -> Outputs:
    """The outputs of a related call of the case's operator."""
    bound = prepared.bound
    assert bound.operator is not None
    descriptors = {
        name: replace(each, dims=related.shape(name, each.dims))
        for name, each in bound.descriptors.items()
        if each is not None
    }
    return called(implementation, bound.operator.contract, related.inputs, related.params, descriptors)


def _differences(
    prepared: Prepared, related: RelatedCall, found: Mapping[str, OutputBuffer], bounds: Mapping[str, Any]
) -> Iterator[str]:
    """A sentence per output that breaks the relation."""
    if has_undefined_parts(prepared.bound):
        yield from _rulebooks(prepared, related, found)
        return
    for name, buffer in prepared.outputs.items():
        array, limit = buffer.array, bounds.get(name)
        if limit is not None and limit.ndim:
            limit = _bound(related, name, limit)
        if text := difference(related.expected(name, array), found[name].array, limit):
            yield f"{name} {text}"


def _bound(related: RelatedCall, name: str, limit: Array) -> Array:
    """The error bound of a related output; for zeros 0, in an array of the output's shape: a sum may give -0."""
    if related.relation.kind == "zero":
        return np.zeros_like(limit)
    if related.relation.kind == "scaling":
        return related.expected(name, limit)
    return related.moved(name, limit)


def _rulebooks(prepared: Prepared, related: RelatedCall, found: Mapping[str, OutputBuffer]) -> Iterator[str]:
    indices = prepared.call.inputs["indices"]
    assert indices is not None
    own = pairs_of(indices, {name: buffer.array for name, buffer in prepared.outputs.items()})
    other = pairs_of(related.inputs["indices"], {name: buffer.array for name, buffer in found.items()})
    for each in (own, other):
        if isinstance(each, str):
            yield each
            return
    assert not isinstance(own, str)
    assert not isinstance(other, str)
    if related.item is not None:
        own = own[own[:, 1 + related.relation.columns["indices"]] == related.item]
    if text := pairs_differ(own, other):
        yield text
