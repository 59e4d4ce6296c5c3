"""What an output must look like: a computed array against the dims and dtype that a plan or a file declares."""

from __future__ import annotations

import os
import traceback
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import CodeType
from typing import Any

import numpy as np

from generators.contracts.model import UNKNOWN, Shape, TensorSpec
from generators.error_bounds.precision import Array
from schemas.dtypes import DTYPES, is_of_kind
from schemas.errors import InputError, MluopsError, SourceLocation

UNDEFINED = -1  # what a stored baseline holds where nothing is defined


def checked_outputs(kernel: str, wanted: Sequence[TensorSpec], outputs: Any) -> dict[str, Array]:
    """What a reference kernel returned, in the contract's order.

    MluopsError, which begins with `kernel`, unless it is a mapping with an array for each wanted output, of the kind of
    one of its dtypes.
    """
    if not isinstance(outputs, Mapping):
        raise MluopsError(f"{kernel} returns a value of type {type(outputs).__name__}, expected output name -> array")
    names = [tensor.name for tensor in wanted]
    if set(outputs) != set(names):
        raise MluopsError(f"{kernel} returns {sorted(map(str, outputs))}, its contract says {names}")
    for tensor in wanted:
        array = outputs[tensor.name]
        dtypes = f"an array of {' or '.join(tensor.dtypes)}, or of a dtype of the same kind"
        if not isinstance(array, (np.ndarray, np.generic)):
            raise MluopsError(f"{kernel} returns {tensor.name} of type {type(array).__name__}, expected {dtypes}")
        if not any(DTYPES[name].storage is None or is_of_kind(array.dtype, name) for name in tensor.dtypes):
            raise MluopsError(f"{kernel} returns {tensor.name} of dtype {array.dtype}, expected {dtypes}")
    return {name: outputs[name] for name in names}


@contextmanager
def author_errors(code: CodeType, what: str) -> Iterator[None]:
    """Make an exception of a function of the operator's author a MluopsError that begins with its line.

    Those of mluops pass, and NotImplementedError.
    """
    try:
        yield
    except (MluopsError, NotImplementedError):
        raise
    except Exception as error:
        raise MluopsError(f"{_author_line(code, error)}: {what}: {type(error).__name__}: {error}") from error


def _author_line(code: CodeType, error: Exception) -> SourceLocation:
    """Where the author of a function made an error: its line, or that of another file beside it, that was called last.

    The function itself where none of these was reached.
    """
    folder = os.path.dirname(code.co_filename)
    frames = [each for each in traceback.extract_tb(error.__traceback__) if os.path.dirname(each.filename) == folder]
    if frames:
        return SourceLocation(frames[-1].filename, frames[-1].lineno)
    return SourceLocation(code.co_filename, code.co_firstlineno)


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
    fits = is_of_kind(array.dtype, dtype) and (
        array.dtype == storage or (storage is not None and np.can_cast(array.dtype, storage, "same_kind"))
    )
    if storage is None or not fits:
        raise InputError(f"{name} has dtype {dtype}, the baseline {array.dtype}", place)
    return array.astype(storage, copy=False)


def padded(array: Array, dims: Shape) -> Array:
    """The array in the leading corner of larger dims, UNDEFINED (0 where it can't be held) elsewhere."""
    if array.shape == dims:
        return array
    filled: Array = np.full(dims, UNDEFINED if array.dtype.kind in "ifc" else 0, array.dtype)
    filled[tuple(map(slice, array.shape))] = array
    return filled
