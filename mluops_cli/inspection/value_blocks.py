"""Tensors as blocks of text: a title with the shape, a line per row along the last axis. Blocks stand side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_WIDEST: Final = 100  # columns; beyond, blocks stand below each other

Array = NDArray[Any]


def block(title: str, array: Array, expected: Array | None = None) -> list[str]:
    """The lines of a block; elements whose bits aren't those of the expected array have a star."""
    shape = "x".join(map(str, array.shape)) or "scalar"
    if array.dtype.kind == "V":  # bfloat16 and float8
        array, expected = array.astype(np.float32), None if expected is None else expected.astype(np.float32)
    columns = array.shape[-1] if array.ndim and array.size else 1
    rows = array.reshape(-1, columns) if array.size else np.empty((0, 1), array.dtype)
    wrong = np.zeros(rows.shape, bool) if expected is None else ~_equal(rows, expected.reshape(rows.shape))
    cells = [
        [f"{_text(value)}{'*' if bad else ''}" for value, bad in zip(row, bads, strict=True)]
        for row, bads in zip(rows, wrong, strict=True)
    ]
    width = max((len(cell) for row in cells for cell in row), default=0)
    return [f"{title} {shape}", *(" ".join(cell.rjust(width) for cell in row) for row in cells)]


def side_by_side(blocks: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of all blocks, beside each other where that is not too wide."""
    widths = [max(map(len, each)) for each in blocks]
    if sum(widths) + 4 * len(widths) > _WIDEST:
        for each in blocks:
            yield from each
        return
    for row in zip_longest(*blocks, fillvalue=""):
        yield "    ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _text(value: Any) -> str:
    number = value.item() if hasattr(value, "item") else value
    return f"{number:.9g}" if isinstance(number, float) else str(number)


def _equal(one: Array, other: Array) -> Array:
    """Which elements have the same bits."""
    one, other = np.ascontiguousarray(one), np.ascontiguousarray(other)
    size = one.dtype.itemsize
    return (
        (one.view(np.uint8).reshape(*one.shape, size) == other.view(np.uint8).reshape(*other.shape, size)).all(-1)
        if one.size
        else np.zeros(one.shape, bool)
    )
