"""Values of tensors: each dtype from each field, priorities, shapes, strides, external data, and what is refused."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schemas.errors import InputError
from schemas.protos import messages as proto
from schemas.tensor_descriptor import Descriptor
from tests.schemas.casefiles.building import make_node, read


def values(folder: Path, dtype: str, *shape: int, **fields: Any) -> Any:
    """The input of a file with those fields, as an array."""
    return read(folder, make_node(*shape, dtype=dtype, **fields)).inputs[0].array()


@pytest.mark.parametrize(
    ("dtype", "fields", "expected"),
    [
        ("half", {"value_i": [0x3C00, 0xBC00, 1, 0x7C00]}, [1, -1, 2.0**-24, np.inf]),
        ("half", {"value_i": [-1024, -32768, 0x13C00, 0]}, [-np.inf, -0.0, 1, 0]),  # the low 16 bits
        ("half", {"value_h": ["3c00", "0", "0xC000", "7bff"]}, [1, 0, -2, 65504]),
        ("half", {"value_f": [1, 65504, np.inf, -(2.0**-25)]}, [1, 65504, np.inf, -0.0]),
        ("float", {"value_f": [1, -0.0, 1e-45, np.inf]}, [1, -0.0, 1e-45, np.inf]),
        ("float", {"value_h": ["3f800000", "0", "0X80000000", "C0C2DBDA"]}, [1, 0, -0.0, -4 * (1 + 0x42DBDA / 2**23)]),
        ("float", {"value_i": [0x3F800000, -(2**31), 1, -8388608]}, [1, -0.0, 1e-45, -np.inf]),
        ("double", {"value_l": [0x3FF0000000000000, -(2**63), 1, 0]}, [1, -0.0, 5e-324, 0]),
        ("double", {"value_h": ["3ff0000000000000", "0", "bff0000000000000", "1"]}, [1, 0, -1, 5e-324]),
        ("double", {"value_f": [0.5, 1, 2, 3]}, [0.5, 1, 2, 3]),
        ("bfloat16", {"value_ui": [0x3F80, 0xC000, 0x10000, 1]}, [1, -2, 0, 2.0**-133]),
        ("int8", {"value_i": [-128, 127, 0, -1]}, [-128, 127, 0, -1]),
        ("int8", {"value_l": [-128, 127, 0, -1]}, [-128, 127, 0, -1]),
        ("int16", {"value_i": [-32768, 32767, 0, -1]}, [-32768, 32767, 0, -1]),
        ("int32", {"value_i": [-(2**31), 2**31 - 1, 0, -1]}, [-(2**31), 2**31 - 1, 0, -1]),
        ("int32", {"value_l": [-(2**31), 2**31 - 1, 0, -1]}, [-(2**31), 2**31 - 1, 0, -1]),
        ("int64", {"value_l": [-(2**63), 2**63 - 1, 0, -1]}, [-(2**63), 2**63 - 1, 0, -1]),
        ("int64", {"value_i": [-(2**31), 2**31 - 1, 0, -1]}, [-(2**31), 2**31 - 1, 0, -1]),
        ("uint8", {"value_ui": [0, 255, 1, 128]}, [0, 255, 1, 128]),
        ("uint8", {"value_ul": [0, 255, 1, 128]}, [0, 255, 1, 128]),
        ("uint8", {"value_i": [-1, 255, -128, 128]}, [255, 255, 128, 128]),
        ("uint16", {"value_i": [-1, 65535, -32768, 5]}, [65535, 65535, 32768, 5]),
        ("uint32", {"value_ui": [0, 2**32 - 1, 1, 7]}, [0, 2**32 - 1, 1, 7]),
        ("uint64", {"value_ul": [0, 2**64 - 1, 1, 7]}, [0, 2**64 - 1, 1, 7]),
        ("bool", {"value_i": [0, 1, 1, 0]}, [False, True, True, False]),
    ],
)
def test_each_dtype_from_each_field(tmp_path: Path, dtype: str, fields: dict[str, Any], expected: list[Any]) -> None:
    array = values(tmp_path, dtype, 2, 2, **fields)
    wanted = (
        np.array(expected, np.float64 if array.dtype.kind in "fV" else array.dtype).astype(array.dtype).reshape(2, 2)
    )
    assert array.tobytes() == wanted.tobytes()
    assert array.shape == (2, 2)
    assert not array.flags.writeable


def test_all_bit_patterns_of_half_and_bfloat16(tmp_path: Path) -> None:
    patterns = np.arange(65536)
    assert np.array_equal(values(tmp_path, "half", 65536, value_i=patterns.tolist()).view(np.uint16), patterns)
    assert np.array_equal(
        values(tmp_path, "half", 65536, value_h=[f"{p:x}" for p in patterns]).view(np.uint16), patterns
    )
    assert np.array_equal(values(tmp_path, "bfloat16", 65536, value_ui=patterns.tolist()).view(np.uint16), patterns)


@pytest.mark.parametrize(
    ("dtype", "fields", "message"),
    [
        ("int8", {"value_i": [0, 300]}, "value_i[1] is 300, expected -128 to 127"),
        ("int8", {"value_i": [0, 200]}, "value_i[1] is 200, expected -128 to 127"),
        ("int16", {"value_l": [2**40, 0]}, "value_l[0] is 1099511627776, expected -32768 to 32767"),
        ("int32", {"value_l": [0, 2**31]}, "value_l[1] is 2147483648"),
        ("uint8", {"value_i": [0, -129]}, "value_i[1] is -129, expected -128 to 255"),
        ("uint8", {"value_ui": [256, 0]}, "value_ui[0] is 256, expected 0 to 255"),
        ("uint32", {"value_i": [-1, 0]}, "value_i can't hold values of uint32, expected value_ui, value_ul, path"),
        ("uint32", {"value_ul": [2**32, 0]}, "value_ul[0] is 4294967296"),
        ("bool", {"value_i": [1, 2]}, "value_i[1] is 2, expected 0 to 1"),
        ("int32", {"value_f": [1, 2]}, "value_f can't hold values of int32"),
        ("bfloat16", {"value_i": [1, 2]}, "value_i can't hold values of bfloat16"),
        ("float", {"value_h": ["3f800000", "xyz"]}, "value 1 is 'xyz'"),
        ("float", {"value_h": ["", "0"]}, "value 0 is ''"),
        ("float", {"value_h": ["0x", "0"]}, "value 0 is '0x'"),
        ("float", {"value_h": ["J", "0"]}, "value 0 is 'J'"),
        ("float", {"value_h": ["0", "1" * 74]}, "value 1 is '1111"),
        ("float", {"value_h": ["0", "1" * 300]}, "value_h[1] is no hex number"),
        ("half", {"value_h": ["10000", "0"]}, "value_h[0] is 0x10000, expected at most 4 hex digits"),
        ("int4x2", {"value_i": [1, 2]}, "can't hold values of int4x2"),
        ("float8_e5m2", {"value_i": [1, 2]}, "can't hold values of float8_e5m2, expected path"),
        ("float", {"value_f": [1, 2, 3]}, "value_f holds 3 values, expected 2 for shape [2]"),
        ("int32", {"value_i": [1]}, "value_i holds 1 value, expected 2 for shape [2]"),
        ("double", {"value_h": ["1"]}, "value_h holds 1 value, expected 2 for shape [2]"),
        ("complex_float", {"value_f": [1, 2, 3]}, "value_f holds 3 values (re and im apart), expected 4"),
        ("float", {}, "no values are stored"),
        ("float", {"random_data": {"seed": 1}}, "to be drawn"),
    ],
)
def test_values_that_make_no_sense(tmp_path: Path, dtype: str, fields: dict[str, Any], message: str) -> None:
    record = read(tmp_path, make_node(2, dtype=dtype, **fields)).inputs[0]
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        record.array()
    assert str(caught.value).startswith(f'{tmp_path / "case.pb"}: input[0] "x": ')


def test_the_first_non_empty_source_wins(tmp_path: Path) -> None:
    sources: dict[str, Any] = {
        "value_h": ["3f800000"], "value_f": [2], "value_i": [0x40400000], "value_l": [4], "value_ui": [5],
        "value_ul": [6], "path": "x.bin", "random_data": {"seed": 7},
    }  # fmt: skip
    for name in list(sources):
        record = read(tmp_path, make_node(1, **sources)).inputs[0]
        assert record.source == name
        assert record.has_values == (name != "random_data")
        if name in ("value_h", "value_f", "value_i"):
            assert record.array()[0] == {"value_h": 1, "value_f": 2, "value_i": 3}[name]
        del sources[name]
    assert read(tmp_path, make_node(1)).inputs[0].source is None
    assert read(tmp_path, make_node(1, path="")).inputs[0].source is None


def test_values_win_over_random_data_and_both_are_shown(tmp_path: Path) -> None:
    record = read(tmp_path, make_node(1, value_f=[5], random_data={"seed": 3, "upper_bound": 2})).inputs[0]
    assert record.array().tolist() == [5]
    assert record.header.random_data.upper_bound == 2
    assert read(tmp_path, make_node(1, value_f=[5])).inputs[0].random is None


@pytest.mark.parametrize("count", [1, 7, 8, 9, 20_000])
def test_old_encodings_read_alike(tmp_path: Path, count: int) -> None:
    rng = np.random.default_rng(count)
    integers = rng.integers(-(2**31), 2**31, count).astype(np.int32)
    floats = rng.random(count, np.float32)
    for field, wire_type, elements, dtype, expected in (
        (8, 0, [_varint(int(i) % 2**64) for i in integers], "int32", integers),
        (8, 0, [_varint(int(i) % 2**32) for i in integers], "int32", integers),  # negatives in 5 bytes
        (7, 5, [f.tobytes() for f in floats], "float", floats),
    ):
        unpacked = b"".join(bytes([field << 3 | wire_type]) + element for element in elements)
        packed = bytes([field << 3 | 2]) + _varint(4) + b"\0\0\0\0" if field == 7 else b""
        header = make_node(count + (1 if packed else 0), dtype=dtype).input[0].SerializeToString()
        trailer = b"\x52\x02\x08\x07"  # random_data
        tensor = header + unpacked + packed + trailer
        record = read(tmp_path, b"\x2a\x01a\x32" + _varint(len(tensor)) + tensor).inputs[0]
        assert np.array_equal(record.array()[:count], expected)
        assert record.header.random_data.seed == 7
        parsed = proto.Tensor.FromString(tensor)  # protobuf reads the same
        assert np.array_equal(np.array(parsed.value_i or parsed.value_f, expected.dtype)[:count], expected)


def _varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value % 128 + 128]) + _varint(value // 128)


@pytest.mark.parametrize(
    ("shape", "elements"),
    [((), 1), ((0,), 0), ((3, 0, 2**40), 0), ((2, 3), 6), ((2**31,), 2**31), ((65536, 65536), 2**32)],
)
def test_shapes(tmp_path: Path, shape: tuple[int, ...], elements: int) -> None:
    record = read(tmp_path, make_node(*shape)).inputs[0]
    assert record.elements == elements
    assert record.descriptor == Descriptor("ARRAY", "float", shape, None)
    if elements == 0:
        assert record.array().shape == shape
    elif elements > 6:
        with pytest.raises(InputError, match="no values"):
            record.array()


def test_a_scalar_and_what_its_id_says(tmp_path: Path) -> None:
    record = read(tmp_path, make_node(value_f=[4])).inputs[0]
    assert record.array().shape == ()
    assert record.array() == 4
    assert not record.absent
    node = make_node(2)
    node.input[0].id = "x_NULL"
    assert read(tmp_path, node).inputs[0].absent


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((2, -1), "negative dim"),
        ((2**31, 2**31, 2**31), "more than 2^63 - 1"),
        ((2**62, 2), "9223372036854775808 elements, more than 2^63 - 1"),
    ],
)
def test_shapes_that_make_no_sense(tmp_path: Path, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        read(tmp_path, make_node(*shape))
    assert caught.value.place is not None
    assert caught.value.place.key == 'input[0] "x"'


def test_vast_shapes_are_refused_without_allocating(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(bytes(16))
    begin = time.perf_counter()
    with pytest.raises(InputError, match=r"holds 3 values, expected 1099511627776"):
        values(tmp_path, "float", 2**40, value_f=[1, 2, 3])
    with pytest.raises(InputError, match=r"has 16 bytes, expected 4398046511104"):
        values(tmp_path, "float", 2**40, path="x.bin")
    with pytest.raises(InputError, match="can't be held in memory"):
        values(tmp_path, "float", *([1] * 100), value_f=[1])
    assert time.perf_counter() - begin < 1


def test_strides(tmp_path: Path) -> None:
    node = make_node(2, 3, value_f=range(10))
    node.input[0].shape.dim_stride.extend([7, 1])  # span 1 + 1*7 + 2*1
    record = read(tmp_path, node).inputs[0]
    assert record.strides == (7, 1)
    assert record.array().tolist() == [[0, 1, 2], [7, 8, 9]]
    assert not record.array().flags.writeable
    node.input[0].shape.dim_stride[:] = [3, 1]
    assert read(tmp_path, node).inputs[0].strides is None  # dense
    node.input[0].shape.dims[:], node.input[0].value_i[:] = [1, 10], range(10)
    node.input[0].shape.dim_stride[:] = [2**63 - 1, 1]  # E10: of a dim of 1 no step is made, 8 times it overflowed
    far = read(tmp_path, node).inputs[0]
    assert (far.strides, far.array().tolist()) == ((2**63 - 1, 1), [[*range(10)]])
    for strides, message in (([1], "1 strides"), ([-1, 1], "negative stride"), ([2**62, 2**62], "2^63")):
        node.input[0].shape.dim_stride[:] = strides
        with pytest.raises(InputError, match=re.escape(message)):
            read(tmp_path, node)


def test_complex_values(tmp_path: Path) -> None:
    assert values(tmp_path, "complex_float", 2, value_f=[1, 2, 3, -4]).tolist() == [1 + 2j, 3 - 4j]
    half = values(tmp_path, "complex_half", 2, value_i=[0x3C00, 0, 0, 0xBC00])
    assert half.dtype == np.float16
    assert half.tolist() == [[1, 0], [0, -1]]


def test_packed_floats_are_a_view_of_the_file(tmp_path: Path) -> None:
    large = np.arange(100_000, dtype=np.float32)  # above what is read instead of mapped
    for content in (large, large[:10]):
        case = read(tmp_path, make_node(content.size, value_f=content.tolist()))
        first, second = case.inputs[0].array(), case.inputs[0].array()
        assert np.shares_memory(first, second)
        assert np.array_equal(first, content)
        case.close()
        assert np.array_equal(first, content)  # the map lives as long as its arrays
        with pytest.raises(ValueError, match="closed"):
            case.inputs[0].array()


def test_external_data_is_mapped_and_found_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    np.arange(6, dtype="<i2").tofile(tmp_path / "data" / "x.bin")
    array = values(tmp_path, "int16", 2, 3, path="data/x.bin")
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]
    base: Any = array
    while base.base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)
    assert not array.flags.writeable
    from schemas.casefiles.reading import read_case

    for folder, path in ((tmp_path, "case.pb"), (tmp_path / "data", "../case.pb")):
        monkeypatch.chdir(folder)
        assert read_case(Path(path)).inputs[0].array().shape == (2, 3)


def test_external_data_that_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (tmp_path / "outside.bin").write_bytes(bytes(8))
    (folder / "short.bin").write_bytes(bytes(7))
    os.symlink(tmp_path / "outside.bin", folder / "link.bin")
    os.symlink("loop.bin", folder / "loop.bin")
    (folder / "sub").mkdir()
    for path, message in (
        ("short.bin", "has 7 bytes, expected 8 for shape [2] of float"),
        ("missing.bin", f"external data {folder / 'missing.bin'} does not exist"),
        (str(folder / "short.bin"), "is absolute"),
        ("C:\\x.bin", "is absolute"),
        ("../outside.bin", "leads outside"),
        ("sub/../../outside.bin", "leads outside"),
        ("sub\\..\\..\\outside.bin", "leads outside"),
        ("link.bin", "leads outside"),
        ("sub", "is not a file"),
        ("loop.bin", "loop.bin"),
        ("a\0b", "holds control characters"),
        ("n" * 5000, "can't be opened"),
    ):
        record = read(folder, make_node(2, path=path)).inputs[0]
        with pytest.raises(InputError, match=re.escape(message)) as caught:
            record.array()
        assert caught.value.place is not None
        assert caught.value.place.key == 'input[0] "x"'


def test_values_that_disagree_can_still_be_looked_at(tmp_path: Path) -> None:
    record = read(tmp_path, make_node(4, dtype="int32", value_i=[1, 2, 3])).inputs[0]
    assert record.value_count() == 3
    assert record.stored().tolist() == [1, 2, 3]
    assert read(tmp_path, make_node(4)).inputs[0].value_count() is None
    (tmp_path / "x.bin").write_bytes(bytes(12))
    record = read(tmp_path, make_node(4, path="x.bin")).inputs[0]
    assert record.value_count() == 3
    assert record.stored().tolist() == [0, 0, 0]


def test_an_output_that_is_not_judged(tmp_path: Path) -> None:
    assert read(tmp_path, make_node(1)).inputs[0].judged
    assert read(tmp_path, make_node(1, threshold_use=1)).inputs[0].judged
    assert not read(tmp_path, make_node(1, threshold_use=0)).inputs[0].judged


def test_int31_is_planar(tmp_path: Path) -> None:
    halves = [1, 2, 3, -4, -5, -6]  # all high halves, then all low ones
    array = values(tmp_path, "int31", 3, value_i=halves)
    assert (array.dtype, array.tolist()) == (np.int16, [[1, 2, 3], [-4, -5, -6]])
    np.array(halves, "<i2").tofile(tmp_path / "x.bin")
    assert values(tmp_path, "int31", 3, path="x.bin").tolist() == array.tolist()
    with pytest.raises(InputError, match=r"holds 5 values \(high and low halves apart\), expected 6"):
        values(tmp_path, "int31", 3, value_i=halves[:5])
    with pytest.raises(InputError, match=r"value_i\[0\] is 40000, expected -32768 to 32767"):
        values(tmp_path, "int31", 1, value_i=[40000, 0])


@pytest.mark.parametrize(
    ("dtype", "fields", "expected"),
    [
        ("int31", {"value_i": [1, 2, 3, 4, -1, -2, -3, -4]}, [[[1, 2], [3, 4]], [[-1, -2], [-3, -4]]]),
        ("complex_half", {"value_f": range(8)}, [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]),
        ("complex_float", {"value_f": range(8)}, [[1j, 2 + 3j], [4 + 5j, 6 + 7j]]),
    ],
)
def test_strided_tensors_of_two_parts(tmp_path: Path, dtype: str, fields: dict[str, Any], expected: Any) -> None:
    """The span of shape [2, 2] with strides [2, 1] is dense; with [1, 2] it is the transpose."""
    dense = make_node(2, 2, dtype=dtype, **fields)
    assert read(tmp_path, dense).inputs[0].array().tolist() == expected
    dense.input[0].shape.dim_stride.extend([1, 2])
    turned = read(tmp_path, dense).inputs[0]
    assert turned.strides == (1, 2)
    axes = (0, 2, 1) if dtype == "int31" else (1, 0, 2)[: np.array(expected).ndim]
    assert turned.array().tolist() == np.array(expected).transpose(axes).tolist()
    array, again = turned.array(), make_node(2, 2, dtype=dtype)
    again.input[0].shape.dim_stride.extend([1, 2])
    from schemas.casefiles.reading import read_case, write_case

    for limit in (0, 1 << 20):
        write_case(tmp_path / "again.pb", again, [array], [], inline_limit=limit)
        assert read_case(tmp_path / "again.pb").inputs[0].array().tolist() == array.tolist()
