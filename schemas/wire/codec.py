"""Protobuf's wire format: the fields of a mapped message, and runs of unpacked elements measured and read in bulk.

Python reads fields one by one, of which a tensor has a dozen; NumPy reads elements in chunks of bounded size. Offsets
are bytes from the start of the buffer. A malformed buffer raises InputError, and no memory is allocated for a length
before its bytes are there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from schemas.errors import InputError
from schemas.suggest import counted
from schemas.wire.varints import LONGEST, Bytes, decode_varints

VARINT: Final = 0
FIXED64: Final = 1
LEN: Final = 2
START_GROUP: Final = 3
END_GROUP: Final = 4
FIXED32: Final = 5

MAX_MESSAGE: Final = 2**31 - 1  # bytes; protobuf's own limit
_CHUNK_BYTES: Final = 1 << 16  # bytes per step
_DEEPEST: Final = 100  # nested groups

Buffer = Any  # bytes or mmap: indexing gives ints


class Field(NamedTuple):
    """One field: its number and wire type, the offset of its tag, and the first and last offset of its value."""

    number: int
    kind: int
    begin: int
    start: int
    end: int


# ---- varints and fields one by one ----


def encode_varint(value: int) -> bytes:
    """One non-negative integer below 2^64."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_tag(number: int, kind: int) -> bytes:
    """The tag of a field."""
    return encode_varint(number << 3 | kind)


