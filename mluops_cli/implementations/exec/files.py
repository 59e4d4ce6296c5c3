"""The exchange by case files, `{case}` and `{out}`: a Node message in, one with outputs out (docs/exec.md)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from generators.casegen.node import build_node
from generators.contracts.case import Case, TensorPlan
from generators.operator_registry import operators
from generators.parameters import as_tuples
from mluops_cli.implementations.base import Call, CannotShow, Outcome
from mluops_cli.implementations.public_node import public_node
from schemas.casefiles.reading import read_case, write_case

_OUT = "out.pb"


def write(call: Call, scratch: Path) -> dict[str, str]:
    """Write the case without baseline and criteria; return the paths for `{case}` and `{out}` in the command."""
    if call.faults:
        raise CannotShow(f"exec: a case file can't show the fault {call.faults[0]}")
    node = public_node(_node_of(call) if call.node is None else call.node)
    inputs = list(call.inputs.values())
    valueless = [*node.output, *(each for each, array in zip(node.input, inputs, strict=True) if array is None)]
    for tensor in valueless:
        tensor.ClearField("path")
        tensor.ClearField("random_data")
    write_case(scratch / "case.pb", node, inputs, [None] * len(node.output))
    return {"case": str(scratch / "case.pb"), "out": str(scratch / _OUT)}


def _node_of(call: Call) -> Any:
    """The Node message of a call that comes from no case file, as of a related one; CannotShow without a contract."""
    operator = operators().get(call.op)
    if operator is None:
        raise CannotShow("exec: the call comes from no case file, and its operator has no contract")
    contract = operator.contract.given(as_tuples(call.params))
    plans = {
        name: TensorPlan(name, each.dtype, each.layout, each.dims, each.strides)
        for name, each in call.descriptors.items()
        if each is not None
    }
    case = Case(
        call.op,
        "relations",
        "related",
        as_tuples(call.params),
        tuple(plans[each.name] for each in contract.inputs),
        tuple(plans[each.name] for each in contract.outputs),
        {each.name: () for each in contract.outputs},
    )
    return build_node(case, contract, baseline=False, counts={})


def read_only(call: Call, scratch: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files that write() wrote, with a name for messages: the case file and its external data."""
    for path in scratch.rglob("[!.]*"):
        if path.is_file():
            yield "the case file", path


def read(call: Call, scratch: Path, status: str) -> Outcome:
    """Copy the outputs of the file that the program wrote; ValueError where they are not those of the call."""
    out = next((scratch / name for name in (_OUT, f"{_OUT}.prototxt") if (scratch / name).is_file()), None)
    if out is None:
        raise ValueError("the program ended well but wrote no {out}")
    with read_case(out) as written:
        if len(written.outputs) != len(call.outputs):
            raise ValueError(f"{{out}} has {len(written.outputs)} outputs, expected {len(call.outputs)}")
        for record, (name, array) in zip(written.outputs, call.outputs.items(), strict=True):
            if array is None:
                continue
            found = record.array()
            if (found.shape, found.dtype) != (array.shape, array.dtype):
                is_, should_be = (f"{each.dtype} {list(each.shape)}" for each in (found, array))
                raise ValueError(f"{{out}}: output {name} is {is_}, expected {should_be}")
            np.copyto(array, found)
    return Outcome(status)
