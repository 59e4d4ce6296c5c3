"""One small change of a source text, at the position that a node of its syntax tree has."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

# What a mutation changes: the kinds in records. Those of the catalogue are of the kind faulty_kernel.
KINDS: Final = (
    "comparison", "arithmetic", "off_by_one", "swapped_arguments", "transposed_axes", "removed_statement",
    "removed_check", "condition", "zero_fill", "narrowed_dtype",
)  # fmt: skip

Positioned = ast.expr | ast.stmt


@dataclass(frozen=True, slots=True)
class Edit:
    """A part of the source (byte offsets in UTF-8) and the text that takes its place."""

    start: int
    stop: int
    text: str
    kind: str


@dataclass(frozen=True)
class SourceText:
    """A source text by the positions of its syntax tree, which counts lines from 1 and columns in bytes of UTF-8."""

    text: str

    @cached_property
    def data(self) -> bytes:
        """The text in UTF-8."""
        return self.text.encode()

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        for line in self.data.split(b"\n"):
            starts.append(starts[-1] + len(line) + 1)
        return starts

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree; SyntaxError where the text has none."""
        return ast.parse(self.text)

    def start(self, node: Positioned) -> int:
        """The byte offset of the node's start."""
        return self._starts[node.lineno - 1] + node.col_offset

    def stop(self, node: Positioned) -> int:
        """The byte offset of the node's end."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._starts[node.end_lineno - 1] + node.end_col_offset

    def segment(self, node: Positioned) -> str:
        """The text of a node."""
        return self.between(self.start(node), self.stop(node))

    def between(self, start: int, stop: int) -> str:
        """The text between two offsets."""
        return self.data[start:stop].decode()

    def line(self, offset: int) -> int:
        """The line of an offset, from 1."""
        return self.data.count(b"\n", 0, offset) + 1

    def edited(self, edit: Edit) -> str:
        """The whole text with the edit made."""
        return (self.data[: edit.start] + edit.text.encode() + self.data[edit.stop :]).decode()

    def diff(self, other: str) -> Iterator[str]:
        """The lines of a diff from this text to another, without context: `-  a < b`, `+  a <= b`."""
        lines = difflib.unified_diff(self.text.splitlines(), other.splitlines(), lineterm="", n=0)
        return (line for line in lines if not line.startswith(("---", "+++", "@@")))
