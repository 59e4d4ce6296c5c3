"""What an operator is told of a tensor besides its memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Descriptor:
    """Layout, dtype, dims and strides (in elements, None when dense) of one tensor, as attributes and as items."""

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
