"""What an output must look like: a computed array against the shape and dtype that a plan or a file declares."""

from __future__ import annotations

from generators.contracts.model import UNKNOWN, Shape
from generators.contracts.operator import Array
from schemas.dtypes import DTYPES
from schemas.errors import InputError, SourceLocation


def check_output(name: str, dims: Shape, dtype: str, array: Array, place: SourceLocation | None) -> None:
    """InputError where a baseline's array has another shape (UNKNOWN fits any size) or dtype than its output."""
    same = len(dims) == array.ndim and all(a in (UNKNOWN, b) for a, b in zip(dims, array.shape, strict=True))
    if not same:
        raise InputError(f"{name} has shape {list(dims)}, the baseline {list(array.shape)}", place)
    if array.dtype != DTYPES[dtype].storage:
        raise InputError(f"{name} has dtype {dtype}, the baseline {array.dtype}", place)
