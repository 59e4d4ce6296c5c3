"""How the values of an input are chosen: the `dist` of a spec, parsed into a plain value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from generators.data.dtype_limits import bit_pattern
from generators.data.kinds import KINDS, ROWS, fitting, parse_arguments
from generators.data.value_files import find_stored, stored_text
from schemas.dtypes import DTYPES, DType, dtype_named
from schemas.errors import InputError
from schemas.suggest import counted, did_you_mean

OPTIONS: Final = ("nan", "inf", "special", "special_share")
SPECIAL_SHARE: Final = 0.01
_NEED_DIMS: Final = ("sequence", "file", *ROWS)  # the kinds that not all dims can hold


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
    parts += [f"{name} {fraction!r}" for name, fraction in (("nan", values.nan), ("inf", values.inf)) if fraction]
    if values.special:
        parts.append(f"special [{', '.join(map(hex, values.special))}] {values.special_share!r}")
    return ", ".join(parts)


def can_be_drawn(dtype: str) -> bool:
    """Whether values can be drawn for a dtype: not for a complex one, nor for one that NumPy lacks."""
    known = dtype_named(dtype)
    return known is not None and known.storage is not None and known.kind != "complex"


def drawn_dtype(dtype: str) -> DType:
    """The dtype of that name; InputError where no values can be drawn for it."""
    known = dtype_named(dtype)
    if known is None or not can_be_drawn(dtype):
        raise InputError(f"no values can be drawn for dtype {dtype}")
    return known


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
    known = drawn_dtype(dtype)
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
        args = parse_arguments(kind, source[kind], env, known)
    nan, inf = (_fraction(mapping, name) for name in ("nan", "inf"))
    if (nan or inf) and not known.is_float:
        raise InputError(f"dtype {dtype} has no {'nan' if nan else 'inf'}, only floating dtypes have")
    if nan + inf > 1:
        raise InputError(f"nan {nan} and inf {inf} are more than all elements together")
    listed = mapping.get("special", [])
    if not isinstance(listed, (list, tuple)):
        raise InputError(f"special is {listed!r}, expected a list")
    special = tuple(bit_pattern(each, known) for each in listed)
    return Values(kind, args, nan, inf, special, _fraction(mapping, "special_share", SPECIAL_SHARE))


def check_values(values: Values, dims: tuple[int, ...], dtype: str) -> None:
    """InputError where dims can't hold the values: too many unique ones, a sequence beyond the dtype, another file."""
    if values.kind not in _NEED_DIMS and not (values.nan or values.inf or values.special):
        return
    n = math.prod(dims)
    known = dtype_named(dtype)
    assert known is not None
    if values.kind == "sequence" and n:
        last = values.args[0] + values.args[1] * (n - 1)
        fitting("sequence", last, known)
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


def _fraction(mapping: Mapping[str, Any], name: str, default: float = 0.0) -> float:
    fraction = mapping.get(name, default)
    if isinstance(fraction, bool) or not isinstance(fraction, (int, float)) or not 0 <= fraction <= 1:
        raise InputError(f"{name} is {fraction!r}, expected a fraction from 0 to 1")
    return float(fraction)
