"""How the values of an input are chosen: the `dist` of a spec, parsed into a plain value."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from generators.data.dtype_limits import bit_pattern, limits
from generators.data.value_files import find_stored, stored_text
from generators.expressions import UNCOMPUTABLE, parse_expression
from schemas.dtypes import DTYPES, DType, dtype_named
from schemas.errors import InputError
from schemas.suggest import counted, did_you_mean

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
OPTIONS: Final = ("nan", "inf", "special", "special_share")
SPECIAL_SHARE: Final = 0.01
_REACH: Final = 6  # standard deviations from the mean that the dtype must hold; beyond them lie 2 of 10^9 values
_BITS: Final = 128  # of an integer: more than any element holds, and no float overflows


@dataclass(frozen=True, slots=True)
class Values:
    """How one tensor's values are sampled: a kind with its arguments (see KINDS), and the special values put over them.

    nan, inf: fractions of the elements; special: bit patterns in the dtype, each placed at least once, together
    special_share of the elements.
    """

    kind: str
    args: tuple[Any, ...] = ()
    nan: float = 0.0
    inf: float = 0.0
    special: tuple[int, ...] = ()
    special_share: float = SPECIAL_SHARE


def recipe_text(values: Values) -> str:
    """The values as one line, such as `uniform [-1, 1], nan 0.1`; equal texts draw equal data from equal keys."""
    parts = [stored_text(values.args[0]) if values.kind == "file" else f"{values.kind} {list(values.args)}"]
    parts += [f"{name} {share!r}" for name, share in (("nan", values.nan), ("inf", values.inf)) if share]
    if values.special:
        parts.append(f"special [{', '.join(map(hex, values.special))}] {values.special_share!r}")
    return ", ".join(parts)


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


def parse_values(
    mapping: Mapping[str, Any],
    env: Mapping[str, Any],
    dtype: str,
    default: Mapping[str, Any] | None = None,
    folder: Path | None = None,
) -> Values:
    """The Values that a `dist` mapping means for a dtype; without a kind, that of default.

    Numbers may be expressions over env; a file's path is relative to folder. InputError (without place) where it makes
    no sense or doesn't fit the dtype.
    """
    known = dtype_named(dtype)
    if known is None or known.storage is None:
        raise InputError(f"no values can be drawn for dtype {dtype}")
    unknown = next((key for key in mapping if key not in KINDS and key not in OPTIONS), None)
    if unknown is not None:
        raise InputError(f"unknown key {unknown!r} in dist{did_you_mean(unknown, (*KINDS, *OPTIONS))}")
    kinds = [key for key in mapping if key in KINDS]
    if len(kinds) > 1:
        raise InputError(f"found {' and '.join(kinds)} in one dist, expected one of them")
    source = mapping if kinds else default or {}
    kind = next((key for key in source if key in KINDS), None)
    if kind is None:
        raise InputError(f"no kind of values is given, expected one of {', '.join(KINDS)}")
    if kind == "file":
        args: tuple[Any, ...] = (find_stored(source[kind], folder or Path(), known),)
    else:
        args = _PARSERS[kind](kind, source[kind], env, known)
    nan, inf = (_share(mapping, name) for name in ("nan", "inf"))
    if (nan or inf) and not known.is_float:
        raise InputError(f"dtype {dtype} has no {'nan' if nan else 'inf'}, only floating dtypes have")
    if nan + inf > 1:
        raise InputError(f"nan {nan} and inf {inf} are more than all elements together")
    listed = mapping.get("special", [])
    if not isinstance(listed, (list, tuple)):
        raise InputError(f"special is {listed!r}, expected a list")
    special = tuple(bit_pattern(each, known) for each in listed)
    return Values(kind, args, nan, inf, special, _share(mapping, "special_share", SPECIAL_SHARE))


def check_values(values: Values, dims: tuple[int, ...], dtype: str) -> None:
    """InputError where dims can't hold the values: too many unique ones, a sequence beyond the dtype, another file."""
    if values.kind not in ("sequence", "file", *ROWS) and not (values.nan or values.inf or values.special):
        return
    n = math.prod(dims)
    known = dtype_named(dtype)
    assert known is not None
    if values.kind == "sequence" and n:
        last = values.args[0] + values.args[1] * (n - 1)
        _fitting("sequence", last, known)
    if values.kind == "file":
        values.args[0].check(dims, known)
    if values.kind in ROWS and len(values.args) > 1:
        columns = len(values.args)
        if not dims or dims[-1] != columns:
            raise InputError(f"{values.kind} gives rows of {columns}, the tensor's dims are {list(dims)}")
        _enough(n // columns, values, "rows")
    elif values.kind == "unique":
        _enough(n, values, "values")
    laid = overlay_counts(values, n)
    if sum(laid) > n:
        raise InputError(
            f"{counted(n, 'element')} don't hold {laid[0]} nan, {laid[1]} inf and {laid[2]} special values"
        )


def plain_values(dtype: str) -> Values:
    """Values for an invalid case, on whose data nothing is computed: small numbers that every dtype holds."""
    return parse_values({"uniform": [-1, 1]} if DTYPES[dtype].is_float else {"integers": [0, 1]}, {}, dtype)


def is_finite(values: Values, dtype: str) -> bool:
    """Whether no NaN and no infinity is among the values of a floating dtype; those of files aren't looked at."""
    storage: Any = DTYPES[dtype].storage
    special = np.array(values.special, f"<u{storage.itemsize}").view(storage)
    numbers = values.args if values.kind in ("constant", "choice") else ()
    return not (values.nan or values.inf) and bool(np.isfinite(special).all()) and all(map(math.isfinite, numbers))


def overlay_counts(values: Values, elements: int) -> tuple[int, int, int]:
    """Number of NaNs, infinities and special values among so many elements; at least one of each requested."""
    if not elements:
        return 0, 0, 0
    nan = max(1, int(values.nan * elements + 0.5)) if values.nan else 0
    inf = max(1, int((values.nan + values.inf) * elements + 0.5) - nan) if values.inf else 0
    special = max(len(values.special), int(values.special_share * elements + 0.5)) if values.special else 0
    return nan, inf, min(special, max(len(values.special), elements - nan - inf))


def unique_space(values: Values) -> int:
    """How many distinct values (or rows) the ranges of `unique` or `clusters` hold."""
    return math.prod(high - low + 1 for low, high in values.args)


def _enough(wanted: int, values: Values, what: str) -> None:
    space = unique_space(values)
    if wanted > space:
        raise InputError(f"{wanted} unique {what} are wanted, the range holds {space}")


# ---- arguments of the kinds ----------------------------------------------------------------------------------------


def _uniform(kind: str, raw: Any, env: Mapping[str, Any], dtype: DType) -> tuple[Any, ...]:
    low, high = (_fitting(kind, each, dtype) for each in _numbers(kind, raw, env, 2))
    if not low < high:
        raise InputError(f"uniform needs low < high, found [{low}, {high}]")
    return low, high


def _normal(kind: str, raw: Any, env: Mapping[str, Any], dtype: DType) -> tuple[Any, ...]:
    mean, deviation = (_fitting(kind, each, dtype) for each in _numbers(kind, raw, env, 2))
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


def _share(mapping: Mapping[str, Any], name: str, default: float = 0.0) -> float:
    share = mapping.get(name, default)
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share <= 1:
        raise InputError(f"{name} is {share!r}, expected a share from 0 to 1")
    return float(share)


# ---- numbers in a dtype --------------------------------------------------------------------------------------------


def _fitting(kind: str, value: Any, dtype: DType) -> Any:
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
    return int(_fitting(kind, value, dtype))


def _element(kind: str, value: Any, dtype: DType) -> Any:
    """One element's value: any number for a floating dtype, a whole number in range for the others."""
    if not dtype.is_float:
        return _whole(kind, value, dtype)
    return value if math.isnan(value) or math.isinf(value) else _fitting(kind, value, dtype)
