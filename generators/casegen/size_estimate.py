"""How many bytes a case's files will take, before its data is drawn."""

from __future__ import annotations

from typing import Final

import numpy as np

from generators.casegen.case_data import omitted_tensors, tensor_bytes
from generators.casegen.node import NO_HASH, build_node, recipe, set_origins
from generators.casegen.write_options import WriteOptions
from generators.contracts.case import Case, TensorPlan
from generators.contracts.operator import Array, Operator
from generators.data.draw import draw
from generators.data.kinds import ROWS
from generators.operator_registry import operator_named
from schemas.casefiles.writing import BINARY
from schemas.dtypes import DTYPES
from schemas.protos import messages as proto
from schemas.prototext import writer as text
from schemas.status import SUCCESS
from schemas.tensor_descriptor import span
from schemas.wire import payloads

_SAMPLE: Final = 4096  # elements whose entries are measured
_FRAME: Final = 64  # bytes of tags, lengths and padding around a tensor's values, at most about


def planned_size(case: Case, options: WriteOptions) -> int:
    """Bytes of the case's files.

    Exact to a few dozen bytes per tensor where the file holds values as memory does (float, external data). Entries
    whose length depends on the value (varints, text) are measured on a sample of the inputs; those of an output are
    taken to be as long as those of an input of its dtype.
    """
    operator = operator_named(case.op)
    contract = operator.contract
    baseline = SUCCESS in case.expect
    omitted = omitted_tensors(case)
    stored = [plan for plan in (*case.inputs, *(case.outputs if baseline else ())) if plan.name not in omitted]
    node = build_node(case, contract, baseline, {})
    if baseline:
        node.theory_io_size = node.theory_compute_ops = 1.0
    set_origins(node, {plan.name: (recipe(plan), NO_HASH) for plan in stored}, sorted(omitted))
    total: int = sum(len(proto.serialize(node)) * (1 if suffix == BINARY else 3) for suffix in options.suffixes)
    external = {
        plan.name
        for plan in stored
        if tensor_bytes(plan) > options.inline_limit or not payloads.inlinable(DTYPES[plan.dtype])
    }
    total += sum(tensor_bytes(plan) for plan in stored if plan.name in external)
    for suffix in options.suffixes:
        total += _inline_bytes(case, [plan for plan in stored if plan.name not in external], suffix)
    if (
        baseline
        and options.bounds
        and BINARY in options.suffixes
        and type(operator).error_bound is not Operator.error_bound
    ):
        total += sum(4 * _elements(plan) for plan in case.outputs if DTYPES[plan.dtype].is_float)
    return total


def _inline_bytes(case: Case, plans: list[TensorPlan], suffix: str) -> int:
    """Bytes of the values inside the case file."""
    total = 0
    measured: dict[str, float] = {}  # dtype -> bytes per element of the widest input
    for plan in plans:
        sample = _sample(case, plan)
        if sample is not None:
            width = _entry_bytes(sample, plan.dtype, suffix)
            measured[plan.dtype] = max(width, measured.get(plan.dtype, 0))
        else:
            width = measured.get(plan.dtype) or _entry_bytes(_unfavourable(plan.dtype), plan.dtype, suffix)
        total += round(_elements(plan) * width) + _FRAME
    return total


def _elements(plan: TensorPlan) -> int:
    return span(tuple(max(0, size) for size in plan.dims), plan.strides)


def _sample(case: Case, plan: TensorPlan) -> Array | None:
    """The tensor as the case draws it, its first elements where it is large; None where it can't be drawn alone."""
    if plan.values is None or plan.values.kind == "recipe" or not _elements(plan):
        return None
    if plan.values.kind == "file":
        stored: Array = plan.values.args[0].read(plan.dims, DTYPES[plan.dtype])
        return stored.reshape(-1)[:_SAMPLE]
    dims = plan.dims
    if _elements(plan) > _SAMPLE:
        row = len(plan.values.args) if plan.values.kind in ROWS else 1
        dims = (_SAMPLE // row, row) if row > 1 else (_SAMPLE,)
    return draw(plan.values, dims, plan.dtype, (case.seed, case.id, plan.name))


def _unfavourable(dtype: str) -> Array:
    """Values whose entries are long: random bits."""
    storage = DTYPES[dtype].storage
    assert storage is not None
    if DTYPES[dtype].kind == "bool":
        return np.ones(1, storage)
    bits = np.random.Philox(key=1).random_raw(64).view(np.uint8)
    with np.errstate(invalid="ignore"):
        return bits.view(storage)


def _entry_bytes(sample: Array, dtype: str, suffix: str) -> float:
    """Bytes per element in a file, the mean over a sample."""
    encoded = payloads.encode(np.ascontiguousarray(sample).reshape(-1), DTYPES[dtype])
    if suffix == BINARY:
        return encoded.size / sample.size
    return sum(map(len, text.lines(encoded, "  "))) / sample.size
