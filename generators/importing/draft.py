"""What an import makes of one case of others, before it becomes an entry of a spec."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from schemas.dtypes import DType, dtype_named
from schemas.errors import InputError, SourceLocation

Note = Callable[[str], None]  # told what doesn't go over as it stands
_THEIRS = {"complex32": "complex_half", "complex64": "complex_float", "fp16": "half", "fp32": "float", "fp64": "double"}


@dataclass(slots=True)
class TensorDraft:
    """One tensor: what a spec says of it. dist is in the spec's words, empty: the contract's way; stored are values
    that go to a file beside the spec."""

    shape: tuple[int, ...]
    dtype: str | None = None
    layout: str | None = None
    strides: tuple[int, ...] | None = None
    dist: dict[str, Any] = field(default_factory=dict)
    stored: NDArray[Any] | None = None


@dataclass(slots=True)
class CaseDraft:
    """One case of others: tensors by position, and where it stands (file and place in it).

    by_shape: cases of equal shapes, dtypes and parameters count as one, whatever their values.
    """

    op: str
    place: str
    inputs: list[TensorDraft]
    outputs: list[TensorDraft]
    params: dict[str, Any] = field(default_factory=dict)
    criteria: list[dict[str, float]] = field(default_factory=list)  # per output; empty: the contract's
    tags: tuple[str, ...] = ()
    by_shape: bool = False

    def key(self) -> str:
        """Equal for cases that are the same."""
        tensors = [
            (each.shape, each.dtype, each.layout, each.strides, None if self.by_shape else (each.dist, _id(each)))
            for each in (*self.inputs, *self.outputs)
        ]
        criteria = None if self.by_shape else self.criteria
        return repr((self.op, tensors, sorted(self.params.items()), criteria, self.tags))


def _id(tensor: TensorDraft) -> int:
    return id(tensor.stored) if tensor.stored is not None else 0


def their_dtype(name: Any, place: SourceLocation) -> DType:
    """The dtype of a name as others write it; InputError where there is none."""
    found = dtype_named(_THEIRS.get(name, name)) if isinstance(name, str) else None
    if found is None:
        raise InputError(f"unknown dtype {name!r}", place)
    return found


def dist_of(kind: str, first: float, second: float, note: Note) -> dict[str, Any]:
    """uniform or normal in our words: equal bounds are a constant, inverted ones are swapped, which note is told."""
    if kind == "normal":
        return {"normal": [first, second]} if second else {"constant": first}
    if first == second:
        return {"constant": first}
    if first > second:
        note(f"bounds [{plain(first)}, {plain(second)}] are inverted, read as swapped")
        first, second = second, first
    return {"uniform": [plain(first), plain(second)]}


def plain(number: float) -> float | int:
    """A whole number without its point."""
    return int(number) if isinstance(number, float) and number.is_integer() and abs(number) < 2**53 else number


def criteria_by_output(outputs: int, names: list[str], thresholds: list[float]) -> list[dict[str, float]]:
    """The same criteria for every output."""
    return [dict(zip(names, map(float, thresholds), strict=True)) for _ in range(outputs)]


def as_mapping(value: Any, what: str, place: SourceLocation) -> Mapping[str, Any]:
    """A JSON object; InputError where it is something else."""
    if not isinstance(value, dict):
        raise InputError(f"{what} is {value!r}, expected an object", place)
    return value


def as_list(value: Any, what: str, place: SourceLocation) -> list[Any]:
    """A JSON list; InputError where it is something else."""
    if not isinstance(value, list):
        raise InputError(f"{what} is {value!r}, expected a list", place)
    return value
