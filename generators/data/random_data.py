"""The random_data of foreign case files: which values a tensor asks for, and these values drawn."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from generators.data.distributions import Values, parse_values
from generators.data.draw import draw
from generators.data.rng import Key
from generators.data.samplers import Array
from schemas.dtypes import DTYPES, DType
from schemas.errors import InputError

DEFAULT_SEED: Final = 23
KINDS: Final = {"UNIFORM": "uniform", "DISCRETE_UNIFORM": "integers", "GAUSSIAN": "normal"}
_PARTS: Final = {
    "complex_half": "half", "complex_float": "float", "complex64": "float", "complex_double": "double",
    "complex128": "double",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RandomData:
    """A random_data message as numbers.

    distribution is the enum's name. first and second are mu and sigma of GAUSSIAN, else the bounds, in the file's
    order; the *_double fields win over the others.
    """

    distribution: str
    first: float
    second: float
    seed: int

    @classmethod
    def of(cls, message: Any) -> RandomData:
        """The numbers of a RandomData message of the interface, defaults filled in."""
        number = message.DESCRIPTOR.fields_by_name["distribution"].enum_type.values_by_number[message.distribution]
        names = ("mu", "sigma") if number.name == "GAUSSIAN" else ("lower_bound", "upper_bound")
        first, second = (_either(message, name) for name in names)
        return cls(number.name, first, second, message.seed if message.HasField("seed") else DEFAULT_SEED)

    @property
    def names(self) -> tuple[str, str]:
        """The names of the fields that first and second come from."""
        return ("mu", "sigma") if self.distribution == "GAUSSIAN" else ("lower_bound", "upper_bound")

    @property
    def inverted(self) -> bool:
        """Whether the bounds are the wrong way round: they are read as swapped."""
        return self.distribution != "GAUSSIAN" and self.first > self.second

    def values(self, dtype: str) -> Values:
        """How elements of a dtype (of a complex one: the parts) are drawn.

        UNIFORM [lower, upper), DISCRETE_UNIFORM (both inclusive), GAUSSIAN; equal bounds are a constant. InputError for
        other distributions, and for numbers that the dtype can't hold.
        """
        if self.distribution not in KINDS:
            raise InputError(f"random_data of {self.distribution}: expected {', '.join(KINDS)}")
        if not (math.isfinite(self.first) and math.isfinite(self.second)):
            numbers = zip(self.names, (self.first, self.second), strict=True)
            raise InputError(f"random_data: {' and '.join(f'{n} {x:g}' for n, x in numbers)} are not both finite")
        part = _PARTS.get(dtype, dtype)
        low, high = (self.second, self.first) if self.inverted else (self.first, self.second)
        raw: dict[str, Any] = {KINDS[self.distribution]: [low, high]}
        if self.distribution == "UNIFORM" and low == high:
            raw = {"constant": low if part in DTYPES and DTYPES[part].is_float else math.floor(low)}
        try:
            return parse_values(raw, {}, part)
        except InputError as error:
            raise InputError(f"random_data: {error.message}") from None


def draw_random_data(record: Any, key: Key, warn: Callable[[str], None] | None = None) -> Array:
    """The values of a tensor whose file has random_data for it, in its shape (flat span when strided).

    record is a TensorRecord of schemas. key separates tensors of one seed. complex_half gives pairs of half. warn is
    called for inverted bounds. InputError, with the tensor's place, as in RandomData.values.
    """
    random, dtype = RandomData.of(record.random), record.dtype
    dims = record.shape if record.strides is None else (record.span,)
    if random.inverted and warn is not None:
        warn(f"{record.place}: lower_bound is above upper_bound, read as [{random.second}, {random.first})")
    part = _PARTS.get(dtype.name)
    try:
        values = random.values(dtype.name)
        drawn = draw(values, (*dims, 2) if part else dims, part or dtype.name, (random.seed, *key))
    except InputError as error:
        raise InputError(error.message, record.place) from None
    return _joined(drawn, dtype, dims) if part else drawn


def _joined(parts: Array, dtype: DType, dims: tuple[int, ...]) -> Array:
    """Pairs of real and imaginary parts as elements of the complex dtype, where NumPy has one."""
    return parts if dtype.storage is None else parts.view(dtype.storage).reshape(dims)


def _either(message: Any, name: str) -> float:
    double = f"{name}_double"
    return float(getattr(message, double if message.HasField(double) else name))
