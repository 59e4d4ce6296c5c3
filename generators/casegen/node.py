"""The Node message of a case: everything of its file but the values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path, PurePath
from typing import Any, Final

import xxhash

from generators.contracts.case import Case, TensorPlan
from generators.contracts.file_parameters import parameter_message
from generators.contracts.model import Contract
from generators.data.draw import BIT_GENERATOR, recipe_text
from schemas.criteria import NAMES, Criterion
from schemas.dtypes import DTYPES
from schemas.errors import InputError, SourceLocation
from schemas.protos import messages as proto
from schemas.version import DATA_VERSION, __version__

NO_HASH: Final = "0" * 32  # as long as a hash is
_ENUMS: Final = {ours: theirs for theirs, ours in reversed(NAMES.items()) if theirs == ours.upper()}
Criteria = Mapping[str, tuple[Criterion, ...]]


def build_node(
    case: Case, contract: Contract, baseline: bool, counts: Mapping[str, int], *, per_output: bool = False
) -> Any:
    """The Node of a case with its metadata; the dims of outputs are those of the plans, hashes are left to set_origins.

    counts holds the parameters that count rows of outputs, as far as they are known. baseline tells whether the file
    will carry the outputs: its device is then GPU, so that every runner uses them.
    per_output: thresholds are stored with each output even where all agree. InputError, with the spec's place, where a
    size, a stride or a parameter is beyond its field.
    """
    node = proto.Node()
    node.op_name = case.op
    for tensors, plans in ((node.input, case.inputs), (node.output, case.outputs)):
        for plan in plans:
            with _fitting(case):
                _add_tensor(tensors.add(), plan)
    set_criteria(node, [case.criteria[plan.name] for plan in case.outputs], per_output=per_output)
    if baseline:
        set_baseline_device(node)
    meta = proto.CaseMeta(
        suite=case.suite,
        name=case.name,
        expect=case.expect,
        beyond_design=case.beyond_design or None,
        seed=case.seed,
        spec_digest=digest(case),
        version=__version__,
        data_version=DATA_VERSION,
        place=short_place(case.place),
        faults=map(str, case.faults),
        tags=case.tags,
        accumulate=case.accumulate,
    )
    set_meta_criteria(meta, {plan.name: case.criteria[plan.name] for plan in case.outputs})
    with _fitting(case):
        _set_params(node, meta, case, contract, counts)
    proto.set_meta(node, meta)
    return node


@contextmanager
def _fitting(case: Case) -> Iterator[None]:
    """Report a size, stride or parameter that is beyond its field as an error of the spec."""
    try:
        yield
    except (ValueError, OverflowError) as error:
        raise InputError(f"{case.id} doesn't fit into a case file: {error}", SourceLocation(case.place)) from None


def set_origins(node: Any, hashes: Mapping[str, tuple[str, str]], omitted: Sequence[str]) -> None:
    """Write into the metadata how each tensor was made, (recipe, hash) by name, and which ones are omitted."""
    meta = proto.get_meta(node)
    assert meta is not None
    del meta.origins[:]
    del meta.omitted[:]
    for tensor, (recipe, hashed) in hashes.items():
        meta.origins.add(tensor=tensor, recipe=recipe, hash=hashed)
    meta.omitted.extend(omitted)


def set_meta_criteria(meta: Any, criteria: Criteria) -> None:
    """Write the criteria of each output into the metadata, with their sources."""
    del meta.criteria[:]
    for output, own in criteria.items():
        for each in own:
            meta.criteria.add(output=output, name=each.name, threshold=each.threshold, source=each.source)


def recipe(plan: TensorPlan) -> str:
    """How an input is drawn, generator included: equal texts and keys give equal data."""
    return f"{recipe_text(plan.values)}; {BIT_GENERATOR}" if plan.values else ""


def set_baseline_device(node: Any) -> None:
    """State that the file carries its baseline, in both fields that readers look at."""
    node.device = node.DESCRIPTOR.fields_by_name["device"].enum_type.values_by_name["GPU"].number
    if node.HasField("test_param"):
        node.test_param.baseline_device = node.device


def set_criteria(node: Any, outputs: Sequence[tuple[Criterion, ...]], *, per_output: bool = False) -> None:
    """Write the criteria in place of any others: in test_param where all outputs have the same, else with each output.

    per_output: with each output in any case. Criteria that the interface has no number for are left out. An output that
    lacks a criterion of another output gets an infinite threshold for it.
    """
    for field in ("error_func", "error_threshold") if node.HasField("test_param") else ():
        node.test_param.ClearField(field)
    for field in ("evaluation_criterion", "evaluation_threshold"):
        node.ClearField(field)
    for tensor in node.output:
        tensor.thresholds.ClearField("evaluation_threshold")
    known = [{each.name: each.threshold for each in criteria if each.name in _ENUMS} for criteria in outputs]
    names = list(dict.fromkeys(name for thresholds in known for name in thresholds))
    if not per_output and all(thresholds == known[0] for thresholds in known):
        for name in names:
            node.test_param.error_func.append(_criterion_number(node, name))
            node.test_param.error_threshold.append(known[0][name])
        return
    node.evaluation_criterion.extend(_criterion_number(node, name) for name in names)
    for tensor, thresholds in zip(node.output, known, strict=True):
        tensor.thresholds.evaluation_threshold.extend(thresholds.get(name, float("inf")) for name in names)


def digest(case: Case) -> str:
    """A hash of everything that decides the case's data."""
    plans = [(plan.name, plan.dtype, plan.layout, plan.dims, plan.strides, recipe(plan)) for plan in case.plans]
    parts = [case.id, sorted(case.params.items()), plans, case.expect, [*map(str, case.faults)], case.seed]
    parts += [case.accumulate] if case.accumulate else []  # so that digests of before stay as they are
    return xxhash.xxh3_64_hexdigest(json.dumps(parts).encode())


