"""The kinds of values that an input may be drawn from, and the arguments of each: numbers that fit the dtype."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from generators.data.dtype_limits import limits
from generators.expressions import UNCOMPUTABLE, parse_expression
from schemas.dtypes import DType
from schemas.errors import InputError
from schemas.suggest import did_you_mean

KINDS: Final[Mapping[str, str]] = {
    "uniform": "[low, high), high not reached; integer dtypes take the floor",
    "normal": "[mean, standard deviation]; integer dtypes take the floor",
    "integers": "[low, high], both inclusive",
    "constant": "one number",
    "choice": "a list of numbers",
    "sequence": "[start, step]: start + step*i in element order",
    "unique": "[low, high], both inclusive: distinct integers; a list of such pairs: distinct rows, a pair per column",
    "clusters": "[[low, high], ...], inclusive: distinct rows of 2 to 4 columns ([scene,] [depth,] height, width), the "
    "cells that a lidar scan meets",
    "file": "a .npy file of the tensor's shape and dtype, or any other file: its elements, little-endian, in C order",
    "recipe": "a word that the operator's draw knows",
}
ROWS: Final = ("unique", "clusters")  # kinds whose args are a pair per column
_REACH: Final = 6  # standard deviations from the mean that the dtype must hold; beyond them lie 2 of 10^9 values
_BITS: Final = 128  # of an integer: more than any element holds, and no float overflows


def names_in(raw: Any) -> frozenset[str]:
    """The sizes and parameters that expressions in a `dist` read."""
    if not isinstance(raw, Mapping):
        return frozenset()
    names: set[str] = set()
    for kind in KINDS.keys() - {"recipe", "file"}:
        for text in _texts(raw.get(kind)):
            names |= _expression(text).names
    return frozenset(names)


def _texts(raw: Any) -> Iterator[str]:
    if isinstance(raw, str):
        yield raw
    elif isinstance(raw, (list, tuple)):
        for item in raw:
            yield from _texts(item)


def _uniform(kind: str, raw: Any, env: Mapping[str, Any], dtype: DType) -> tuple[Any, ...]:
    low, high = (fitting(kind, each, dtype) for each in _numbers(kind, raw, env, 2))
    if not low < high:
        raise InputError(f"uniform needs low < high, found [{low}, {high}]")
    return low, high


def _normal(kind: str, raw: Any, env: Mapping[str, Any], dtype: DType) -> tuple[Any, ...]:
    mean, deviation = (fitting(kind, each, dtype) for each in _numbers(kind, raw, env, 2))
    if deviation < 0:
        raise InputError(f"normal needs a standard deviation of 0 or more, found {deviation}")
    known = limits(dtype)
    least, largest = mean - _REACH * deviation, mean + _REACH * deviation
    if least < known.least or largest > known.largest:
        text = f"{_REACH} standard deviations around the mean, [{least:g}, {largest:g}]"
        raise InputError(f"normal: {text}, leave {dtype.name}'s range [{known.least:g}, {known.largest:g}]")
    return mean, deviation


def _range(kind: str, raw: Any, env: Mapping[str, Any], dtype: DType) -> tuple[int, int]:
    low, high = (_whole(kind, each, dtype) for each in _numbers(kind, raw, env, 2))
    if low > high:
        raise InputError(f"{kind} needs low <= high, found [{low}, {high}]")
    return low, high


def _constant(kind: str, raw: Any, env: Mapping[str, Any], dtype: DType) -> tuple[Any, ...]:
    return (_element(kind, _number(kind, raw, env), dtype),)


def _choice(kind: str, raw: Any, env: Mapping[str, Any], dtype: DType) -> tuple[Any, ...]:
    values = _numbers(kind, raw, env, None)
    if not values:
        raise InputError("choice needs at least one number")
    return tuple(_element(kind, each, dtype) for each in values)


def _sequence(kind: str, raw: Any, env: Mapping[str, Any], dtype: DType) -> tuple[Any, ...]:
    start, step = (_number(kind, each, env) for each in _list(kind, raw, 2))
    if not (math.isfinite(start) and math.isfinite(step)):
        raise InputError(f"sequence needs finite numbers, found [{start}, {step}]")
    if not dtype.is_float and (start != int(start) or step != int(step)):
        raise InputError(f"sequence [{start}, {step}] is not of whole numbers, as dtype {dtype.name} needs")
    return _element(kind, start, dtype), step if dtype.is_float else int(step)


def _unique(kind: str, raw: Any, env: Mapping[str, Any], dtype: DType) -> tuple[Any, ...]:
    pairs = raw if isinstance(raw, (list, tuple)) and raw and isinstance(raw[0], (list, tuple)) else [raw]
    ranges = tuple(_range(kind, pair, env, dtype) for pair in pairs)
    if math.prod(high - low + 1 for low, high in ranges) >= 2**63:
        raise InputError(f"the ranges of {kind} hold 2^63 values or more")
    return ranges


def _clusters(kind: str, raw: Any, env: Mapping[str, Any], dtype: DType) -> tuple[Any, ...]:
    if not isinstance(raw, (list, tuple)) or not 2 <= len(raw) <= 4:
        raise InputError(f"clusters needs {KINDS[kind]}, found {raw!r}")
    return _unique(kind, raw, env, dtype)


def _recipe(kind: str, raw: Any, env: Mapping[str, Any], dtype: DType) -> tuple[Any, ...]:
    if not isinstance(raw, str):
        raise InputError(f"recipe needs a word, found {raw!r}")
    return (raw,)


_PARSERS: Final[dict[str, Callable[[str, Any, Mapping[str, Any], DType], tuple[Any, ...]]]] = {
    "uniform": _uniform, "normal": _normal, "integers": _range, "constant": _constant, "choice": _choice,
    "sequence": _sequence, "unique": _unique, "clusters": _clusters, "recipe": _recipe,
}  # fmt: skip


def parse_arguments(kind: str, raw: Any, env: Mapping[str, Any], dtype: DType) -> tuple[Any, ...]:
    """The arguments that a kind is given, as numbers; all kinds but `file`. InputError where they don't fit the kind.

    Numbers may be expressions over env.
    """
    return _PARSERS[kind](kind, raw, env, dtype)


def _list(kind: str, raw: Any, length: int | None) -> list[Any]:
    if not isinstance(raw, (list, tuple)) or (length is not None and len(raw) != length):
        raise InputError(f"{kind} needs {KINDS[kind]}, found {raw!r}")
    return list(raw)


def _numbers(kind: str, raw: Any, env: Mapping[str, Any], length: int | None) -> list[Any]:
    return [_number(kind, each, env) for each in _list(kind, raw, length)]


def _number(kind: str, raw: Any, env: Mapping[str, Any]) -> Any:
    value = raw
    if isinstance(raw, str):
        try:
            value = _expression(raw)(env)
        except NameError as error:
            raise InputError(f"{kind}: {raw!r} reads {error.name}{did_you_mean(str(error.name), env)}") from None
        except UNCOMPUTABLE as error:
            raise InputError(f"{kind}: {raw!r} can't be computed: {error}") from None
    if isinstance(value, bool):
        return int(value)
    if not isinstance(value, (int, float)):
        raise InputError(f"{kind} needs {KINDS[kind]}, found {raw!r}")
    if isinstance(value, int) and value.bit_length() > _BITS:
        raise InputError(f"{kind}: {raw!r} is beyond {_BITS} bits")
    return value


@cache
def _expression(text: str) -> Any:
    try:
        return parse_expression(text)
    except ValueError as error:
        raise InputError(str(error)) from None


def fitting(kind: str, value: Any, dtype: DType) -> Any:
    """The value, finite and inside the dtype's range; InputError otherwise."""
    known = limits(dtype)
    if not known.least <= value <= known.largest:
        raise InputError(f"{kind}: {value} is outside {dtype.name}'s range [{known.least}, {known.largest}]")
    return value


def _whole(kind: str, value: Any, dtype: DType) -> int:
    """A whole number that, like all whole numbers nearer to zero, the dtype holds exactly."""
    if value != value or value in (math.inf, -math.inf) or value != int(value):
        raise InputError(f"{kind} needs whole numbers, found {value}")
    if dtype.is_float and abs(value) > limits(dtype).exact:
        raise InputError(f"{kind}: {dtype.name} holds whole numbers only up to {limits(dtype).exact}, found {value}")
    return int(fitting(kind, value, dtype))


def _element(kind: str, value: Any, dtype: DType) -> Any:
    """One element's value: any number for a floating dtype, a whole number in range for the others."""
    if not dtype.is_float:
        return _whole(kind, value, dtype)
    return value if math.isnan(value) or math.isinf(value) else fitting(kind, value, dtype)
