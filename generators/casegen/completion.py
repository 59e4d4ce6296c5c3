"""One existing case file written anew: its inputs stored, its baseline filled in, its manifest entry returned."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from generators.casegen.case_writer import CaseContent, MaybeArrays, set_theory, write_content
from generators.casegen.manifest import Entry
from generators.casegen.node import Criteria, set_baseline_device, set_counts, set_criteria, set_meta_criteria
from generators.casegen.thresholds import Metrics, dynamic_criteria
from generators.casegen.write_options import WriteOptions
from generators.contracts.binding import bind
from generators.contracts.bound_case import BoundCase
from generators.contracts.operator import Array, Arrays
from generators.contracts.outputs import padded
from generators.operator_registry import operator_named
from schemas.casefiles.reading import CaseFile, read_case
from schemas.casefiles.requested_criteria import criteria_of
from schemas.errors import InputError, SourceLocation, located
from schemas.protos import messages as proto
from schemas.status import SUCCESS
from schemas.version import DATA_VERSION, __version__


def complete(
    source: Path,
    name: str,
    manifest_meta: Mapping[str, Any] | None,
    options: WriteOptions,
    metrics: Metrics | None = None,
) -> Entry:
    """Write an existing case file anew with its inputs stored and its baseline filled in; return its manifest entry.

    The tensors' ids, their order, the parameters, the criteria (the contract's where the file has none) and fields
    that we don't know are kept; so is a baseline that the file says it carries. name is that of a file without our
    metadata; manifest_meta, fields of CaseMeta by name, is what a manifest says of it; metrics as in generate.
    InputError where the file is no legal case of an operator with a contract, or values and shapes disagree.
    """
    with read_case(source, options.enum_numbering) as file:
        bound = bind_known(file, name, manifest_meta)
        operator = bound.operator
        assert operator is not None
        warnings: list[str] = []
        inputs = bound.input_arrays(warnings.append)
        outputs: dict[str, Array | None] = dict.fromkeys(bound.outputs)
        bounds: dict[str, Array] = {}
        node = proto.Node()
        node.CopyFrom(file.node)
        if file.meta is None:
            meta = proto.CaseMeta(
                suite=bound.suite,
                name=bound.name,
                expect=bound.expect,
                version=__version__,
                data_version=DATA_VERSION,
            )
            proto.set_meta(node, meta)
        if SUCCESS in bound.expect:
            with located(SourceLocation(str(source))):
                baseline = bound.baseline(inputs)
            outputs |= {key: padded(array, bound.outputs[key].shape) for key, array in baseline.items()}
            if options.bounds:
                found = bound.error_bounds(inputs, bound.references(inputs, baseline))
                bounds = {bound.outputs[key].id: array for key, array in found.items()}
            set_counts(node, operator.contract, operator.contract.counts(baseline))
            if not any(criteria_of(file)):
                _store_criteria(node, bound, bound.criteria)
            set_baseline_device(node)
            set_theory(node, operator, bound.params, inputs, dict.fromkeys(outputs) | baseline)
            if options.dynamic_thresholds:
                assert metrics is not None
                _set_dynamic_criteria(node, bound, inputs, baseline, metrics)
        records = (*bound.inputs.items(), *bound.outputs.items())
        content = CaseContent(
            id=bound.id,
            node=node,
            inputs=inputs,
            outputs=outputs,
            recipes={key: _recipe(bound, key) for key in bound.inputs} | _kept_recipes(bound),
            omitted=bound.omitted,
            expect=bound.expect,
            faults=bound.faults,
            tags=bound.tags,
            params=bound.params,
            place=source.name,
            bounds=bounds,
            tensors=[
                (key, record.dtype.name, record.layout, tuple(tensor.shape.dims))
                for (key, record), tensor in zip(records, (*node.input, *node.output), strict=True)
            ],
            warnings=[text.removeprefix(f"{source.parent}/") for text in warnings],
        )
        return write_content(content, options)


def bind_known(file: CaseFile, name: str, manifest_meta: Mapping[str, Any] | None) -> BoundCase:
    """Bind a file whose operator must have a contract; InputError naming the file where it has none."""
    file.take_metadata(manifest_meta)
    try:
        operator = operator_named(file.op)
    except InputError as error:
        raise InputError(f"no baseline can be made: {error.message}", SourceLocation(str(file.path))) from None
    return bind(file, operator, name)


def _set_dynamic_criteria(node: Any, bound: BoundCase, inputs: MaybeArrays, baseline: Arrays, metrics: Metrics) -> None:
    """Replace the thresholds of an existing file by dynamic ones."""
    assert bound.operator is not None
    contract = bound.operator.contract
    env = contract.bind(contract.known(bound.shapes), bound.params)
    dtypes = {name: record.dtype.name for name, record in bound.outputs.items()}
    given = {name: array for name, array in inputs.items() if array is not None}
    criteria = dynamic_criteria(bound.criteria, dtypes, bound.operator, given, env, baseline, metrics)
    _store_criteria(node, bound, criteria, per_output=True)


def _store_criteria(node: Any, bound: BoundCase, criteria: Criteria, *, per_output: bool = False) -> None:
    """Write criteria where other readers look, and all of them into the metadata, by the ids of the file's outputs."""
    set_criteria(node, list(criteria.values()), per_output=per_output)
    set_meta_criteria(proto.get_meta(node), {bound.outputs[name].id: own for name, own in criteria.items()})


def _kept_recipes(bound: BoundCase) -> dict[str, str]:
    """How the outputs that the file carries came about; none where they are computed anew."""
    meta = bound.file.meta
    known = {origin.tensor: origin.recipe for origin in meta.origins} if meta is not None else {}
    return {name: known.get(name, "stored") for name in bound.outputs} if bound.carries_baseline else {}


def _recipe(bound: BoundCase, name: str) -> str:
    """How the input of an existing file came about: drawn as it asked for, or stored there."""
    record = bound.inputs[name]
    if record.source == "random_data":
        return f"random_data {' '.join(proto.print_text(record.random).split())}"
    return "stored"
