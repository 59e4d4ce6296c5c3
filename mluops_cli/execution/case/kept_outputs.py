"""--keep-outputs: writes the outputs of a failing case as a case file beside the kept case."""

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

_INLINE: Final = 1 << 30  # bytes of a tensor: nearly always a single file


def keep_outputs(prepared: Prepared, target: Path, limit: int) -> str:
    """Write the present outputs without inputs; return the file's path, or a phrase that says why there is none.

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
        header.ClearField("path")  # it is relative to the folder of the case
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
    except Exception as wrong:  # a full disk, a tensor that no file can hold: the verdict stays
        return f"not kept: {describe(wrong)}"
    return str(target)
