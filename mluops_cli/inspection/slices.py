"""`--values TENSOR[SLICES]`: some values of a tensor, in full digits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from schemas.casefiles.tensors import TensorRecord
from schemas.errors import InputError
from schemas.suggest import did_you_mean

MOST: Final = 100_000  # values shown at once
_ITEM: Final = re.compile(r"\s*(?:(\.\.\.)|(-?\d+)|(-?\d*)\s*:\s*(-?\d*)\s*(?::\s*(-?\d*))?)\s*")


def sliced(text: str, tensors: Mapping[str, TensorRecord]) -> np.ndarray[Any, Any]:
    """Return the values that `name`, `name[3]`, `name[0, ..., 2:5]` mean.

    The values of a tensor whose values and shape disagree are flat. InputError where there are no such values, or too
    many to show.
    """
    name, items = _parsed(text, tensors)
    record = tensors[name]
    if not record.has_values:
        drawn = ", they are to be drawn" if record.source else ""
        raise InputError(f"--values {text}: {name} has no values in the file{drawn}", record.place)
    try:
        values = record.array()
    except InputError:
        values = record.stored()
    try:
        chosen = np.asarray(values[items])
    except (IndexError, ValueError) as error:
        raise InputError(f"--values {text}: {error}", record.place) from None
    if chosen.size > MOST:
        raise InputError(f"--values {text}: {chosen.size} values, at most {MOST} are shown: give a slice", record.place)
    return chosen


def value_lines(values: np.ndarray[Any, Any]) -> list[str]:
    """Return all values as NumPy prints them, with the digits that tell them apart."""
    shown = values.astype(np.float32) if values.dtype.kind == "V" else values  # bfloat16 and float8
    return np.array2string(shown, separator=", ", threshold=MOST + 1, max_line_width=120).splitlines()


def plain_values(values: np.ndarray[Any, Any]) -> Any:
    """Return the values as JSON data: complex numbers become pairs."""
    if values.dtype.kind == "c":
        return values.view(values.real.dtype).reshape((*values.shape, 2)).tolist() if values.ndim else _pair(values)
    return values.astype(np.float64).tolist() if values.dtype.kind == "V" else values.tolist()


def _pair(value: Any) -> list[float]:
    return [float(value.real), float(value.imag)]


def _parsed(text: str, tensors: Mapping[str, TensorRecord]) -> tuple[str, Any]:
    if text in tensors:
        return text, ...
    name, bracket, rest = text.rpartition("[")
    if not bracket or not rest.endswith("]"):
        raise InputError(f"--values {text}: no tensor {text!r}{did_you_mean(text, tensors)}")
    if name not in tensors:
        raise InputError(f"--values {text}: no tensor {name!r}{did_you_mean(name, tensors)}")
    items: list[Any] = []
    for word in rest[:-1].split(","):
        match = _ITEM.fullmatch(word)
        if match is None:
            raise InputError(f"--values {text}: {word.strip()!r} is no index, expected 3, 2:5, ::2 or ...")
        if match[1]:
            items.append(...)
        elif match[2]:
            items.append(int(match[2]))
        else:
            items.append(slice(*(int(part) if part else None for part in match.groups()[2:])))
    return name, tuple(items)
