"""One case into its files: inputs drawn, baseline computed by the reference kernel, everything written whole."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import xxhash

from generators.casegen.node import (
    build_node,
    note_criteria,
    recipe,
    set_baseline_device,
    set_criteria,
    set_dims,
    short_place,
    sign,
)  # fmt: skip
from generators.casegen.thresholds import Metrics, dynamic_criteria
from generators.contracts.binding import Bound, bind
from generators.contracts.case import Case, TensorPlan
from generators.contracts.faults import tensors_with
from generators.contracts.model import LARGE, UNKNOWN, Contract, Env, Shape
from generators.contracts.operator import Array, Arrays, Operator
from generators.data.draw import draw, keyed_generator, lay_over
from generators.operator_registry import operator_named
from schemas.casefiles.enum_numbering import CURRENT
from schemas.casefiles.reading import CaseFile, read_case, write_case
from schemas.casefiles.tensors import span
from schemas.dtypes import DTYPES, dtype_named
from schemas.errors import InputError, MluopsError, SourceLocation, located
from schemas.protos import messages as proto
from schemas.status import SUCCESS
from schemas.version import __version__

FORMATS: Final = {"pb": (".pb",), "prototxt": (".prototxt",), "both": (".pb", ".prototxt")}
REFERENCE: Final = "reference kernel"

Entry = dict[str, Any]  # what the manifest says of a case


def generate(case: Case, out: Path, format: str, inline_limit: int, metrics: Metrics | None = None) -> Entry:
    """Write OUT/operator/suite/name.pb (.prototxt, or both) and return the case's manifest entry.

    A case that may succeed gets its baseline, any other no outputs. figures: what measures an output, for dynamic
    thresholds; None: those of the spec or the contract. InputError, with the spec's place, where the
    baseline's shapes differ from the planned ones; MluopsError where the reference kernel breaks its contract.
    """
    operator = operator_named(case.op)
    omitted = omitted_tensors(case)
    inputs = draw_inputs(case, operator, omitted)
    outputs: Mapping[str, Array | None] = dict.fromkeys(plan.name for plan in case.outputs)
    if SUCCESS in case.expect:
        shapes = {plan.name: plan.dims for plan in (*case.inputs, *case.outputs) if UNKNOWN not in plan.dims}
        with located(SourceLocation(case.place)):
            outputs = _baseline(operator, inputs, shapes, case.params)
        case = replace(case, outputs=tuple(_settled(plan, outputs[plan.name], case) for plan in case.outputs))
    baseline = SUCCESS in case.expect
    if metrics is not None and baseline:
        shapes = {plan.name: plan.dims for plan in (*case.inputs, *case.outputs)}
        env = operator.contract.bind(shapes, case.params)
        dtypes = {plan.name: plan.dtype for plan in case.outputs}
        criteria = dynamic_criteria(case.criteria, dtypes, operator, _held(inputs), env, _held(outputs), metrics)
        case = replace(case, criteria=criteria)
    node = build_node(case, operator.contract, baseline, per_output=metrics is not None)
    if baseline:
        _set_theory(node, operator, case.params, inputs, outputs)
    hashes = _hashes({plan.name: recipe(plan) for plan in case.inputs}, inputs, outputs)
    sign(node, hashes, sorted(omitted))
    files, size = _write(out, case.id, node, inputs, outputs, format, inline_limit)
    return {
        "files": files,
        "bytes": size,
        "expect": list(case.expect),
        "faults": list(map(str, case.faults)),
        "tags": list(case.tags),
        "params": dict(case.params),
        "place": short_place(case.place),
        "tensors": [
            _tensor_entry(plan.name, plan.dtype, plan.layout, plan.dims, hashes)
            for plan in (*case.inputs, *case.outputs)
        ],
    }


def complete(
    source: Path,
    name: str,
    manifest_meta: Mapping[str, Any] | None,
    out: Path,
    format: str,
    inline_limit: int,
    enum_numbering: str = CURRENT,
    metrics: Metrics | None = None,
) -> Entry:
    """Write an existing case file anew with its inputs stored and its baseline filled in; return its manifest entry.

    The tensors' ids, their order, the parameters, the criteria (the contract's where the file has none) and fields
    that we don't know are kept; so is a baseline that the file says it carries. name is that of a file without our
    metadata; noted, fields of CaseMeta by name, is what a manifest says of it; figures as in generate. InputError
    where the file is no legal case of an operator with a contract, or values and shapes disagree.
    """
    with read_case(source, enum_numbering) as file:
        bound = bind_known(file, name, manifest_meta)
        operator = bound.operator
        assert operator is not None
        warnings: list[str] = []
        inputs = bound.input_arrays(warnings.append)
        outputs: Mapping[str, Array | None] = dict.fromkeys(bound.outputs)
        node = proto.Node()
        node.CopyFrom(file.node)
        if SUCCESS in bound.expect:
            if bound.carries_baseline:
                outputs = {key: record.array() for key, record in bound.outputs.items()}
            else:
                with located(SourceLocation(str(source))):
                    outputs = _baseline(operator, inputs, _told_shapes(bound), bound.params)
                _adopt(node, bound, outputs)
            if not file.node.HasField("test_param") and not file.node.evaluation_criterion:
                set_criteria(node, list(bound.criteria.values()))
            set_baseline_device(node)
            _set_theory(node, operator, bound.params, inputs, outputs)
        hashes = _hashes({key: _source(bound, key) for key in bound.inputs}, inputs, outputs)
        if file.meta is None:
            meta = proto.CaseMeta(suite=bound.suite, name=bound.name, expect=bound.expect, version=__version__)
            proto.set_meta(node, meta)
        if metrics is not None and SUCCESS in bound.expect:
            _set_dynamic_criteria(node, bound, inputs, outputs, metrics)
        sign(node, hashes, sorted(bound.omitted))
        files, size = _write(out, bound.id, node, inputs, outputs, format, inline_limit)
        return {
            "files": files,
            "bytes": size,
            "expect": list(bound.expect),
            "faults": list(map(str, bound.faults)),
            "tags": list(bound.tags),
            "params": dict(bound.params),
            "place": source.name,
            **({"warnings": [text.removeprefix(f"{source.parent}/") for text in warnings]} if warnings else {}),
            "tensors": [
                _tensor_entry(key, record.dtype.name, record.layout, tuple(tensor.shape.dims), hashes)
                for (key, record), tensor in zip(
                    (*bound.inputs.items(), *bound.outputs.items()), (*node.input, *node.output), strict=True
                )
            ],
        }


def _set_dynamic_criteria(
    node: Any, bound: Bound, inputs: Mapping[str, Array | None], outputs: Mapping[str, Array | None], metrics: Metrics
) -> None:
    """Replace the thresholds of an existing file by dynamic ones."""
    assert bound.operator is not None
    env = bound.operator.contract.bind(_told_shapes(bound), bound.params)
    dtypes = {name: record.dtype.name for name, record in bound.outputs.items()}
    criteria = dynamic_criteria(bound.criteria, dtypes, bound.operator, _held(inputs), env, _held(outputs), metrics)
    set_criteria(node, list(criteria.values()), per_output=True)
    meta = proto.get_meta(node)
    # The metadata names outputs by the ids that the file gives them.
    note_criteria(meta, {bound.outputs[name].id: own for name, own in criteria.items()})


def bind_known(file: CaseFile, name: str, manifest_meta: Mapping[str, Any] | None) -> Bound:
    """Bind a file whose operator must have a contract; InputError naming the file where it has none."""
    if file.meta is None and manifest_meta is not None:
        proto.set_meta(file.node, proto.CaseMeta(**manifest_meta))
    try:
        operator = operator_named(file.op)
    except InputError as error:
        raise InputError(f"no baseline can be made: {error.message}", SourceLocation(str(file.path))) from None
    return bind(file, operator, name)


def omitted_tensors(case: Case) -> frozenset[str]:
    """The tensors that a case's file holds no data of on purpose: too large ones, and null pointers."""
    nulls = tensors_with("null_pointer", case.faults)
    plans = (*case.inputs, *case.outputs)
    return frozenset(plan.name for plan in plans if plan.name in nulls or plan.descriptor.elements >= LARGE)


