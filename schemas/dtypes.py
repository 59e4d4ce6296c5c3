"""Data types and layouts: our names, the names in a case file, and the dtypes of NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import ml_dtypes
import numpy as np


@dataclass(frozen=True, slots=True)
class DType:
    """One data type.

    name is ours (contracts, specs, reports), enum the case file's; width counts bytes per element in memory;
    storage is NumPy's little-endian dtype, None where NumPy can't hold the values (shape and type are still known).
    """

    name: str
    enum: str
    width: float
    storage: np.dtype[Any] | None
    kind: str  # float, integer, unsigned, bool, complex, other

    @property
    def is_float(self) -> bool:
        """Whether elements are real floating-point numbers."""
        return self.kind == "float"


def _dtype(name: str, enum: str, storage: Any, kind: str, width: float | None = None) -> DType:
    held = None if storage is None else np.dtype(storage)
    if width is None:
        assert held is not None
        width = held.itemsize
    return DType(name, f"DTYPE_{enum}", width, held, kind)


_ALL: Final = (
    _dtype("half", "HALF", "<f2", "float"),
    _dtype("float", "FLOAT", "<f4", "float"),
    _dtype("double", "DOUBLE", "<f8", "float"),
    _dtype("bfloat16", "BFLOAT16", ml_dtypes.bfloat16, "float"),
    _dtype("int8", "INT8", "<i1", "integer"),
    _dtype("int16", "INT16", "<i2", "integer"),
    _dtype("int32", "INT32", "<i4", "integer"),
    _dtype("int64", "INT64", "<i8", "integer"),
    _dtype("uint8", "UINT8", "<u1", "unsigned"),
    _dtype("uint16", "UINT16", "<u2", "unsigned"),
    _dtype("uint32", "UINT32", "<u4", "unsigned"),
    _dtype("uint64", "UINT64", "<u8", "unsigned"),
    _dtype("bool", "BOOL", "?", "bool"),
    # complex_half has no NumPy dtype: its elements are pairs of half, the last axis re, im.
    _dtype("complex_half", "COMPLEX_HALF", None, "complex", 4),
    _dtype("complex_float", "COMPLEX_FLOAT", "<c8", "complex"),
    _dtype("complex_double", "COMPLEX_DOUBLE", "<c16", "complex"),
    _dtype("complex64", "COMPLEX64", "<c8", "complex"),
    _dtype("complex128", "COMPLEX128", "<c16", "complex"),
    _dtype("int31", "INT31", None, "other", 4),
    _dtype("float8_e4m3fn", "FLOAT8_E4M3FN", ml_dtypes.float8_e4m3fn, "float"),
    _dtype("float8_e5m2", "FLOAT8_E5M2", ml_dtypes.float8_e5m2, "float"),
    _dtype("float8_e8m0fnu", "FLOAT8_E8M0FNU", None, "other", 1),
    _dtype("int4x2", "INT4X2", None, "other", 1),
    _dtype("int8_q1_6", "INT8_Q1_6", None, "other", 1),
)
DTYPES: Final[dict[str, DType]] = {dtype.name: dtype for dtype in _ALL}
BY_ENUM: Final[dict[str, DType]] = {dtype.enum: dtype for dtype in _ALL}
_ALIASES: Final[dict[str, str]] = {"float16": "half", "float32": "float", "float64": "double"}
DTYPE_NAMES: Final = (*DTYPES, *_ALIASES)
"""Every name that dtype_named knows."""


def dtype_named(name: str) -> DType | None:
    """The dtype of that name or NumPy-style alias (float16, float32, float64), or None."""
    return DTYPES.get(_ALIASES.get(name, name))


_KINDS: Final = {"f": "float", "i": "integer", "u": "unsigned", "b": "bool", "c": "complex"}  # of NumPy's own dtypes


def is_of_kind(held: np.dtype[Any], name: str) -> bool:
    """Whether a NumPy dtype is of the kind of the dtype of that name; signed and unsigned integers are of one kind."""
    known = {each.storage: each.kind for each in _ALL if each.storage is not None}
    kinds = {known.get(held, _KINDS.get(held.kind, "other")), DTYPES[name].kind}
    return len(kinds) == 1 or kinds == {"integer", "unsigned"}


LAYOUTS: Final[tuple[str, ...]] = (
    "NCHW", "NHWC", "HWCN", "NDHWC", "ARRAY", "TNC", "NTC", "NCDHW", "NC", "NLC", "NCL",
)  # fmt: skip
