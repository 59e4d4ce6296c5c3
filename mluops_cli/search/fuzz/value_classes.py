"""Classes of an input's values, as the `dist` of a spec: special numbers, crowded ones, borders of the default range.

What an operator takes is not all in its contract's data: check_values decides, so a class may turn out to be illegal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

from generators.contracts.model import Contract, Env, TensorSpec
from schemas.dtypes import DTYPES

Dist = dict[str, Any]
Make = Callable[[Random, Env], Dist]

DEFAULT: Final = "default"
ENDS: Final = "ends of the dtype"
_SIMPLE: Final = (-2, -1, -0.5, 0.5, 1, 2)
_WIDE: Final = 1e30  # a sum of so large numbers doesn't overflow
_FEWER: Final = {"half": 1e3}  # dtype -> the same


def value_classes(contract: Contract, tensor: TensorSpec, dtype: str) -> dict[str, Make]:
    """Class -> how its `dist` is made; the first is the contract's own default."""
    found: dict[str, Make] = {DEFAULT: lambda rng, env: {}}
    for number, variant in enumerate(tensor.variants):
        found[f"variant {number + 1}"] = lambda rng, env, variant=variant: dict(variant)  # type: ignore[misc]
    kind = DTYPES[dtype].kind
    if kind == "float":
        found |= _floats(contract, tensor, _FEWER.get(dtype, _WIDE))
    elif kind in ("integer", "unsigned"):
        found |= _integers(tensor, int(8 * DTYPES[dtype].width), signed=kind == "integer")
    return found


def _always(dist: Dist) -> Make:
    return lambda rng, env: dict(dist)


def _floats(contract: Contract, tensor: TensorSpec, wide: float) -> dict[str, Make]:
    found: dict[str, Make] = {
        "integers": _always({"integers": [-8, 8]}),
        "few values": _always({"choice": [-1, -0.5, 0, 0.5, 1]}),
        "ends": _always({"choice": [-1, 1]}),
        "one value": lambda rng, env: {"constant": rng.choice(_SIMPLE)},
        "negative": _always({"uniform": [-1.5, -0.5]}),
        "beyond": _always({"uniform": [-1.5, 1.5]}),
        "sequence": _always({"sequence": [1, 1]}),
        "-0": _always({"special": ["-zero", "zero"], "special_share": 0.3}),
        "tiny": _always({"uniform": [-1e-20, 1e-20]}),
    }
    if tensor.finite or _recipe(tensor):
        return found
    found |= {
        "wide": _always({"uniform": [-wide, wide]}),
        "magnitudes": _always({"special": [1 / wide, -1e-5, wide / 8, -wide], "special_share": 0.2}),
        "subnormal": _always({"special": ["subnormal", "-subnormal", "smallest", "-smallest"], "special_share": 0.2}),
        "NaN": lambda rng, env: {"nan": rng.choice((0.01, 0.3, 1.0))},
        "Inf": lambda rng, env: {"inf": rng.choice((0.01, 0.3, 1.0))},
        "NaN and Inf": _always({"nan": 0.1, "inf": 0.1}),
    }
    if contract.category == "pure_io":  # a sum of largest numbers overflows in one order and not in another
        found["limits"] = _always({"special": ["largest", "-largest", "smallest"], "special_share": 0.5})
    return found


def _integers(tensor: TensorSpec, bits: int, *, signed: bool) -> dict[str, Make]:
    found: dict[str, Make] = {
        "zero": _always({"constant": 0}),
        "0 or 1": _always({"integers": [0, 1]}),
        "up to a size": lambda rng, env: {"integers": [-1 if signed else 0, _size(rng, env)]},
        "around a size": lambda rng, env: _around(_size(rng, env)),
        "limits": _always(
            {"special": ["largest", "-largest"] if signed else ["largest", "zero"], "special_share": 0.2}
        ),
    }
    least, largest = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    found[ENDS] = _always({"choice": sorted({least, least + 1, -1 if signed else 0, 0, 1, largest - 1, largest})})
    bounds = _bounds(tensor.values)
    if bounds is not None:
        low, high = bounds
        found |= {
            "one value": lambda rng, env: {"constant": rng.choice((low, high, f"({low} + {high})//2"))},
            "ends": _always({"choice": [low, f"{low} + 1", f"{high} - 1", high]}),
            "middle": _always({"integers": [f"({low} + {high})//2 - 1", f"({low} + {high})//2 + 1"]}),
        }
    return found


def _recipe(tensor: TensorSpec) -> bool:
    return "recipe" in (tensor.values or {})


def _bounds(values: Mapping[str, Any] | None) -> tuple[str, str] | None:
    """The range of a default that has one, as expressions."""
    given = next((values[kind] for kind in ("integers", "uniform") if kind in values), None) if values else None
    return (f"({given[0]})", f"({given[1]})") if given else None


def _size(rng: Random, env: Env) -> int:
    """A size or parameter of the case: coordinates reach about so far."""
    numbers: list[int] = [each for value in env.values() for each in (value if isinstance(value, tuple) else (value,))]
    return rng.choice([number for number in numbers if 0 <= number < 2**31 - 1] or [1])


def _around(size: int) -> Dist:
    return {"choice": [0, max(0, size - 1), size]}