def case_bytes(case: Case) -> int:
    """Bytes of the tensors that the case's file holds; sizes that only the data tell count as 0."""
    omitted = omitted_tensors(case)
    plans = (*case.inputs, *case.outputs) if SUCCESS in case.expect else case.inputs
    return sum(tensor_bytes(plan) for plan in plans if plan.name not in omitted)


def draw_inputs(case: Case, operator: Operator, omitted: frozenset[str] = frozenset()) -> dict[str, Array | None]:
    """The case's inputs by name, None for withheld ones; each depends on (seed, case id, tensor) alone.

    InputError, with the spec's place, where an input has no values or they can't be drawn.
    """
    arrays: dict[str, Array | None] = {}
    env = operator.contract.bind({plan.name: plan.dims for plan in (*case.inputs, *case.outputs)}, case.params)
    for plan in case.inputs:
        arrays[plan.name] = None if plan.name in omitted else _draw(plan, case, operator, env, arrays)
    return arrays


def _draw(plan: TensorPlan, case: Case, operator: Operator, env: Env, arrays: Mapping[str, Array | None]) -> Array:
    key = (case.seed, case.id, plan.name)
    if plan.values is None:
        dtype = dtype_named(plan.dtype)
        if plan.descriptor.elements or dtype is None:
            raise InputError(f"input {plan.name} has no values", SourceLocation(case.place))
        return np.empty(plan.dims, dtype.storage)
    if plan.values.kind == "recipe":
        word = plan.values.args[0]
        given = {name: array for name, array in arrays.items() if array is not None}
        drawn = operator.draw(plan.name, word, env, keyed_generator(key), given)
        if drawn is None:
            raise InputError(f"{case.op} has no recipe {word!r} for {plan.name}", SourceLocation(case.place))
        drawn = np.ascontiguousarray(drawn)
        lay_over(plan.values, drawn.reshape(-1), key)
        return drawn
    try:
        return draw(plan.values, plan.dims, plan.dtype, key)
    except InputError as error:
        raise InputError(f"{case.id}: {plan.name}: {error.message}", SourceLocation(case.place)) from None


