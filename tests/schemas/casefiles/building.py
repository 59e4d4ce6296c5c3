"""Small Nodes for the tests, made with protobuf's own means."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from schemas.casefiles.reading import CaseFile, read_case
from schemas.protos import messages as proto


def number_of(dtype: str) -> int:
    """The number of a dtype's enum name, as the descriptor has it."""
    values = proto.Tensor.DESCRIPTOR.fields_by_name["dtype"].enum_type.values_by_name
    return int(values[f"DTYPE_{dtype.upper()}"].number)


def make_node(*shape: int, dtype: str = "float", **fields: Any) -> Any:
    """A Node with one input x of that shape and dtype and with those fields more."""
    node = proto.Node(op_name="abs")
    node.input.add(id="x", shape={"dims": shape}, layout=5, dtype=number_of(dtype), **fields)
    return node


def add_output(node: Any, *shape: int, dtype: str = "float", **fields: Any) -> Any:
    """The Node with one output y more."""
    node.output.add(id="y", shape={"dims": shape}, layout=5, dtype=number_of(dtype), **fields)
    return node


def as_bytes(content: Any) -> bytes:
    """The bytes of a text, of bytes, or of a message that may lack required fields."""
    if isinstance(content, str):
        return content.encode()
    return content if isinstance(content, bytes) else content.SerializePartialToString()


def read(folder: Path, content: Any, suffix: str = ".pb") -> CaseFile:
    """What read_case makes of that content in a file."""
    path = folder / f"case{suffix}"
    path.write_bytes(as_bytes(content))
    return read_case(path)