def read_varint(buffer: Buffer, at: int, end: int) -> tuple[int, int]:
    """The varint at an offset and the offset after it; InputError where it is cut off or longer than 64 bits."""
    if at < end and (byte := buffer[at]) < 128:  # as most are
        return byte, at + 1
    value = shift = 0
    begin = at
    while at < end:
        byte = buffer[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value >> 64:
                break
            return value, at
        shift += 7
        if shift == 7 * LONGEST:
            break
    else:
        raise InputError(f"byte {begin}: a varint is cut off")
    raise InputError(f"byte {begin}: a varint is longer than 64 bits")


def fields(buffer: Buffer, at: int, end: int) -> Iterator[Field]:
    """The fields of a message between two offsets, one by one."""
    while at < end:
        field = read_field(buffer, at, end)
        yield field
        at = field.end


def read_field(buffer: Buffer, at: int, end: int) -> Field:
    """The field whose tag begins at an offset; InputError where it is malformed or reaches beyond end."""
    begin = at
    tag, at = read_varint(buffer, at, end)
    number, kind = tag >> 3, tag & 7
    if not 0 < number < 1 << 29:
        raise InputError(f"byte {begin}: no field has number {number}")
    start = at
    if kind == LEN:
        size, start = read_varint(buffer, at, end)
        at = start + size
        if size > end - start:
            raise InputError(f"byte {begin}: field {number} claims {counted(size, 'byte')}, {end - start} are left")
    elif kind == VARINT:
        _, at = read_varint(buffer, at, end)
    elif kind in (FIXED32, FIXED64):
        at += 4 if kind == FIXED32 else 8
        if at > end:
            raise InputError(f"byte {begin}: field {number} is cut off")
    elif kind == START_GROUP:
        at = _end_of_group(buffer, at, end, number)
    else:
        raise InputError(f"byte {begin}: field {number} has wire type {kind}, which can't stand here")
    return Field(number, kind, begin, start, at)


def _end_of_group(buffer: Buffer, at: int, end: int, number: int) -> int:
    open_groups = [number]
    while open_groups:
        tag, behind = read_varint(buffer, at, end)
        if tag & 7 == START_GROUP:
            open_groups.append(tag >> 3)
            if len(open_groups) > _DEEPEST:
                raise InputError(f"byte {at}: groups are nested deeper than {_DEEPEST}")
            at = behind
        elif tag & 7 == END_GROUP:
            if open_groups.pop() != tag >> 3:
                raise InputError(f"byte {at}: the end of group {tag >> 3} stands in another group")
            at = behind
        else:
            at = read_field(buffer, at, end).end
    return at


# ---- runs of one unpacked repeated field ----


def end_of_run(raw: Bytes, number: int, kind: int) -> int:
    """Number of leading bytes that are elements of one unpacked repeated field: VARINT, FIXED32 or short strings (LEN).

    Stops before the first byte that is anything else, or that needs read_field.
    """
    tag = np.frombuffer(encode_tag(number, kind), np.uint8)
    measure = {VARINT: _varint_run, FIXED32: _fixed_run, LEN: _string_run}[kind]
    at, look = 0, 1 << 10
    while at < raw.size:
        chunk = raw[at : at + look]
        used = measure(chunk, tag)
        at += used
        if used + 32 < chunk.size or not used:
            break
        look = min(2 * look, _CHUNK_BYTES)
    return at


def _fixed_run(chunk: Bytes, tag: Bytes) -> int:
    step = tag.size + 4
    rows = chunk[: chunk.size // step * step].reshape(-1, step)
    return _leading((rows[:, : tag.size] == tag).all(axis=1)) * step


def _varint_run(chunk: Bytes, tag: Bytes) -> int:
    ends = np.flatnonzero(chunk < 128)
    ends = ends[: ends.size // 2 * 2]
    tag_ends, value_ends = ends[0::2], ends[1::2]
    begins = np.concatenate(([0], value_ends[:-1] + 1)) if value_ends.size else value_ends
    tagged = tag_ends - begins == tag.size - 1
    for byte, expected in enumerate(tag):
        tagged &= chunk[np.minimum(begins + byte, chunk.size - 1)] == expected
    elements = _leading(tagged & (value_ends - tag_ends <= LONGEST))
    return int(value_ends[elements - 1]) + 1 if elements else 0


def _string_run(chunk: Bytes, tag: Bytes) -> int:
    starts, sizes = _strings(chunk, tag)
    return int(starts[-1] + sizes[-1]) if starts.size else 0


def _strings(chunk: Bytes, tag: Bytes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Starts and sizes of the leading strings that follow each other, each with a one-byte tag and length.

    Hex digits never look like a tag, so every byte that does begins a string; where the lengths disagree, the run ends.
    """
    assert tag.size == 1
    begins = np.flatnonzero(chunk == tag[0]).astype(np.int64)
    begins = begins[begins + 1 < chunk.size]
    sizes = chunk[begins + 1].astype(np.int64)
    ends = begins + 2 + sizes
    linked = (sizes < 128) & (ends <= chunk.size)
    linked[:1] &= begins[:1] == 0
    linked[1:] &= ends[:-1] == begins[1:]
    count = _leading(linked)
    return begins[:count] + 2, sizes[:count]


def _leading(flags: NDArray[np.bool_]) -> int:
    """Number of leading flags that are set."""
    return int(np.argmin(flags)) if flags.size and not flags.all() else int(flags.size)


def unpack_fixed32(raw: Bytes, number: int) -> NDArray[Any]:
    """The values of a run of unpacked fixed32 elements, as float32."""
    skip = len(encode_tag(number, FIXED32))
    values: NDArray[Any] = np.ascontiguousarray(raw.reshape(-1, skip + 4)[:, skip:]).view("<f4")[:, 0]
    return values


def unpack_varints(raw: Bytes) -> Iterator[NDArray[np.uint64]]:
    """The values of a run of unpacked varint elements, chunk by chunk."""
    first = 1  # tags and values alternate
    for chunk in decode_varints(raw):
        yield chunk[first::2]
        first = (first + chunk.size) % 2


# ---- hex strings ----

_DIGITS: Final = np.full(256, 255, np.uint8)
for _digits in ("0123456789abcdef", "0123456789ABCDEF"):
    _DIGITS[np.frombuffer(_digits.encode(), np.uint8)] = np.arange(16)


def decode_hex(raw: Bytes, number: int) -> Iterator[NDArray[np.uint64]]:
    """The bit patterns of a run of hex numbers, chunk by chunk (either case, 0x optional); InputError if one isn't."""
    tag = np.frombuffer(encode_tag(number, LEN), np.uint8)
    at = done = 0
    while at < raw.size:
        chunk = raw[at : at + _CHUNK_BYTES]
        starts, sizes = _strings(chunk, tag)
        if not starts.size:
            raise InputError(f"value_h[{done}] is no hex number")
        yield _hex_numbers(chunk, starts, sizes, done)
        at += int(starts[-1] + sizes[-1])
        done += starts.size


def _hex_numbers(chunk: Bytes, starts: NDArray[np.int64], sizes: NDArray[np.int64], done: int) -> NDArray[np.uint64]:
    second = chunk[np.minimum(starts + 1, chunk.size - 1)] | 32
    prefixed = (sizes > 2) & (chunk[np.minimum(starts, chunk.size - 1)] == ord("0")) & (second == ord("x"))
    begins, ends = starts + 2 * prefixed, starts + sizes
    digits = ends - begins
    strange = np.concatenate(([0], np.cumsum(_DIGITS[chunk] > 15)))
    wrong = (digits < 1) | (digits > 16) | (strange[ends] > strange[begins])
    if wrong.any():
        first = int(wrong.argmax())
        text = bytes(chunk[starts[first] : starts[first] + min(sizes[first], 40)]).decode("ascii", "backslashreplace")
        raise InputError(f"value {done + first} is {text!r}, expected 1 to 16 hex digits")
    # The sixteen characters before each string's end, as two big-endian words; characters before the string are masked.
    padded = np.zeros((chunk.size // 8 + 3) * 8, np.uint8)
    padded[16 : 16 + chunk.size] = chunk
    words = np.lib.stride_tricks.as_strided(padded.view(">u8"), (padded.size - 7,), (1,))
    values = _nibbles(words[ends + 8], np.minimum(digits, 8))
    if int(digits.max()) > 8:
        values |= _nibbles(words[ends], np.maximum(digits - 8, 0)) << np.uint64(32)
    return values


_BYTES_KEPT: Final = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)


def _nibbles(words: NDArray[Any], digits: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The numbers that the last digits of eight hex characters each make; 0 where there are no digits."""
    words = words.astype(np.uint64) & _BYTES_KEPT[digits]
    values: NDArray[np.uint64] = (words & np.uint64(0x0F0F0F0F0F0F0F0F)) + np.uint64(9) * (
        words >> np.uint64(6) & np.uint64(0x0101010101010101)
    )
    for shift, mask in ((4, 0x00FF00FF00FF00FF), (8, 0x0000FFFF0000FFFF), (16, 0x00000000FFFFFFFF)):
        values = (values | values >> np.uint64(shift)) & np.uint64(mask)
    return values