def _baseline(
    operator: Operator, inputs: Mapping[str, Array | None], shapes: Mapping[str, Shape], params: Mapping[str, Any]
) -> Arrays:
    """The reference kernel's outputs in the contract's order.

    InputError where the inputs' values are outside the contract, MluopsError where the kernel returns other outputs.
    """
    given = {name: array for name, array in inputs.items() if array is not None}
    contract = operator.contract
    operator.check_values(given, contract.bind(shapes, params))
    outputs = operator.baseline(given, shapes, params)
    wanted = [tensor.name for tensor in contract.outputs]
    if set(outputs) != set(wanted):
        raise MluopsError(f"reference kernel of {contract.op} returns {sorted(outputs)}, its contract says {wanted}")
    return {name: outputs[name] for name in wanted}


def _settled(plan: TensorPlan, array: Array, case: Case) -> TensorPlan:
    """The output's plan with the sizes that only the data tell; InputError where the baseline's shape is another."""
    _check_output(
        plan.name, plan.dims, plan.dtype, array, f"{case.id}: ", SourceLocation(case.place) if case.place else None
    )
    return replace(plan, dims=array.shape)


def _held(arrays: Mapping[str, Array | None]) -> Arrays:
    return {name: array for name, array in arrays.items() if array is not None}


def _told_shapes(bound: Bound) -> dict[str, Shape]:
    """The shapes of a file's tensors, without those outputs whose sizes only the data tell."""
    assert bound.operator is not None
    contract = bound.operator.contract
    given = {key: record.shape for key, record in bound.inputs.items()}
    env = contract.bind(given, bound.params)
    known = {key: each.shape for key, each in bound.outputs.items() if UNKNOWN not in contract.shape(key, env)}
    return given | known


