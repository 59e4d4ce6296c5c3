"""The exchange by case files, `{case}` and `{out}`: Node messages in, outputs filled, out (docs/exec.md)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mluops_cli.implementations.base import Call, CannotShow, Outcome
from schemas.casefiles.reading import read_case, write_case
from schemas.protos import messages as proto

_OUT = "out.pb"


def write(call: Call, room: Path) -> dict[str, str]:
    """Write the case without what it is judged by; what stands for `{case}` and `{out}` in the command."""
    if call.faults:
        raise CannotShow(f"exec: a case file can't show the fault {call.faults[0]}")
    if call.file is None:
        raise CannotShow("exec: the call comes from no case file")
    with read_case(call.file) as original:
        node = original.node
        proto.set_meta(node, _told(proto.get_meta(node)))
        for tensor in node.output:
            tensor.ClearField("path")
            tensor.ClearField("random_data")
        for tensor, array in zip(node.input, call.inputs.values(), strict=True):
            if array is None:
                tensor.ClearField("path")
                tensor.ClearField("random_data")
        write_case(room / "case.pb", node, list(call.inputs.values()), [None] * len(node.output))
    return {"case": str(room / "case.pb"), "out": str(room / _OUT)}


def given(call: Call, room: Path) -> Iterator[tuple[str, Path]]:
    """What write() has written, all of which the program only reads: the case file and the raw files beside it."""
    for path in room.rglob("[!.]*"):
        if path.is_file():
            yield "the case file", path


def read(call: Call, room: Path, status: str) -> Outcome:
    """Take the outputs of the file that the program wrote; ValueError where it isn't what was asked for."""
    out = next((room / name for name in (_OUT, f"{_OUT}.prototxt") if (room / name).is_file()), None)
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


def _told(meta: Any) -> Any:
    """What the program is told of our metadata: which case it is and its parameters, not what is expected of it."""
    if meta is None:
        return None
    return proto.CaseMeta(suite=meta.suite, name=meta.name, params=meta.params, version=meta.version)
