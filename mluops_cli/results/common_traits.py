"""What all failing cases of a kind have in common and no passing case has: an even w_mask, a dtype, a size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mluops_cli.core.record import Record

_MOST: Final = 1000  # distinct values of a trait that are kept; more say nothing simple
_MULTIPLES: Final = (256, 128, 64, 32, 16, 8, 4)

Value = int | float | str
_PLAIN: Final = (int, float, str)
Seen = dict[str, set[Value] | None]  # trait -> its values in some cases; None: too many


def add_traits(seen: Seen, record: Record) -> None:
    """Add the values of a case's parameters, dims, dtypes and layouts."""
    for name, value in _traits(record):
        values = seen.setdefault(name, set())
        if values is not None:
            values.add(value)
            if len(values) > _MOST:
                seen[name] = None


def may_distinguish(failing: Seen, passing: Seen) -> bool:
    """Whether a trait may distinguish the failing cases from the passing ones, of which more may follow."""
    for name, values in failing.items():
        others = passing.get(name, set())
        if values is not None and others is not None and values.isdisjoint(others):
            return True
    return False


def in_common(failing: Seen, passing: Seen) -> str:
    """What distinguishes the failing cases from the passing ones: `even w_mask`; empty where no single trait does.

    A parameter goes before sizes and dtypes, which often follow from it. Among equals the trait that takes the most
    values is named, since it is the least likely to be chance.
    """
    claims = []
    for place, (name, values) in enumerate(failing.items()):
        others = passing.get(name)
        if values and others and (claim := _claim(name, values, others)):
            claims.append((_is_tensor(name), -len(values) - len(others), place, claim))
    return min(claims)[-1] if claims else ""


def _traits(record: Record) -> Iterator[tuple[str, Value]]:
    for name, value in record.params.items():
        if isinstance(value, _PLAIN):
            yield name, value
        elif isinstance(value, list):
            for at, each in enumerate(value):
                if isinstance(each, _PLAIN):
                    yield f"{name}[{at}]", each
    for name, tensor in record.tensors.items():
        for axis, dim in enumerate(tensor.get("dims", ())):
            if isinstance(dim, int):
                yield f"dim {axis} of {name}", dim
        for word in ("dtype", "layout"):
            if isinstance(text := tensor.get(word), str):
                yield f"{word} of {name}", text


def _is_tensor(trait: str) -> bool:
    return " of " in trait


def _claim(name: str, failing: set[Value], passing: set[Value]) -> str:
    """What holds for all values of the failing cases and for none of the passing ones."""
    if failing & passing:
        return ""
    if len(failing) == 1:
        return f"{name} = {next(iter(failing))}"
    fails, passes = _whole(failing), _whole(passing)
    if not fails or not passes:
        return ""
    if min(fails) > max(passes):
        return f"{name} of {min(fails)} or more"
    if max(fails) < min(passes):
        return f"{name} of {max(fails)} or less"
    for rest, word in ((0, "even"), (1, "odd")):
        if all(value % 2 == rest for value in fails) and all(value % 2 != rest for value in passes):
            return f"{word} {name}"
    for step in _MULTIPLES:
        if not any(value % step for value in fails) and all(value % step for value in passes):
            return f"{name} a multiple of {step}"
        if all(value % step for value in fails) and not any(value % step for value in passes):
            return f"{name} no multiple of {step}"
    return ""


def _whole(values: set[Value]) -> list[int]:
    """The values, where all are whole numbers."""
    return [value for value in values if isinstance(value, int)] if all(isinstance(v, int) for v in values) else []