def _adopt(node: Any, bound: Bound, outputs: Arrays) -> None:
    """Take the baseline's shapes into the file where only the data tell them; InputError where others contradict."""
    told = _told_shapes(bound)
    for (name, record), tensor in zip(bound.outputs.items(), node.output, strict=True):
        dims = told.get(name, (UNKNOWN,) * len(record.shape))
        _check_output(name, dims, record.dtype.name, outputs[name], "", record.place)
        set_dims(tensor, outputs[name].shape)


def _check_output(name: str, dims: Shape, dtype: str, array: Array, who: str, place: SourceLocation | None) -> None:
    same = len(dims) == array.ndim and all(a in (UNKNOWN, b) for a, b in zip(dims, array.shape, strict=True))
    if not same:
        raise InputError(f"{who}{name} has shape {list(dims)}, the baseline {list(array.shape)}", place)
    if array.dtype != DTYPES[dtype].storage:
        raise InputError(f"{who}{name} has dtype {dtype}, the baseline {array.dtype}", place)


def _set_theory(
    node: Any,
    operator: Operator,
    params: Mapping[str, Any],
    inputs: Mapping[str, Array | None],
    outputs: Mapping[str, Array | None],
) -> None:
    contract: Contract = operator.contract
    arrays = {name: array for name, array in (*inputs.items(), *outputs.items()) if array is not None}
    env = contract.bind({name: array.shape for name, array in arrays.items()}, params)
    given = {name: array for name, array in arrays.items() if name in inputs}
    computed = {name: array for name, array in arrays.items() if name in outputs}
    node.theory_io_size = operator.theory_io_bytes(env, given, computed)
    node.theory_compute_ops = operator.theory_ops(env, given, computed)


def _hashes(
    recipes: Mapping[str, str], inputs: Mapping[str, Array | None], outputs: Mapping[str, Array | None]
) -> dict[str, tuple[str, str]]:
    """(recipe, hash) of every tensor that has data."""
    arrays = {name: array for name, array in (*inputs.items(), *outputs.items()) if array is not None}
    return {name: (recipes.get(name, REFERENCE), hash_array(array)) for name, array in arrays.items()}


def hash_array(array: Array) -> str:
    """xxh3_128 of the array's bytes in C order, hex."""
    return xxhash.xxh3_128_hexdigest(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def _source(bound: Bound, name: str) -> str:
    """How the input of an existing file came about: drawn as it asked for, or stored there."""
    record = bound.inputs[name]
    if record.source == "random_data":
        return f"random_data {' '.join(proto.print_text(record.random).split())}"
    return "stored"


def _tensor_entry(
    name: str, dtype: str, layout: str, dims: Sequence[int], hashes: Mapping[str, tuple[str, str]]
) -> Entry:
    entry: Entry = {"name": name, "dtype": dtype, "layout": layout, "shape": list(dims)}
    return {**entry, "hash": hashes[name][1]} if name in hashes else entry


def tensor_bytes(plan: TensorPlan) -> int:
    dims = tuple(max(0, size) for size in plan.dims)
    return math.ceil(span(dims, plan.strides) * DTYPES[plan.dtype].width)


def _write(
    out: Path,
    case_id: str,
    node: Any,
    inputs: Mapping[str, Array | None],
    outputs: Mapping[str, Array | None],
    format: str,
    inline_limit: int,
) -> tuple[list[str], int]:
    """Write the case in each format; its files relative to OUT, and their bytes."""
    files: dict[str, int] = {}
    for suffix in FORMATS[format]:
        path = out / f"{case_id}{suffix}"
        written = write_case(path, node, list(inputs.values()), list(outputs.values()), inline_limit=inline_limit)
        for file in written.files:
            files[file.relative_to(out).as_posix()] = file.stat().st_size
    return sorted(files), sum(files.values())
