"""--relations: calls the implementation on related inputs, and holds its outputs against those of the case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from generators.contracts.relations import RelatedCall, Relation, related_calls
from mluops_cli.core.case_options import CaseOptions
from mluops_cli.core.record import BROKEN, HOLDS, NOT_RUN
from mluops_cli.execution.case.adjoint import unlike_adjoint
from mluops_cli.execution.case.calls import Prepared, Result
from mluops_cli.execution.case.judgement import decided, has_undefined_parts
from mluops_cli.execution.case.output_buffers import Array, OutputBuffer
from mluops_cli.execution.case.related_call import Outputs, called
from mluops_cli.execution.case.related_outputs import difference, pairs_differ, pairs_of, with_numbers
from mluops_cli.execution.kernel_process.timed_call import Kernel
from mluops_cli.implementations.base import CannotShow

_COPIED: Final = np.zeros((), np.float32)  # the bound of copies
_NOTHING: Final = ("zero", "outside")  # no element of the related call is undecided


def check_relations(prepared: Prepared, implementation: Kernel, options: CaseOptions) -> Result:
    """The record's key `relations` of a case whose last call was right, with status and reason where one is broken.

    A relation is left out where the case is too small for it, and where the related call is outside the contract. Where
    the implementation can't be given the call, or does not support it, the relation is `not run: ` and why.
    """
    bound = prepared.bound
    if bound.operator is None or not bound.valid or not _plain(prepared):
        return {}
    bounds = prepared.all_bounds(options)
    verdicts: dict[str, str] = {}
    for relation in bound.operator.contract.given(bound.params).relations:
        if relation.adjoint:
            accumulate = options.accumulate or bound.accumulate
            with prepared.memory.scope():
                verdict = unlike_adjoint(prepared, implementation, relation, bounds, accumulate)
        else:
            verdict = _related(prepared, implementation, relation, bounds, loose_zero=options.loose_zero)
        if verdict is not None:
            verdicts[relation.name] = verdict
    failures = [f"relation {name} is {text}" for name, text in verdicts.items() if text.startswith(BROKEN)]
    return {"relations": verdicts} | ({"status": "fail", "reason": "; ".join(failures)} if failures else {})


def _related(
    prepared: Prepared,
    implementation: Kernel,
    relation: Relation,
    bounds: Mapping[str, Array],
    *,
    loose_zero: bool,
) -> str | None:
    """The verdict on a relation; None where no call tries it."""
    bound, verdict, untried = prepared.bound, None, ""
    assert bound.operator is not None
    contract = bound.operator.contract
    inputs = {name: array for name, array in prepared.call.inputs.items() if array is not None}
    env = contract.bind(bound.shapes, bound.params)
    fills = {each.name: each.fill for each in contract.outputs if each.fill is not None}
    for related in related_calls(relation, inputs, bound.params, env, bound.seed, fills):
        try:
            with prepared.memory.scope():
                broken = _broken(prepared, implementation, related, bounds, loose_zero=loose_zero)
        except CannotShow as reason:
            untried = untried or f"{NOT_RUN}{related.text}: {reason}"
            continue
        if broken:
            return f"{BROKEN}{related.text}: {broken}"
        verdict = verdict if broken is None else HOLDS
    return untried or verdict


def _broken(
    prepared: Prepared, kernel: Kernel, related: RelatedCall, bounds: Mapping[str, Array], *, loose_zero: bool
) -> str | None:
    """How a related call breaks the relation, empty where it doesn't; None where the contract excludes the call."""
    found = _outputs(prepared, kernel, related)
    if found is None or isinstance(found, str):
        return found
    return next(_differences(prepared, related, found, bounds, loose_zero=loose_zero), "")


def _plain(prepared: Prepared) -> bool:
    """Whether all tensors are there, dense and not empty."""
    records = prepared.bound.records.values()
    given = [*prepared.outputs.values(), *(array for array in prepared.call.inputs.values() if array is not None)]
    return (
        len(given) == len(records)
        and not prepared.call.faults
        and all(each.elements and each.strides is None for each in records)
    )


def _outputs(prepared: Prepared, implementation: Kernel, related: RelatedCall) -> Outputs:
    """The outputs of a related call of the case's operator."""
    bound = prepared.bound
    assert bound.operator is not None
    descriptors = {
        name: replace(each, dims=related.shape(name, each.dims))
        for name, each in bound.descriptors.items()
        if each is not None
    }
    return called(implementation, bound.operator.contract, related.inputs, related.params, descriptors, prepared.memory)


def _differences(
    prepared: Prepared,
    related: RelatedCall,
    found: Mapping[str, OutputBuffer],
    bounds: Mapping[str, Array],
    *,
    loose_zero: bool,
) -> Iterator[str]:
    """A sentence per output that breaks the relation."""
    if has_undefined_parts(prepared.bound):
        yield from _rulebooks(prepared, related, found)
        return
    for name, buffer in prepared.outputs.items():
        expected, limit = related.expected(name, buffer.array), bounds.get(name)
        output = found[name].array
        if name in prepared.undecided and related.relation.kind not in _NOTHING:
            output = decided(output, expected, related.moved(name, prepared.undecided[name]))
        if limit is not None and (limit.ndim or limit):
            limit = _bound(related, name, limit)
        text = difference(expected, output, limit, loose_zero=loose_zero)
        if not text and related.relation.kind == "zero" and name in bounds and limit is not None:
            # Where the bound of the case is 0, no term reaches the element, or one is copied: +0.
            unreached = decided(output, expected, np.broadcast_to(bounds[name] != 0, output.shape))
            text = difference(expected, unreached, _COPIED, loose_zero=loose_zero)
        if text:
            yield f"{name} {text}"


def _bound(related: RelatedCall, name: str, limit: Array) -> Array:
    """The error bound of a related output; where nothing reaches an output, bits are compared, as of copies."""
    if related.relation.kind == "outside":
        return _COPIED
    if related.relation.kind == "zero":
        return np.zeros_like(limit)  # a sum may give -0
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
    column = related.relation.columns.get("indices")
    if column is not None and related.item is not None:
        own = own[own[:, 1 + column] == related.item]
    elif column is not None and related.numbers is not None:
        own = with_numbers(own, column, related.numbers)
    if text := pairs_differ(own, other):
        yield text
