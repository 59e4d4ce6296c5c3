"""--keep-outputs: what a failing case's outputs held, written as a case file beside the case that is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from mluops_cli.core.exceptions import describe
from mluops_cli.execution.case.calls import Prepared
from mluops_cli.results.kept_cases import OUTPUTS
from schemas.casefiles.reading import write_case
from schemas.protos import messages as proto
from schemas.suggest import counted
from schemas.wire.value_fields import part_dtype

_INLINE: Final = 1 << 30  # bytes of a tensor: one file as a rule


def keep_outputs(prepared: Prepared, target: Path, limit: int) -> str:
    """Write the outputs as they are now, without inputs; the file's path, or why there is none, in words.

    Nothing is written where they take more than limit bytes.
    """
    bound = prepared.bound
    size = sum(buffer.array.nbytes for buffer in prepared.outputs.values())
    if not prepared.outputs:
        return "not kept: the case has no outputs"
    if size > limit:
        return f"not kept: {counted(size, 'byte')}, more than --keep-outputs {limit}"
    node = proto.Node()
    node.CopyFrom(bound.file.node)
    for header in (*node.input, *node.output):
        header.ClearField("path")  # it counts from the folder of the case
    if (meta := proto.get_meta(node)) is not None:
        meta.name += OUTPUTS
        proto.set_meta(node, meta)
    arrays = []
    for name, record in bound.outputs.items():
        found = prepared.outputs.get(name)
        storage = part_dtype(record.dtype)[0].storage
        arrays.append(None if found is None or storage is None else found.array)
    try:
        write_case(target, node, [None] * len(node.input), arrays, inline_limit=_INLINE)
    except Exception as wrong:  # a full disk, a tensor no file can hold: the verdict stands all the same
        return f"not kept: {describe(wrong)}"
    return str(target)
