"""Small tensors in columns: inputs, what is expected, what the implementation computed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mluops_cli.inspection.value_blocks import block, side_by_side
from mluops_cli.search.shrinking.smallest_case import Shown

_MOST: Final = 128  # elements of a tensor that is shown


def tensor_lines(shown: Shown) -> Iterator[str]:
    """The tensors side by side, a line per row (along the last axis); wrong elements of `got` have a star."""
    arrays = (*shown.inputs.values(), *shown.expected.values())
    most = max((array.size for array in arrays), default=0)
    if most > _MOST:
        yield f"tensors of up to {most} elements are not shown; `mluops show` does"
        return
    blocks = [block(name, array) for name, array in shown.inputs.items()]
    for name, array in shown.expected.items():
        blocks.append(block(f"expected {name}", array))
        if name in shown.got and shown.got[name].shape == array.shape:
            blocks.append(block("got", shown.got[name], array))
    yield from side_by_side(blocks)