def short_place(place: str) -> str:
    """file:line without folders: case files don't depend on where their specs are."""
    return PurePath(place).name


@cache
def origin(spec: Path) -> str:
    """What tells a spec file from others of its name: the folder that it is in, or that it is a built-in one.

    No more of its path: a manifest doesn't depend on where a repository lies.
    """
    path = spec.resolve()
    built_in = path.parent == Path(str(files("cases"))).resolve()
    return f"{'mluops:' if built_in else f'{path.parent.name}/'}{path.name}"


def _criterion_number(node: Any, name: str) -> int:
    enum = node.DESCRIPTOR.fields_by_name["evaluation_criterion"].enum_type
    number: int = enum.values_by_name[_ENUMS[name]].number
    return number


def _add_tensor(tensor: Any, plan: TensorPlan) -> None:
    numbers = tensor.DESCRIPTOR.fields_by_name
    tensor.id = plan.name
    tensor.shape.dims.extend(max(0, size) for size in plan.dims)
    tensor.shape.dim_stride.extend(plan.strides or ())
    tensor.layout = numbers["layout"].enum_type.values_by_name[f"LAYOUT_{plan.layout}"].number
    tensor.dtype = numbers["dtype"].enum_type.values_by_name[DTYPES[plan.dtype].enum].number


def set_counts(node: Any, contract: Contract, counts: Mapping[str, int]) -> None:
    """Write the parameters that count rows of outputs into the operator's message, where the interface has one."""
    message = parameter_message(node, contract)
    for name, count in counts.items() if message is not None else ():
        setattr(message, name, count)


def _set_params(node: Any, meta: Any, case: Case, contract: Contract, counts: Mapping[str, int]) -> None:
    """The parameters in the operator's message; as JSON in the metadata where the interface has no such message."""
    dims = {plan.name: plan.dims for plan in case.outputs}
    values = {
        each.name: case.params.get(each.name)
        if each.output is None
        else counts.get(each.name, dims[each.output[0]][each.output[1]])
        for each in contract.parameters
    }
    values = {name: value for name, value in values.items() if value is not None}
    message = parameter_message(node, contract)
    if message is None:
        if values:
            meta.params = json.dumps(values, sort_keys=True)
        return
    message.SetInParent()
    for name, value in values.items():
        if isinstance(value, tuple):
            getattr(message, name).extend(value)
        else:
            setattr(message, name, value)
