"""Writing case files: read back by protobuf and by us, bit for bit; sizes, alignment, whole or not at all."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.casefiles import writing
from schemas.casefiles.reading import case_size, read_case, write_case
from schemas.errors import InputError, UnavailableError
from schemas.protos import messages as proto
from schemas.wire import codec as wire
from tests.schemas.casefiles.building import add_output, make_node

_STORAGE: dict[str, Any] = {
    "half": np.float16, "float": np.float32, "double": np.float64, "bfloat16": ml_dtypes.bfloat16, "int8": np.int8,
    "int16": np.int16, "int32": np.int32, "int64": np.int64, "uint8": np.uint8, "uint16": np.uint16,
    "uint32": np.uint32, "uint64": np.uint64, "bool": np.bool_, "complex_float": np.complex64,
    "complex64": np.complex64, "complex128": np.complex128, "complex_double": np.complex128,
    "float8_e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip


def _random_bits(dtype: str, count: int, seed: int = 0) -> np.ndarray:
    raw = np.random.default_rng(seed).integers(0, 256, count * np.dtype(_STORAGE[dtype]).itemsize, np.uint8)
    bits: np.ndarray = (raw & 1 if dtype == "bool" else raw).view(_STORAGE[dtype])
    return bits


@pytest.mark.parametrize("limit", [1 << 20, 0])
@pytest.mark.parametrize("dtype", _STORAGE)
def test_every_dtype_comes_back_bit_for_bit(tmp_path: Path, dtype: str, limit: int) -> None:
    array = _random_bits(dtype, 30_000).reshape(100, 300)
    path = tmp_path / "case.pb"
    written = write_case(path, make_node(100, 300, dtype=dtype), [array], [], inline_limit=limit)
    back = read_case(path).inputs[0].array()
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    assert back.tobytes() == array.tobytes()
    assert sum(case_size(make_node(100, 300, dtype=dtype), [array], [], limit)) == written.bytes
    assert written.bytes == sum(file.stat().st_size for file in written.files)
    assert sorted(tmp_path.iterdir()) == sorted(written.files)


_READ_BY_PROTOBUF: dict[str, tuple[str, Any]] = {
    "half": ("value_i", np.uint16), "float": ("value_f", np.float32), "double": ("value_l", np.int64),
    "bfloat16": ("value_ui", np.uint16), "int8": ("value_i", np.int8), "int16": ("value_i", np.int16),
    "int32": ("value_i", np.int32), "int64": ("value_l", np.int64), "uint8": ("value_ui", np.uint8),
    "uint16": ("value_ui", np.uint16), "uint32": ("value_ui", np.uint32), "uint64": ("value_ul", np.uint64),
    "bool": ("value_i", np.bool_),
}  # fmt: skip


@pytest.mark.parametrize("suffix", [".pb", ".prototxt"])
@pytest.mark.parametrize("dtype", _READ_BY_PROTOBUF)
def test_protobuf_reads_what_we_write(tmp_path: Path, dtype: str, suffix: str) -> None:
    array = _random_bits(dtype, 300)
    if dtype == "float":
        array[:6] = [np.inf, -np.inf, -0.0, 3.4028235e38, 1e-45, 0.1]
        array = array[~np.isnan(array)] if suffix == ".prototxt" else array
    node = add_output(make_node(array.size, dtype=dtype), array.size, dtype=dtype)
    path = tmp_path / f"case{suffix}"
    write_case(path, node, [array], [array[::-1]])
    if suffix == ".pb":
        parsed = proto.Node.FromString(path.read_bytes())
    else:
        parsed = proto.parse_text(path.read_text(encoding="utf-8"), proto.Node(), "f")
    field, entry = _READ_BY_PROTOBUF[dtype]
    for tensor, expected in ((parsed.input[0], array), (parsed.output[0], array[::-1])):
        filled = [name.name for name, _ in tensor.ListFields() if name.name.startswith("value")]
        assert filled == [field]
        assert np.array(getattr(tensor, field)).astype(entry).tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", ["half", "bfloat16", "float", "double"])
def test_a_text_gives_the_bits_back(tmp_path: Path, dtype: str) -> None:
    array = np.arange(65536, dtype=np.uint16).view(_STORAGE[dtype]) if dtype in ("half", "bfloat16") else None
    if array is None:
        array = _random_bits(dtype, 40_000, seed=2)
        array[:5] = [np.finfo(dtype if dtype == "double" else np.float32).max, 5e-324, 1e-45, 16777217.0, -0.0]
    path = tmp_path / "case.prototxt"
    write_case(path, make_node(array.size, dtype=dtype), [array], [])
    assert read_case(path).inputs[0].array().tobytes() == array.tobytes()


def test_a_text_is_plain_and_leaves_out_our_part(tmp_path: Path) -> None:
    node = make_node(2)
    node.input[0].id = "größe"
    proto.set_meta(node, proto.CaseMeta(suite="network"))
    write_case(tmp_path / "case.prototxt", node, [np.array([0.1, -np.inf], np.float32)], [])
    text = (tmp_path / "case.prototxt").read_bytes().decode()
    assert text == (
        'op_name: "abs"\ninput {\n  id: "größe"\n  shape {\n    dims: 2\n  }\n  layout: LAYOUT_ARRAY\n'
        "  dtype: DTYPE_FLOAT\n  value_f: 0.1\n  value_f: -inf\n}\n"
    )


def test_payloads_start_at_multiples_of_64_and_views_are_aligned(tmp_path: Path) -> None:
    for names in range(70):  # every remainder
        node = add_output(make_node(5), 3)
        node.input[0].id = "x" * (names + 1)
        path = tmp_path / "case.pb"
        first, second = np.arange(5, dtype=np.float32) + 7, np.arange(3, dtype=np.float32) - 7
        write_case(path, node, [first], [second])
        raw = path.read_bytes()
        assert raw.index(first.tobytes()) % 64 == 0
        assert raw.index(second.tobytes()) % 64 == 0
        parsed = proto.Node.FromString(raw)
        assert parsed.output[0].value_f[:] == [-7, -6, -5]


def test_padding_does_not_pile_up(tmp_path: Path) -> None:
    first, second = np.arange(5, dtype=np.float32), np.arange(30, dtype=np.float32)
    write_case(tmp_path / "a.pb", add_output(make_node(5), 30), [first], [second])
    raw = (tmp_path / "a.pb").read_bytes()
    for node in (read_case(tmp_path / "a.pb").node, proto.Node.FromString(raw)):
        write_case(tmp_path / "b.pb", node, [first], [second])
        assert (tmp_path / "b.pb").read_bytes() == raw


def test_arrays_may_lie_anyhow_in_memory(tmp_path: Path) -> None:
    array = np.arange(24, dtype=np.float32).reshape(4, 6)
    for odd in (array.T, array[::2, ::-1], array.astype(">f4"), np.asfortranarray(array)):
        write_case(tmp_path / "case.pb", make_node(*odd.shape), [odd], [])
        assert np.array_equal(read_case(tmp_path / "case.pb").inputs[0].array(), odd)


def test_contiguous_floats_are_not_copied() -> None:
    array = np.arange(1000, dtype=np.float32)
    layout = writing._encode(make_node(1000), [array], [], 1 << 20, "case")
    payload = next(piece for _, piece in writing._pieces(layout) if piece is not None)
    assert all(np.shares_memory(np.frombuffer(chunk, np.uint8), array) for chunk in payload.chunks())


def test_none_writes_no_values_and_an_array_replaces_every_other_source(tmp_path: Path) -> None:
    node = make_node(2, value_h=["0", "0"], value_i=[1, 2], random_data={"seed": 1}, path="old.bin")
    node.input.add().CopyFrom(node.input[0])
    untouched = node.SerializeToString()
    write_case(tmp_path / "case.pb", node, [np.ones(2, np.float32), None], [])
    first, second = proto.Node.FromString((tmp_path / "case.pb").read_bytes()).input
    assert {field.name for field, _ in first.ListFields()} == {"id", "shape", "layout", "dtype", "value_f"}
    assert {field.name for field, _ in second.ListFields()} == {"id", "shape", "layout", "dtype", "path", "random_data"}
    assert node.SerializeToString() == untouched


def test_zero_elements_scalars_and_strides(tmp_path: Path) -> None:
    node = add_output(add_output(make_node(3, 0), dtype="int32"), 2, 3)
    node.output[1].shape.dim_stride.extend([4, 1])
    grid = np.arange(6, dtype=np.float32).reshape(2, 3)
    written = write_case(tmp_path / "case.pb", node, [np.empty((3, 0), np.float32)], [np.array(-5, np.int32), grid])
    assert written.files == (tmp_path / "case.pb",)
    case = read_case(tmp_path / "case.pb")
    assert case.inputs[0].array().shape == (3, 0)
    assert case.outputs[0].array() == -5
    assert np.array_equal(case.outputs[1].array(), grid)
    assert proto.Node.FromString((tmp_path / "case.pb").read_bytes()).output[1].value_f[:] == [0, 1, 2, 0, 3, 4, 5]


def test_large_tensors_go_to_external_data_named_by_content(tmp_path: Path) -> None:
    digest = xxhash.xxh3_128_hexdigest(np.arange(100, dtype=np.float32).tobytes())[:16]
    external_names = [f"case.in0.{digest}.bin", f"case.out0.{digest}.bin"]
    node = add_output(make_node(100), 100)
    node.input.add().CopyFrom(make_node(10).input[0])
    big, small = np.arange(100, dtype=np.float32), np.ones(10, np.float32)
    for suffix in (".pb", ".prototxt"):
        path = tmp_path / f"case{suffix}"
        written = write_case(path, node, [big, small], [big], inline_limit=399)
        assert [file.name for file in written.files] == [*external_names, path.name]
        assert (tmp_path / external_names[0]).read_bytes() == big.tobytes()
        case = read_case(path)
        assert [record.source for record in (*case.inputs, *case.outputs)] == ["path", "value_f", "path"]
        assert case.inputs[0].header.path == external_names[0]
        assert np.array_equal(case.outputs[0].array(), big)
    assert len(write_case(tmp_path / "case.pb", node, [big, small], [big], inline_limit=400).files) == 1


def test_a_message_stays_below_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = add_output(make_node(1000), 900)
    first, second = np.zeros(1000, np.float32), np.zeros(900, np.float32)
    whole, _ = case_size(node, [first], [second])
    for limit, external in ((whole, 0), (whole - 1, 1), (1000, 2)):
        monkeypatch.setattr(wire, "MAX_MESSAGE", limit)
        written = write_case(tmp_path / "case.pb", node, [first], [second])
        assert (tmp_path / "case.pb").stat().st_size <= limit
        names = [file.name.split(".")[:2] for file in written.files[:-1]]
        assert names == [["case", "in0"], ["case", "out0"]][:external]
    monkeypatch.setattr(wire, "MAX_MESSAGE", 10)
    with pytest.raises(InputError, match="more than 10 bytes"):
        write_case(tmp_path / "case.pb", node, [first], [second])


def test_sizes_of_huge_cases_without_their_memory() -> None:
    elements = 64 * 32 * 32 * 5000
    big = np.zeros(elements, np.float32)  # untouched pages cost nothing
    size, side = case_size(make_node(elements), [big], [], inline_limit=1 << 40)
    assert 4 * elements < size < 4 * elements + 200
    assert side == 0
    node = add_output(make_node(elements), elements)
    size, side = case_size(node, [big], [big], inline_limit=1 << 40)
    assert side == 4 * elements  # both don't fit into one message
    assert size <= 2**31 - 1


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=30), st.integers(0, 80), st.integers(0, 300))
def test_the_size_is_exact(tmp_path_factory: pytest.TempPathFactory, numbers: list[int], name: int, limit: int) -> None:
    folder = tmp_path_factory.mktemp("size")
    node = add_output(make_node(len(numbers), dtype="int64"), len(numbers))
    node.op_name = "n" * name
    arrays = np.array(numbers, np.int64), np.array(numbers, np.float32)
    written = write_case(folder / "case.pb", node, [arrays[0]], [arrays[1]], inline_limit=limit)
    size, side = case_size(node, [arrays[0]], [arrays[1]], limit)
    assert size == (folder / "case.pb").stat().st_size
    assert size + side == written.bytes


def test_the_same_case_gives_the_same_bytes(tmp_path: Path) -> None:
    array = _random_bits("half", 1000)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for suffix in (".pb", ".prototxt"):
            write_case(tmp_path / name / f"case{suffix}", make_node(1000, dtype="half"), [array], [], inline_limit=100)
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()


class _BrokenError(Exception):
    """What a test breaks off with."""


@pytest.mark.parametrize("moment", ["header", "external data", "first rename", "last rename"])
def test_files_appear_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    node = add_output(make_node(100), 100)
    arrays = [np.zeros(100, np.float32)]
    (tmp_path / "foreign.txt").write_text("mine")
    replace, seen = os.replace, []

    def breaking(*args: Any) -> Any:
        seen.append(args)
        if moment != "last rename" or len(seen) == 3:
            raise _BrokenError
        return replace(*args)

    if moment == "header":
        monkeypatch.setattr(writing, "_write_binary", breaking)
    elif moment == "external data":
        monkeypatch.setattr(writing, "_image_writer", lambda stored: lambda file: breaking(file.write(b"half")))
    else:
        monkeypatch.setattr(os, "replace", breaking)
    with pytest.raises(_BrokenError):
        write_case(tmp_path / "case.pb", node, arrays, arrays, inline_limit=0)
    assert [file.name for file in tmp_path.iterdir()] == ["foreign.txt"]


def test_an_older_case_survives_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "case.pb"
    write_case(path, make_node(1), [np.ones(1, np.float32)], [])
    before = path.read_bytes()

    def full(file: Any, case: Any) -> None:
        file.write(b"half a header")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing, "_write_binary", full)
    with pytest.raises(UnavailableError, match=r"case.pb: can't write: No space left on device"):
        write_case(path, make_node(1), [np.zeros(1, np.float32)], [])
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(3, np.float32), "the array has shape (3,), its header (2,)"),
        (np.zeros(2, np.float64), "the array holds float64, its header says float"),
        (np.zeros(2, np.int32), "the array holds int32"),
    ],
)
def test_arrays_that_are_not_what_the_header_says(tmp_path: Path, array: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        write_case(tmp_path / "case.pb", make_node(2), [array], [])
    with pytest.raises(ValueError, match="0 input arrays for 1 input tensors"):
        write_case(tmp_path / "case.pb", make_node(2), [], [])
    assert not list(tmp_path.iterdir())


def test_nodes_that_lack_something(tmp_path: Path) -> None:
    node = make_node(2)
    node.psamask_forward_param.h_mask = 1
    with pytest.raises(InputError, match=r"psamask_forward_param.w_mask"):
        write_case(tmp_path / "case.pb", node, [None], [])
    with pytest.raises(InputError, match=r"ends in .pb or .prototxt"):
        write_case(tmp_path / "case.bin", make_node(2), [None], [])
    with pytest.raises(InputError, match="values of int4x2 can't be written"):
        write_case(tmp_path / "case.pb", make_node(2, dtype="int4x2"), [np.zeros(2, np.int8)], [])
