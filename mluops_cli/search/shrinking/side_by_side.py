"""Small tensors in columns: inputs, what is expected, what the implementation computed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mluops_cli.search.shrinking.smallest_case import Shown

_MOST: Final = 128  # elements of a tensor that is shown
_WIDEST: Final = 100  # columns; beyond, tensors stand below each other

Array = NDArray[Any]


def tensor_lines(shown: Shown) -> Iterator[str]:
    """The tensors side by side, a line per row (along the last axis); wrong elements of `got` have a star."""
    arrays = (*shown.inputs.values(), *shown.expected.values())
    most = max((array.size for array in arrays), default=0)
    if most > _MOST:
        yield f"tensors of up to {most} elements are not shown; `mluops show` does"
        return
    blocks = [_block(name, array) for name, array in shown.inputs.items()]
    for name, array in shown.expected.items():
        blocks.append(_block(f"expected {name}", array))
        if name in shown.got and shown.got[name].shape == array.shape:
            blocks.append(_block("got", shown.got[name], array))
    widths = [max(map(len, block)) for block in blocks]
    if sum(widths) + 4 * len(widths) > _WIDEST:
        for block in blocks:
            yield from block
        return
    for row in zip_longest(*blocks, fillvalue=""):
        yield "    ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _block(title: str, array: Array, expected: Array | None = None) -> list[str]:
    """A title with the shape, and the rows."""
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


def _text(value: Any) -> str:
    number = value.item() if hasattr(value, "item") else value
    return f"{number:.9g}" if isinstance(number, float) else str(number)


def _equal(one: Array, other: Array) -> Array:
    """Which elements have the same bits."""
    size = one.dtype.itemsize
    return (
        (one.view(np.uint8).reshape(*one.shape, size) == other.view(np.uint8).reshape(*other.shape, size)).all(-1)
        if one.size
        else np.zeros(one.shape, bool)
    )
