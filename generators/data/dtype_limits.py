"""The limits of a dtype, and its special values as bit patterns: by word, by number, or in hexadecimal."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import ml_dtypes
import numpy as np

from schemas.dtypes import DType
from schemas.errors import InputError
from schemas.suggest import did_you_mean

_WORDS: Final = ("subnormal", "smallest", "largest", "nan", "inf", "zero")  # each also with a minus sign


@dataclass(frozen=True, slots=True)
class Limits:
    """What a dtype can hold: finite numbers from least to largest; all whole numbers from -exact to exact.

    smallest is the smallest normal number, subnormal the smallest subnormal one; None where integers have none.
    """

    least: Any
    largest: Any
    exact: int
    smallest: float | None = None
    subnormal: float | None = None


@cache
def limits(dtype: DType) -> Limits:
    """The limits of a dtype that NumPy can hold (of a complex one: of its parts), as Python numbers."""
    assert dtype.storage is not None
    if dtype.kind == "bool":
        return Limits(0, 1, 1)
    if dtype.kind in ("integer", "unsigned"):
        integer = np.iinfo(dtype.storage)
        return Limits(int(integer.min), int(integer.max), int(integer.max))
    part = dtype.storage if dtype.is_float else np.dtype(f"<f{dtype.storage.itemsize // 2}")
    real: Any = ml_dtypes.finfo(part)  # type: ignore[no-untyped-call]  # ml_dtypes is untyped
    numbers = (float(real.smallest_normal), float(real.smallest_subnormal))
    return Limits(-float(real.max), float(real.max), 2 ** (int(real.nmant) + 1), *numbers)


def bit_pattern(value: Any, dtype: DType) -> int:
    """The bits of one element: of `largest`, `-subnormal`, a number, or "0x7fc00001" taken as it is.

    InputError where the dtype has no such value.
    """
    assert dtype.storage is not None
    if isinstance(value, str) and value.lower().startswith("0x"):
        return _hexadecimal(value, dtype)
    if isinstance(value, str):
        value = _worded(value, dtype)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"special value {value!r}, expected a number, a word or a bit pattern such as 0x7fc00001")
    known = limits(dtype)
    if not dtype.is_float and (math.isnan(value) or value in (math.inf, -math.inf) or value != int(value)):
        raise InputError(f"special value {value} is no {dtype.name}")
    if math.isfinite(value) and not known.least <= value <= known.largest:
        raise InputError(f"special value {value} is outside {dtype.name}'s range [{known.least}, {known.largest}]")
    # A list of one value, and through float64: NumPy then neither refuses nor warns for any of the dtypes.
    element = np.array([value if dtype.is_float else int(value)], np.float64 if dtype.is_float else dtype.storage)
    return int.from_bytes(element.astype(dtype.storage).tobytes(), "little")


def _hexadecimal(text: str, dtype: DType) -> int:
    assert dtype.storage is not None
    try:
        bits = int(text, 16)
    except ValueError:
        raise InputError(f"special value {text!r} is not hexadecimal") from None
    if bits >= 1 << (8 * dtype.storage.itemsize) or (dtype.kind == "bool" and bits > 1):
        raise InputError(f"special value {text} has more bits than {dtype.name}")
    return bits


def _worded(word: str, dtype: DType) -> Any:
    name = word.removeprefix("-")
    if name not in _WORDS:
        raise InputError(f"unknown special value {word!r}{did_you_mean(name, _WORDS)}")
    known = limits(dtype)
    if name == "largest":
        return known.least if word.startswith("-") else known.largest
    numbers: dict[str, Any] = {"subnormal": known.subnormal, "smallest": known.smallest, "zero": 0}
    if dtype.is_float:
        numbers |= {"nan": math.nan, "inf": math.inf, "zero": 0.0}
    number = numbers.get(name)
    if number is None:
        raise InputError(f"dtype {dtype.name} has no {name}")
    return -number if word.startswith("-") else number
