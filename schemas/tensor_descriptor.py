"""What an operator is told of a tensor besides its memory, and how strides relate to a shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from typing import Any


@dataclass(frozen=True, slots=True)
class Descriptor:
    """Layout, dtype, dims and strides of one tensor, as attributes and as items (`descriptor["dims"]`).

    layout and dtype are names such as "NHWC" and "float". dims are the sizes, of complex_half without the axis of the 2
    parts. strides are in elements, one per dim, None where the tensor is dense.
    """

    layout: str
    dtype: str
    dims: tuple[int, ...]
    strides: tuple[int, ...] | None = None

    def __getitem__(self, key: str) -> Any:
        if key not in ("layout", "dtype", "dims", "strides"):
            raise KeyError(key)
        return getattr(self, key)

    @property
    def elements(self) -> int:
        """Number of elements, exact at any size; 1 for a scalar."""
        return math.prod(self.dims)


def dense_strides(dims: Sequence[int]) -> tuple[int, ...]:
    """Strides in elements of a dense row-major tensor: (12, 4, 1) for dims (2, 3, 4)."""
    return tuple(accumulate(reversed(dims[1:]), mul, initial=1))[::-1] if dims else ()


def sparse_strides(dims: Sequence[int], strides: Sequence[int]) -> tuple[int, ...] | None:
    """The strides, None where they are those of a dense tensor; ValueError where there is not one per dim."""
    if len(strides) != len(dims):
        raise ValueError(f"{len(strides)} strides {list(strides)} for {len(dims)} dims {list(dims)}")
    return None if tuple(strides) == dense_strides(dims) else tuple(strides)


def span(dims: Sequence[int], strides: Sequence[int] | None) -> int:
    """Number of elements a tensor covers in memory: 1 + sum((d-1)*s), its elements when dense, 0 when it has none."""
    if strides is None or 0 in dims:
        return math.prod(dims)
    return 1 + sum((dim - 1) * stride for dim, stride in zip(dims, strides, strict=True))
