"""What an output must look like: a computed array against the dims and dtype that a plan or a file declares."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from generators.contracts.model import UNKNOWN, Shape
from generators.contracts.operator import Array
from schemas.dtypes import DTYPES
from schemas.errors import InputError, SourceLocation

UNDEFINED = -1  # what a stored baseline holds where nothing is defined


def fitted(
    name: str, dims: Shape, dtype: str, array: Array, place: SourceLocation | None, capacities: Collection[int] = ()
) -> Array:
    """A computed output in the declared dtype, its shape checked.

    A dim of UNKNOWN fits any size; a dim whose axis is in capacities fits any size that is not larger. InputError, with
    the place, where the shapes differ or the dtypes are of different kinds.
    """
    if len(dims) != array.ndim:
        raise InputError(f"{name} has shape {list(dims)}, the baseline {list(array.shape)}", place)
    for axis, (declared, size) in enumerate(zip(dims, array.shape, strict=True)):
        if axis in capacities and declared not in (UNKNOWN, size):
            if declared < size:
                text = f"{name} has capacity for {declared} rows in dim {axis}, the baseline has {size}"
                raise InputError(text, place)
        elif declared not in (UNKNOWN, size):
            raise InputError(f"{name} has shape {list(dims)}, the baseline {list(array.shape)}", place)
    storage = DTYPES[dtype].storage
    if storage is None or (array.dtype != storage and not np.can_cast(array.dtype, storage, "same_kind")):
        raise InputError(f"{name} has dtype {dtype}, the baseline {array.dtype}", place)
    return array.astype(storage, copy=False)


def padded(array: Array, dims: Shape) -> Array:
    """The array in the leading corner of larger dims, UNDEFINED (0 where it can't be held) elsewhere."""
    if array.shape == dims:
        return array
    filled: Array = np.full(dims, UNDEFINED if array.dtype.kind in "ifc" else 0, array.dtype)
    filled[tuple(map(slice, array.shape))] = array
    return filled
