"""What a worker may send to the supervisor: the facts of a case, before its first call; then its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any, Final, get_args, get_origin, get_type_hints

from mluops_cli.core.record import Record
from mluops_cli.core.statuses import STATUSES
from mluops_cli.execution.kernel_process.frames import BrokenChannelError

FACTS: Final = "facts"  # the key of a message with keys of a record that don't depend on the implementation
_FOR_THE_SUPERVISOR: Final[dict[str, tuple[type, ...]]] = {"retire": (bool,), "again": (bool,), "traceback": (str,)}


def check_result(result: Mapping[str, Any]) -> None:
    """BrokenChannelError where a message is not the result of a case: the keys of a record from `status` on."""
    if result.get("status") not in STATUSES:
        raise BrokenChannelError(f"a message that is no result: {', '.join(map(repr, result))[:80]}")
    _check_keys(result)


def check_facts(facts: Any) -> None:
    """BrokenChannelError where the value of FACTS is not what a result may hold, or holds a status."""
    if not isinstance(facts, dict) or "status" in facts:
        raise BrokenChannelError("wrong facts of a case")
    _check_keys(facts)


def _check_keys(result: Mapping[str, Any]) -> None:
    known = _kinds()
    for name, value in result.items():
        kinds = known.get(name)
        if kinds is None:
            raise BrokenChannelError(f"a result with the key {name[:80]!r}")
        if not isinstance(value, kinds):
            raise BrokenChannelError(f"a result whose {name} is a {type(value).__name__}")


@cache
def _kinds() -> Mapping[str, tuple[type, ...]]:
    """Key of a result -> the classes that its value may have."""
    hints = get_type_hints(Record)
    names = [each.name for each in fields(Record)]
    result = names[names.index("status") :]  # before it: which case it is of
    return {name: _classes(hints[name]) for name in result} | _FOR_THE_SUPERVISOR


def _classes(hint: Any) -> tuple[type, ...]:
    """The classes of a type hint: of its parts, where it is a union or a Literal."""
    origin = get_origin(hint)
    if isinstance(origin, type) and issubclass(origin, (list, dict)):
        return (origin,)
    if origin is not None:  # a union of types, or a Literal of values
        return tuple({each for part in get_args(hint) for each in _classes(part)})
    if not isinstance(hint, type):
        return (type(hint),)
    return (int, float) if hint is float else (hint,)
