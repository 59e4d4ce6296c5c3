"""The wire level, against protobuf's own encoder and a plain loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from schemas.errors import InputError
from schemas.protos import messages as proto
from schemas.wire import codec as wire
from schemas.wire import varints

_NUMBERS = st.one_of(
    st.integers(0, 2**64 - 1), st.integers(0, 300), st.integers(0, 63).map(lambda bit: (1 << bit) - 1 | 1 << bit)
)
_EDGES = [edge for bits in range(0, 64, 7) for edge in ((1 << bits) - 1, 1 << bits, (1 << bits) + 1)] + [
    2**64 - 1,
    2**63,
]


def _loop_encode(value: int) -> bytes:
    """One varint, as protobuf's documentation words it."""
    out = b""
    while value >= 128:
        out += bytes([value % 128 + 128])
        value //= 128
    return out + bytes([value])


def _encoded(values: np.ndarray) -> bytes:
    return b"".join(chunk.tobytes() for chunk in varints.encode_varints(values))


def _decoded(raw: bytes) -> list[int]:
    return [int(v) for chunk in varints.decode_varints(np.frombuffer(raw, np.uint8)) for v in chunk]


def _packed(field: str, values: Any) -> bytes:
    """The payload that protobuf writes for a packed value field (tag and length cut off)."""
    raw = proto.Tensor(**{field: values}).SerializePartialToString()
    _, at = wire.read_varint(raw, 0, len(raw))
    _, at = wire.read_varint(raw, at, len(raw))
    return bytes(raw[at:])


@pytest.mark.parametrize(
    ("field", "dtype"), [("value_i", "i4"), ("value_l", "i8"), ("value_ui", "u4"), ("value_ul", "u8")]
)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_arrays_of_varints_are_those_of_protobuf(field: str, dtype: str, data: st.DataObject) -> None:
    array = data.draw(arrays.arrays(np.dtype(dtype), st.integers(1, 40)))
    expected = _packed(field, array.tolist())
    assert _encoded(array) == expected
    assert varints.varints_size(array) == len(expected)
    assert varints.count_varints(np.frombuffer(expected, np.uint8)) == array.size
    assert [v % 2 ** (8 * array.itemsize) for v in _decoded(expected)] == array.view(f"u{array.itemsize}").tolist()


@given(st.lists(_NUMBERS, min_size=1, max_size=50))
def test_single_and_bulk_varints_agree_with_the_plain_loop(numbers: list[int]) -> None:
    expected = b"".join(map(_loop_encode, numbers))
    assert b"".join(map(wire.encode_varint, numbers)) == expected
    assert _encoded(np.array(numbers, np.uint64)) == expected
    assert _decoded(expected) == numbers
    at, found = 0, []
    while at < len(expected):
        value, at = wire.read_varint(expected, at, len(expected))
        found.append(value)
    assert found == numbers


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_many_chunks_of_each_integer_type(dtype: str) -> None:
    limits = np.iinfo(dtype)
    rng = np.random.default_rng(3)
    array = rng.integers(limits.min, limits.max, 200_000, dtype, endpoint=True) >> rng.integers(
        0, 8 * limits.bits // 8, 200_000
    ).astype(dtype)
    edges = [edge for edge in _EDGES if edge <= limits.max]
    array[70_000 : 70_000 + len(edges)] = edges
    raw = _encoded(array)
    field = {"i": "value_l", "u": "value_ul"}[array.dtype.kind]
    assert raw == _packed(field, array.tolist())
    assert varints.varints_size(array) == len(raw)
    assert np.array_equal(
        np.array(_decoded(raw), np.uint64).astype(f"u{array.itemsize}"), array.view(f"u{array.itemsize}")
    )


def test_bools_are_zero_and_one() -> None:
    assert _encoded(np.array([True, False, True])) == b"\1\0\1"
    assert varints.varints_size(np.array([True, False])) == 2


@pytest.mark.parametrize(
    "tail", [b"\x80", b"\xff" * 9, b"\xff" * 10, b"\xff" * 9 + b"\x02", b"\xff" * 11 + b"\1", b"\x80" * 200_000]
)
def test_varints_cut_off_or_too_long_are_refused(tail: bytes) -> None:
    word = "cut off" if len(tail) < 10 else "longer than 64 bits"
    with pytest.raises(InputError, match=word):
        _decoded(b"\1" * 70_000 + tail)
    with pytest.raises(InputError, match=word):
        wire.read_varint(tail, 0, len(tail))


def test_a_varint_with_needless_zeros_is_read_as_protobuf_reads_it() -> None:
    assert _decoded(b"\x80\x00\x81\x80\x00") == [0, 1]


@pytest.mark.parametrize(
    ("raw", "word"),
    [
        (b"\x32\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "claims 9223372036854775807 bytes, 0 are left"),
        (b"\x32\x05abc", "claims 5 bytes, 3 are left"),
        (b"\x3d\0\0\0", "cut off"),
        (b"\x31\0\0\0\0\0\0\0", "cut off"),
        (b"\x00", "no field has number 0"),
        (b"\x36", "wire type 6"),
        (b"\x34", "wire type 4"),
        (b"\x33\x08\x01", "cut off"),
        (b"\x33\x44", "another group"),
        (b"\x33" * 500, "deeper"),
        (b"\xff\xff\xff\xff\x7f\x00", "no field has number"),
    ],
)
def test_malformed_fields_are_refused(raw: bytes, word: str) -> None:
    with pytest.raises(InputError, match=word):
        wire.read_field(raw, 0, len(raw))


def test_a_group_is_stepped_over() -> None:
    group = b"\x33\x08\x01\x43\x12\x02ab\x44\x34"
    assert wire.read_field(group + b"\x08\x01", 0, len(group) + 2).end == len(group)


@pytest.mark.parametrize("count", [1, 2, 300, 50_000])
@pytest.mark.parametrize(
    ("number", "kind"), [(7, wire.FIXED32), (8, wire.VARINT), (17, wire.VARINT), (19, wire.VARINT), (9, wire.LEN)]
)
def test_runs_end_where_another_field_begins(number: int, kind: int, count: int) -> None:
    rng = np.random.default_rng(number)

    def element() -> bytes:
        if kind == wire.FIXED32:
            return rng.bytes(4)
        if kind == wire.VARINT:
            return _loop_encode(int(rng.integers(0, 2**63)) >> int(rng.integers(0, 63)))
        text = b"%x" % int(rng.integers(0, 2**32))
        return bytes([len(text)]) + text

    tag = _loop_encode(number << 3 | kind)
    run = b"".join(tag + element() for _ in range(count))
    for other in (b"", b"\x5a\x05x.bin", b"\x52\x0c" + tag * 6, b"\x10", tag[:1]):
        raw = np.frombuffer(run + other, np.uint8)
        assert wire.end_of_run(raw, number, kind) == len(run), other
