"""Messages of a process that runs an implementation: read without waiting, and checked.

The other end of the channel is open to the implementation under test, which may write anything into it.
"""

from __future__ import annotations

import json
import math
import os
import select
import struct
from collections.abc import Iterable
from typing import Any, Final

_HEADER: Final = struct.Struct("!i")  # as multiprocessing.connection frames what it sends
_LONGEST: Final = 64 << 20  # bytes of a message
_CHUNK: Final = 1 << 16
_CHUNKS: Final = 16  # read at once, so that a sender that never stops doesn't block the reader


class BrokenChannelError(Exception):
    """What has arrived is not a message of mluops."""

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

    def read(self, descriptor: int) -> bool:
        """Take what can be read of a channel without waiting; whether more may come: not from a closed one."""
        try:
            for _ in range(_CHUNKS):
                if not wait_readable([descriptor], 0):
                    return True
                if not (data := os.read(descriptor, _CHUNK)):
                    return False
                self.feed(data)
        except OSError:
            return False
        return True

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
        except (ValueError, RecursionError):
            raise BrokenChannelError("a message that is not JSON") from None
        if not isinstance(found, dict):
            raise BrokenChannelError(f"a message that is a {type(found).__name__}")
        return found


def framed(message: dict[str, Any]) -> bytes:
    """The bytes of a message."""
    content = json.dumps(message).encode()
    return _HEADER.pack(len(content)) + content


def wait_readable(handles: Iterable[Any], seconds: float | None) -> bool:
    """Wait until a handle can be read or has ended, at most so many seconds (None: for ever); whether one can or has.

    Handles are descriptors, or objects that have one; OSError where one is closed. multiprocessing.connection.wait does
    the same through a selector, which takes several times as long.
    """
    poller = select.poll()
    for handle in handles:
        poller.register(handle, select.POLLIN)
    return bool(poller.poll(None if seconds is None else math.ceil(seconds * 1000)))
