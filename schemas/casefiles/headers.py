"""The bytes of a case file in two parts: the headers, which protobuf parses, and where the values are.

A walk over the message's fields records the places of the values, so that they can be mapped and needn't be copied.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from schemas.errors import InputError
from schemas.protos import messages as proto
from schemas.wire import codec as wire
from schemas.wire.value_fields import BULK, Bulk, element_kind

_ROLES: Final = {6: "input", 7: "output"}  # field numbers of Node
_PAD: Final = 3001
_PATIENCE: Final = 8  # unpacked elements stepped over one by one before the rest of the run is measured at once

Bulks = dict[str, list[dict[str, Bulk]]]  # role -> per tensor, the place of each value field


class _NotCanonical(Exception):  # noqa: N818  never leaves this module
    """The tag or length of an unpacked value has more bytes than it needs."""


def split_headers(buffer: Any) -> tuple[Any, bytes, Bulks]:
    """The buffer that the values are in, the Node's bytes without values and our padding, and where the values are.

    The buffer is another one where values have to be parsed by protobuf itself. InputError where it is no message.
    """
    try:
        return buffer, *_split(buffer)
    except _NotCanonical:
        buffer = _canonical(buffer)
        return buffer, *_split(buffer)


def _canonical(buffer: Any) -> bytes:
    """The message as protobuf itself reads and writes it."""
    from google.protobuf.message import DecodeError

    node = proto.Node()
    try:
        node.MergeFromString(bytes(buffer))
    except DecodeError as error:
        raise InputError(f"not a case file: {error}") from None
    return proto.serialize(node)


def _split(buffer: Any) -> tuple[bytes, Bulks]:
    """Headers and values; _NotCanonical where values have to be parsed by protobuf itself."""
    headers = bytearray()
    bulks: Bulks = {"input": [], "output": []}
    for field in wire.fields(buffer, 0, len(buffer)):
        role = _ROLES.get(field.number)
        if role and field.kind == wire.LEN:
            header, found = _split_tensor(buffer, field.start, field.end)
            headers += wire.encode_tag(field.number, wire.LEN) + wire.encode_varint(len(header)) + header
            bulks[role].append(found)
        elif field.number != _PAD:
            headers += buffer[field.begin : field.end]
    return bytes(headers), bulks


def _split_tensor(buffer: Any, at: int, end: int) -> tuple[bytes, dict[str, Bulk]]:
    header = bytearray()
    found: dict[str, Bulk] = {}
    previous = repeats = 0
    while at < end:
        field = wire.read_field(buffer, at, end)
        at = field.end
        name = BULK.get(field.number)
        unpacked = name is not None and field.kind == element_kind(name)
        if name is None or not (unpacked or field.kind == wire.LEN):
            header += buffer[field.begin : field.end]
            continue
        bulk = found.get(name) or Bulk(name, buffer)
        if unpacked:
            _check_canonical(field)
            repeats = repeats + 1 if field.number == previous else 1
            if repeats >= _PATIENCE:
                raw = np.frombuffer(buffer, np.uint8, end - at, at)
                at += wire.end_of_run(raw, field.number, field.kind)
                repeats = 0
            bulk.add(field.begin, at, packed=False)
        else:
            bulk.add(field.start, field.end, packed=True)
        previous = field.number
        if bulk.spans:
            found[name] = bulk
    return bytes(header), found


def _check_canonical(field: wire.Field) -> None:
    """The bulk readers take the shortest form of a tag and a length for granted."""
    size = wire.encode_varint(field.end - field.start) if field.kind == wire.LEN else b""
    if field.start - field.begin != len(wire.encode_tag(field.number, field.kind)) + len(size):
        raise _NotCanonical
