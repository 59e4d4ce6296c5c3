"""Where a wrong output and its baseline differ most: expected, got and difference of the elements around there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mluops_cli.inspection.value_blocks import block, side_by_side
from mluops_cli.judging.diagnosis import Diagnosis

Array = NDArray[Any]
_SHOWN: Final = 2  # last axes of which a window is shown; the others stay at the worst element


def diff_lines(name: str, expected: Array, got: Array, found: Diagnosis | None, around: int) -> Iterator[str]:
    """The diagnosis, and the elements up to `around` beside the worst one along each of the last two axes.

    Elements of `got` whose bits differ have a star. found: what is wrong with `got`, of the same shape and dtype; None
    where nothing is.
    """
    if found is None:
        yield f"{name}: no difference"
        return
    yield f"{name}: {found.words()}"
    worst = found.worst[0].at
    window = _window(worst, expected.shape, around)
    places = ", ".join(f"{each.start}:{each.stop}" if isinstance(each, slice) else str(each) for each in window)
    yield f"{name}[{places}], the worst element is {list(worst)}"
    right, wrong = np.asarray(expected[window]), np.asarray(got[window])
    yield from side_by_side(
        [block("expected", right), block("got", wrong, right), block("difference", _difference(right, wrong))]
    )


def _window(at: Sequence[int], shape: Sequence[int], around: int) -> tuple[int | slice, ...]:
    first = max(0, len(shape) - _SHOWN)
    ranges = [slice(max(0, i - around), min(size, i + around + 1)) for i, size in zip(at, shape, strict=True)]
    return (*at[:first], *ranges[first:])


def _difference(expected: Array, got: Array) -> Array:
    """Got less expected: exact for integers, in double precision otherwise."""
    if expected.dtype.kind in "iub":
        result: Array = got.astype(object) * 1 - expected.astype(object) * 1
        return result
    kind = np.complex128 if expected.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        return np.asarray(got.astype(kind) - expected.astype(kind))
