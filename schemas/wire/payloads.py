"""The entries of a value field as they are written to a file, binary or text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

import numpy as np
from numpy.typing import NDArray

from schemas.dtypes import DType
from schemas.errors import InputError
from schemas.wire import codec as wire
from schemas.wire.value_fields import BITS, ENTRIES, FIELDS, NUMBERS, Bulk, part_dtype
from schemas.wire.varints import Bytes, encode_varints, varints_size

_NAN: Final = 0x7FC00000  # the bits that readers of protobuf text make of nan
_BLOCK: Final = 1 << 20  # floats looked at at once


@dataclass(frozen=True, slots=True)
class Encoded:
    """The entries of one value field: the payload of size bytes is the array's memory (value_f) or its varints."""

    name: str
    entries: NDArray[Any]
    size: int

    @property
    def head(self) -> bytes:
        """The bytes before the payload in a binary file: tag and length."""
        return wire.encode_tag(NUMBERS[self.name], wire.LEN) + wire.encode_varint(self.size)

    def chunks(self) -> Iterator[Any]:
        """The payload as buffers; value_f's is the array's own memory."""
        if self.name == "value_f":
            yield self.entries.view(np.uint8).data
        else:
            yield from encode_varints(self.entries)


@dataclass(frozen=True, slots=True)
class Strings:
    """The entries of value_h as a binary file holds them: strings in a row, each with its tag and length."""

    parts: tuple[Bytes, ...]
    name: str = "value_h"
    head: bytes = b""

    @property
    def size(self) -> int:
        """Bytes of the payload."""
        return sum(part.size for part in self.parts)

    def chunks(self) -> Iterator[Any]:
        """The payload as buffers."""
        return (part.data for part in self.parts)

    def strings(self) -> Iterator[str]:
        """The entries; InputError where one is not UTF-8."""
        for part in self.parts:
            for entry in wire.fields(part.tobytes(), 0, part.size):
                try:
                    yield bytes(part[entry.start : entry.end]).decode()
                except UnicodeDecodeError:
                    raise InputError(f"value_h holds {bytes(part[entry.start : entry.end])!r}, no UTF-8") from None


@dataclass(frozen=True, slots=True)
class HexFloats:
    """The bits of floats as the strings of value_h, for a text file."""

    entries: NDArray[Any]
    name: str = "value_h"

    def strings(self) -> Iterator[str]:
        """The entries, lower-case hex digits, the most significant first."""
        return (f"{bits:x}" for bits in self.entries.view(np.uint32))


Payload = Encoded | Strings


def exact_in_text(payloads: Sequence[Payload], dtype: DType | None) -> list[Payload | HexFloats]:
    """What a text file holds instead of a tensor's payloads: value_h where value_f has NaNs whose bits text can't tell.

    That is possible where value_h means the same bits (float, complex_float) and is not there already.
    """
    return [HexFloats(each.entries) if _needs_hex(each, payloads, dtype) else each for each in payloads]


def loses_bits(payloads: Sequence[Payload], dtype: DType | None) -> bool:
    """Whether a text file that holds these payloads loses bits of NaNs all the same; see exact_in_text."""
    return any(_has_odd_nan(each) and not _needs_hex(each, payloads, dtype) for each in payloads)


def _needs_hex(payload: Payload, payloads: Sequence[Payload], dtype: DType | None) -> TypeGuard[Encoded]:
    if dtype is None or part_dtype(dtype)[0].name != "float" or any(each.name == "value_h" for each in payloads):
        return False
    return _has_odd_nan(payload)


def _has_odd_nan(payload: Payload) -> bool:
    """Whether value_f holds a NaN other than the one that text means by nan."""
    if payload.name != "value_f" or not isinstance(payload, Encoded):
        return False
    for at in range(0, payload.entries.size, _BLOCK):
        block = payload.entries[at : at + _BLOCK]
        if (block.view(np.uint32)[np.isnan(block)] != _NAN).any():
            return True
    return False


def kept(bulk: Bulk) -> Payload:
    """A value field to be written again as it is, whatever it means."""
    if bulk.name == "value_h":
        return Strings(tuple(raw for raw, _ in bulk.views()))
    if bulk.name == "value_f":
        floats = bulk.floats()
        return Encoded(bulk.name, floats, floats.nbytes)
    entry = np.dtype(ENTRIES[bulk.name])
    chunks = [chunk.astype(f"<u{entry.itemsize}").view(entry) for chunk in bulk.integers()]
    entries = np.concatenate(chunks) if chunks else np.empty(0, entry)
    return Encoded(bulk.name, entries, varints_size(entries))


def encode(values: NDArray[Any], dtype: DType) -> Encoded:
    """The flat contiguous values of a dtype in the field we write; InputError where no field holds the dtype."""
    part, _ = part_dtype(dtype)
    if part.name not in FIELDS:
        raise InputError(f"no field holds values of {dtype.name}: they can only be external data")
    name, how = next(iter(FIELDS[part.name].items()))
    assert part.storage is not None
    entries = values.view(part.storage)
    if name == "value_f":
        return Encoded(name, entries, entries.nbytes)
    if how == BITS:
        entry = np.dtype(ENTRIES[name])
        sign = "i" if entry.kind == "i" and entry.itemsize == part.storage.itemsize else "u"
        entries = entries.view(f"<{sign}{part.storage.itemsize}")
    return Encoded(name, entries, varints_size(entries))


def inlinable(dtype: DType) -> bool:
    """Whether some value field holds the dtype; values of the others are external data."""
    return part_dtype(dtype)[0].name in FIELDS
