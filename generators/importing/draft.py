"""What an import makes of one case of others, before it becomes an entry of a spec."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from schemas.errors import InputError

Note = Callable[[str], None]  # is called with what is not converted as it stands


@dataclass(slots=True)
class TensorDraft:
    """One tensor, as a spec describes it.

    dist is in the spec's words; empty: the contract's default. stored are values that go to a file beside the spec.
    name is what its file calls it, empty where it has no name.
    """

    shape: tuple[int, ...]
    dtype: str | None = None
    layout: str | None = None
    strides: tuple[int, ...] | None = None
    dist: dict[str, Any] = field(default_factory=dict)
    stored: NDArray[Any] | None = None
    name: str = ""


@dataclass(slots=True)
class CaseDraft:
    """One case of others: tensors by position, and where it stands (file and place in it).

    message is the field of a case file that holds the parameters, empty where there is none. floats names those that
    are floats there: in params a whole one has no point.
    """

    op: str
    place: str
    inputs: list[TensorDraft]
    outputs: list[TensorDraft]
    params: dict[str, Any] = field(default_factory=dict)
    criteria: list[dict[str, float]] = field(default_factory=list)  # per output; empty: the contract's
    tags: tuple[str, ...] = ()
    illegal: bool = False  # whether it is said to be a case that the operator has to refuse
    message: str = ""
    floats: frozenset[str] = frozenset()

    def key(self) -> str:
        """Equal for cases that are the same: shapes, parameters, criteria, and data that are sampled alike or equal."""
        tensors = [
            (each.shape, each.dtype, each.layout, each.strides, each.dist, _hash(each.stored))
            for each in (*self.inputs, *self.outputs)
        ]
        return repr((self.op, tensors, sorted(self.params.items()), self.criteria, self.tags))


def _hash(stored: NDArray[Any] | None) -> str:
    if stored is None:
        return ""
    return xxhash.xxh3_128_hexdigest(np.ascontiguousarray(stored).reshape(-1).view(np.uint8).data)


@dataclass(slots=True)
class Imported:
    """What was read: the cases, counted notes on what is not converted as it stands, and what is wrong."""

    drafts: list[CaseDraft] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
    errors: list[InputError] = field(default_factory=list)

    def note(self, message: str) -> None:
        """Count a note."""
        self.notes[message] += 1


def dist_of(kind: str, first: float, second: float, note: Note) -> dict[str, Any]:
    """uniform or normal in our words: equal bounds are a constant, inverted ones are swapped with a note."""
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


def short(value: float) -> float:
    """A float32 as the shortest decimal that is read as it: 0.1, not 0.10000000149; other doubles as they are."""
    return float(str(np.float32(value))) if abs(value) < 3e38 and float(np.float32(value)) == value else value


def stricter_criteria(given: Iterable[tuple[str, float]], note: Note) -> dict[str, float]:
    """Thresholds by criterion; of a criterion that is given twice the stricter one, with a note."""
    kept: dict[str, float] = {}
    for name, threshold in given:
        if kept.setdefault(name, threshold) != threshold:
            kept[name] = min(kept[name], threshold)
            note(f"criterion {name} has several thresholds: the strictest, {plain(kept[name])}, is taken")
    return kept
