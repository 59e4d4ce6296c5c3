"""Which fields of a Tensor hold the values of which dtype, and reading such a field as an array."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from schemas.dtypes import DTYPES, DType
from schemas.errors import InputError
from schemas.suggest import counted
from schemas.wire import codec as wire
from schemas.wire.varints import Bytes, count_varints, decode_varints

BITS: Final = "bits"  # the low bits of an entry are the element's bit pattern
NUMBER: Final = "number"  # an entry is the element's value
_BLOCK: Final = 1 << 20  # floats per step
_HELD: Final = 16 << 20  # bytes decoded before mapped pages are released

FIELDS: Final[dict[str, dict[str, str]]] = {
    "half": {"value_i": BITS, "value_h": BITS, "value_f": NUMBER},
    "float": {"value_f": NUMBER, "value_h": BITS, "value_i": BITS},
    "double": {"value_l": BITS, "value_h": BITS, "value_f": NUMBER},
    "bfloat16": {"value_ui": BITS},
    "int8": {"value_i": NUMBER, "value_l": NUMBER},
    "int16": {"value_i": NUMBER, "value_l": NUMBER},
    "int32": {"value_i": NUMBER, "value_l": NUMBER},
    "int64": {"value_l": NUMBER, "value_i": NUMBER},
    "uint8": {"value_ui": NUMBER, "value_ul": NUMBER, "value_i": NUMBER},
    "uint16": {"value_ui": NUMBER, "value_ul": NUMBER, "value_i": NUMBER},
    "uint32": {"value_ui": NUMBER, "value_ul": NUMBER},
    "uint64": {"value_ul": NUMBER},
    "bool": {"value_i": NUMBER},
}
"""Per dtype the fields that may hold its values (CASE_FORMAT's table); the first is the one we write."""

PARTS: Final[dict[str, str]] = {"complex_half": "half", "complex_float": "float", "int31": "int16"}
"""Dtypes with two entries of another dtype per element: re and im in turn, or (int31) all high halves, then all low."""

NUMBERS: Final[dict[str, int]] = {
    "value_h": 9, "value_f": 7, "value_i": 8, "value_l": 17, "value_ui": 18, "value_ul": 19,
}  # fmt: skip
BULK: Final[dict[int, str]] = {number: name for name, number in NUMBERS.items()}
"""Field number -> name of the repeated value fields, in order of priority: the first one that holds values counts."""

ENTRIES: Final[dict[str, Any]] = {
    "value_i": np.int32,
    "value_l": np.int64,
    "value_ui": np.uint32,
    "value_ul": np.uint64,
}


def element_kind(name: str) -> int:
    """The wire type of one unpacked element of a value field."""
    return {"value_f": wire.FIXED32, "value_h": wire.LEN}.get(name, wire.VARINT)


def part_dtype(dtype: DType) -> tuple[DType, int]:
    """The dtype of an entry in a value field and the number of entries per element."""
    part = PARTS.get(dtype.name)
    return (DTYPES[part], 2) if part else (dtype, 1)


def array_shape(dtype: DType, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of an array that holds a tensor.

    complex_half has one more axis (re, im) at the end, int31 one more axis (high, low) at the front.
    """
    if dtype.storage is not None or dtype.name not in PARTS:
        return shape
    return (2, *shape) if dtype.name == "int31" else (*shape, 2)


def shaped(flat: NDArray[Any], dtype: DType, shape: tuple[int, ...], strides: tuple[int, ...] | None) -> NDArray[Any]:
    """The flat entries of a tensor (its span, when strided) in its shape, a view. ValueError where NumPy can't."""
    whole = array_shape(dtype, shape)
    if dtype.storage is not None:
        flat = flat.view(dtype.storage)
    if strides is None or 0 in shape:
        return flat.reshape(whole)
    planar = dtype.name == "int31"
    items = flat.reshape(2, -1) if planar else flat.reshape((-1, *whole[len(shape) :]))
    axis = 1 if planar else 0
    # No step is made along a dim of 1, and its stride may be beyond what NumPy holds.
    steps = tuple(stride * items.strides[axis] if dim > 1 else 0 for dim, stride in zip(shape, strides, strict=True))
    head, tail = items.strides[:axis], items.strides[axis + 1 :]
    return np.lib.stride_tricks.as_strided(items, whole, head + steps + tail)


@dataclass(slots=True)
class Bulk:
    """The place of one value field in a buffer: spans (start, end, packed), in order.

    A packed span covers the elements alone, an unpacked one their tags too.
    """

    name: str
    buffer: Any
    spans: list[tuple[int, int, bool]] = field(default_factory=list)

    def add(self, start: int, end: int, packed: bool) -> None:
        """Append a span; adjacent unpacked spans become one."""
        if self.spans and not packed:
            first, last, before = self.spans[-1]
            if not before and last == start:
                self.spans[-1] = (first, end, False)
                return
        if end > start:
            self.spans.append((start, end, packed))

    def views(self) -> Iterator[tuple[Bytes, bool]]:
        """The bytes of each span, and whether they are packed."""
        if self.buffer is None:
            raise ValueError("the case file is closed")
        for start, end, packed in self.spans:
            yield np.frombuffer(self.buffer, np.uint8, end - start, start), packed

    def count(self) -> int:
        """Number of entries; InputError where the bytes aren't entries."""
        total = 0
        for raw, packed in self.views():
            if self.name == "value_h":
                total += sum(chunk.size for chunk in wire.decode_hex(raw, NUMBERS["value_h"]))
            elif self.name == "value_f":
                size = 4 if packed else 4 + len(wire.encode_tag(NUMBERS["value_f"], wire.FIXED32))
                if raw.size % size:
                    raise InputError(f"value_f holds {counted(raw.size, 'byte')}, no multiple of 4")
                total += raw.size // size
            else:
                varints = 0
                for at in range(0, raw.size, _HELD):
                    varints += count_varints(raw[at : at + _HELD])
                    self.release()
                total += varints // (1 if packed else 2)
        return total

    def floats(self) -> NDArray[Any]:
        """The entries of value_f: a view of the buffer if they are one packed span."""
        parts = [
            raw.view("<f4") if packed else wire.unpack_fixed32(raw, NUMBERS["value_f"]) for raw, packed in self.views()
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def float_blocks(self) -> Iterator[NDArray[Any]]:
        """The entries of value_f piece by piece: views where they are packed."""
        skip = len(wire.encode_tag(NUMBERS["value_f"], wire.FIXED32))
        for raw, packed in self.views():
            step = _BLOCK * (4 if packed else 4 + skip)
            for at in range(0, raw.size, step):
                piece = raw[at : at + step]
                yield piece.view("<f4") if packed else wire.unpack_fixed32(piece, NUMBERS["value_f"])

    def release(self) -> None:
        """Release the mapped pages; they are read again when they are needed."""
        if isinstance(self.buffer, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            for start, end, _ in self.spans:
                begin = start // mmap.PAGESIZE * mmap.PAGESIZE
                self.buffer.madvise(mmap.MADV_DONTNEED, begin, end - begin)

    def integers(self) -> Iterator[NDArray[np.uint64]]:
        """The entries of any other field as unsigned numbers, chunk by chunk."""
        for raw, packed in self.views():
            if self.name == "value_h":
                yield from wire.decode_hex(raw, NUMBERS["value_h"])
            else:
                yield from decode_varints(raw) if packed else wire.unpack_varints(raw)


def decode(bulk: Bulk, dtype: DType, count: int) -> NDArray[Any]:
    """The count entries of a value field as a flat array in the dtype's storage, read-only.

    dtype is that of an entry (part_dtype). InputError where the field can't hold the dtype or an entry is out of range.
    """
    _, storage = _way(bulk.name, dtype)
    if bulk.name == "value_f":
        values = _cast(bulk.floats(), dtype, 0)
    else:
        values = np.empty(count, storage)
        at = 0
        for block in _integer_blocks(bulk, dtype):
            values[at : at + block.size] = block
            at += block.size
    values.flags.writeable = False
    return values


def decoded_blocks(bulk: Bulk, dtype: DType) -> Iterator[NDArray[Any]]:
    """The values of decode, piece by piece; the pages of a mapped file are released in between."""
    _, storage = _way(bulk.name, dtype)
    blocks = bulk.float_blocks() if bulk.name == "value_f" else _integer_blocks(bulk, dtype)
    held = at = 0
    for block in blocks:
        yield _cast(block, dtype, at) if bulk.name == "value_f" else block.astype(storage, copy=False)
        at += block.size
        held += block.nbytes
        if held > _HELD:
            bulk.release()
            held = 0
    bulk.release()


def _cast(floats: NDArray[Any], dtype: DType, at: int) -> NDArray[Any]:
    """Entries of value_f in the dtype's storage; InputError where a finite one is beyond the dtype's range."""
    with np.errstate(over="ignore", invalid="ignore"):
        values: NDArray[Any] = floats.astype(dtype.storage, copy=False)
    if dtype.name == "half":
        beyond = np.isinf(values) & np.isfinite(floats)
        if beyond.any():
            first = int(np.argmax(beyond))
            raise InputError(f"value_f[{at + first}] is {floats[first]:g}, expected -65504 to 65504 for half")
    return values


def _way(name: str, dtype: DType) -> tuple[str, np.dtype[Any]]:
    """How a field's entries mean elements of the dtype, and its storage; InputError where the field can't hold it."""
    how = FIELDS.get(dtype.name, {}).get(name)
    if how is None or dtype.storage is None:
        allowed = ", ".join((*FIELDS.get(dtype.name, ()), "path"))
        raise InputError(f"{name} can't hold values of {dtype.name}, expected {allowed}")
    return how, dtype.storage


def _integer_blocks(bulk: Bulk, dtype: DType) -> Iterator[NDArray[Any]]:
    how, _ = _way(bulk.name, dtype)
    convert = _bits_of if how == BITS else _number_of
    at = 0
    for chunk in bulk.integers():
        yield convert(chunk, bulk.name, dtype, at)
        at += chunk.size


def _bits_of(chunk: NDArray[np.uint64], name: str, dtype: DType, at: int) -> NDArray[Any]:
    assert dtype.storage is not None
    width = dtype.storage.itemsize
    if name == "value_h" and width < 8:
        _check(
            chunk >> np.uint64(8 * width) == 0, chunk, name, f"at most {2 * width} hex digits for {dtype.name}", at, hex
        )
    return chunk.astype(f"<u{width}").view(dtype.storage)


def _number_of(chunk: NDArray[np.uint64], name: str, dtype: DType, at: int) -> NDArray[Any]:
    assert dtype.storage is not None
    entry = np.dtype(ENTRIES[name])
    # 32-bit fields keep the low 32 bits of the varint, as in every protobuf reader.
    entries = chunk.astype(f"<u{entry.itemsize}").view(entry)
    low, high = _range(dtype, entry)
    limits = np.iinfo(entry)
    if low > limits.min or high < limits.max:
        fits = (entries >= max(low, int(limits.min))) & (entries <= min(high, int(limits.max)))
        _check(fits, entries, name, f"{low} to {high} for {dtype.name}", at, str)
    numbers: NDArray[Any] = entries.astype(dtype.storage)  # sign-extends, or keeps the low bits
    return numbers


def _range(dtype: DType, entry: np.dtype[Any]) -> tuple[int, int]:
    """The entries a dtype takes: a signed field may hold the unsigned dtypes' bit patterns as negative numbers."""
    if dtype.kind == "bool":
        return 0, 1
    assert dtype.storage is not None
    limits = np.iinfo(dtype.storage)
    low, high = int(limits.min), int(limits.max)
    return (-(high // 2) - 1 if low == 0 and entry.kind == "i" else low), high


def _check(
    fits: NDArray[np.bool_], entries: NDArray[Any], name: str, expected: str, at: int, show: Callable[[int], str]
) -> None:
    if not fits.all():
        first = int(np.argmin(fits))
        raise InputError(f"{name}[{at + first}] is {show(int(entries[first]))}, expected {expected}")
