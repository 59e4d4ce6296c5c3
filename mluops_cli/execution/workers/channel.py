"""Messages from a worker to the supervisor, as the supervisor reads them: it never waits, and trusts nothing.

The worker's end of the channel is open to the implementation under test, which may write anything into it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any, Final, get_args, get_origin, get_type_hints

from mluops_cli.core.record import Record
from mluops_cli.core.statuses import STATUSES

_HEADER: Final = struct.Struct("!i")  # as multiprocessing.connection frames what it sends
_LONGEST: Final = 64 << 20  # bytes of a message
_FOR_THE_SUPERVISOR: Final[dict[str, tuple[type, ...]]] = {"retire": (bool,), "again": (bool,), "traceback": (str,)}


class BrokenChannelError(Exception):
    """What has arrived is no message of ours."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the channel to the supervisor is broken, the implementation wrote into it: {what}")


class FrameReader:
    """Puts the bytes of a channel together to messages."""

    def __init__(self) -> None:
        self._data = bytearray()

    def __bool__(self) -> bool:
        """Whether there is more than the messages that were taken."""
        return bool(self._data)

    def feed(self, data: bytes) -> None:
        """Take what has arrived, however little it is."""
        self._data += data

    def message(self) -> dict[str, Any] | None:
        """The next message that has arrived as a whole; BrokenChannelError where it can't be one."""
        if len(self._data) < _HEADER.size:
            return None
        (length,) = _HEADER.unpack_from(self._data)
        if not 0 <= length <= _LONGEST:
            raise BrokenChannelError(f"a message of {length} bytes")
        end = _HEADER.size + length
        if len(self._data) < end:
            return None
        content = bytes(self._data[_HEADER.size : end])
        del self._data[:end]
        try:
            found = json.loads(content)
        except ValueError:
            raise BrokenChannelError("a message that is not JSON") from None
        if not isinstance(found, dict):
            raise BrokenChannelError(f"a message that is a {type(found).__name__}")
        return found


def check_result(result: Mapping[str, Any]) -> None:
    """BrokenChannelError where a message is not the result of a case: the keys of a record from `status` on."""
    if result.get("status") not in STATUSES:
        raise BrokenChannelError(f"a message that is no result: {', '.join(map(repr, result))[:80]}")
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
