"""Converting: equal messages both ways, bits kept, values moved in and out of external data, nothing else touched."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from schemas.casefiles.converting import convert_case
from schemas.casefiles.reading import read_case, write_case
from schemas.errors import InputError, UnavailableError
from schemas.protos import messages as proto
from tests.schemas.casefiles.building import add_output, as_bytes, make_node

STORAGE: dict[str, Any] = {
    "half": np.float16, "float": np.float32, "double": np.float64, "bfloat16": ml_dtypes.bfloat16, "int8": np.int8,
    "int16": np.int16, "int32": np.int32, "int64": np.int64, "uint8": np.uint8, "uint16": np.uint16,
    "uint32": np.uint32, "uint64": np.uint64, "bool": np.bool_, "complex_float": np.complex64,
}  # fmt: skip


def silent(message: str) -> None:
    raise AssertionError(message)


def convert(source: Path, target: Path, warn: Any = silent, **options: Any) -> Path:
    with read_case(source) as case:
        convert_case(case, target, warn=warn, **options)
    return target


def external(folder: Path) -> Path:
    """The only file of external data in a folder."""
    (found,) = folder.glob("*.in0.*.bin")
    return found


def message(path: Path) -> bytes:
    """What protobuf reads from a file, without our padding."""
    if path.suffix == ".pb":
        node = proto.Node.FromString(path.read_bytes())
        node.ClearExtension(proto.extension("mluops_pad"))
    else:
        node = proto.parse_text(path.read_text(encoding="utf-8"), proto.Node(), str(path))
    return proto.serialize(node)


def put(folder: Path, content: Any, name: str = "case.pb") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(as_bytes(content))
    return folder / name


def rich_node() -> Any:
    """A node with every value field, several sources, strange strings and our metadata."""
    node = make_node(3, value_f=[1, 0.1, -0.0], value_i=[1, -1, 2**31 - 1], value_h=["3F800000", "0x7", "no hex\n"])
    node.input.add(id='"quoted" größe\n', shape={"dims": [0, 3]}, layout=2, dtype=1, random_data={"seed": 3})
    node.input.add(
        id="l", shape={"dims": [2, 2], "dim_stride": [5, 1]}, layout=2, dtype=8, value_l=[-(2**63), 2**63 - 1]
    )
    add_output(node, value_ui=[2**32 - 1, 0], value_ul=[2**64 - 1], dtype="uint64", path="no such.bin")
    node.evaluation_criterion.append(6)
    node.output[0].thresholds.evaluation_threshold.append(0.1)
    node.output[0].thresholds.evaluation_threshold_imag.append(1e-300)
    node.psamask_forward_param.h_mask = 7
    node.psamask_forward_param.w_mask = 7
    node.psamask_forward_param.psa_type = 1
    proto.set_meta(node, proto.CaseMeta(suite="s", name="n", tags=["größe"]))
    return node


def test_messages_stay_equal_in_every_form(tmp_path: Path) -> None:
    source = put(tmp_path, rich_node())
    expected = message(source)
    text = convert(source, tmp_path / "a.prototxt")
    assert message(text) == expected
    assert message(convert(text, tmp_path / "b.pb")) == expected
    assert message(convert(source, tmp_path / "c.pb")) == expected
    assert message(convert(text, tmp_path / "d.prototxt")) == expected
    assert (tmp_path / "a.prototxt").read_bytes() == (tmp_path / "d.prototxt").read_bytes()


def test_plain_leaves_out_our_part_and_nothing_else(tmp_path: Path) -> None:
    node = rich_node()
    source = put(tmp_path, node)
    proto.set_meta(node, None)
    for name in ("a.pb", "a.prototxt"):
        found = convert(source, tmp_path / name, plain=True)
        assert message(found) == proto.serialize(node)
        assert read_case(found).meta is None
        if found.suffix == ".pb":
            assert proto.Node.FromString(found.read_bytes()) == node  # no padding either
        assert b"mluops" not in found.read_bytes()


@pytest.mark.parametrize("dtype", STORAGE)
def test_every_dtype_keeps_its_bits_in_every_form(tmp_path: Path, dtype: str) -> None:
    raw = np.random.default_rng(3).integers(0, 256, 20_000 * np.dtype(STORAGE[dtype]).itemsize, np.uint8)
    array = (raw & 1 if dtype == "bool" else raw).view(STORAGE[dtype])
    source = tmp_path / "in" / "case.pb"
    write_case(source, make_node(array.size, dtype=dtype), [array], [])
    path = source
    all_inline = 1 << 30
    for name, limit in (
        ("a.prototxt", None), ("b.pb", 0), ("c.prototxt", 0), ("d.pb", all_inline), ("e.prototxt", None),
        ("f.pb", None),
    ):  # fmt: skip
        path = convert(path, tmp_path / "out" / name, inline_limit=limit)
        with read_case(path) as case:
            assert (case.inputs[0].source == "path") == (limit == 0)
            assert case.inputs[0].array().tobytes() == array.tobytes()
    if dtype not in ("float", "complex_float"):  # whose odd NaNs go through text as value_h
        assert path.read_bytes() == source.read_bytes()


def test_all_halfs_and_many_floats_with_their_nans(tmp_path: Path) -> None:
    halfs = np.arange(65536, dtype=np.uint16).view(np.float16)
    floats = np.random.default_rng(4).integers(0, 2**32, 100_000, np.uint32)
    floats[:4] = [0x7FC00001, 0xFFC00000, 0x7F800001, 0x00000001]
    node = add_output(make_node(65536, dtype="half"), 100_000)
    write_case(tmp_path / "a.pb", node, [halfs], [floats.view(np.float32)])
    with read_case(convert(tmp_path / "a.pb", tmp_path / "b.pb", inline_limit=0)) as case:
        assert np.array_equal(case.inputs[0].array().view(np.uint16), halfs.view(np.uint16))
        assert np.array_equal(case.outputs[0].array().view(np.uint32), floats)  # payloads of NaNs too
    with read_case(convert(tmp_path / "b.pb", tmp_path / "c.prototxt", inline_limit=1 << 30)) as case:
        assert np.array_equal(case.inputs[0].array().view(np.uint16), halfs.view(np.uint16))
        assert case.outputs[0].source == "value_h"
        assert np.array_equal(case.outputs[0].array().view(np.uint32), floats)


def test_values_that_make_no_sense_stay_as_they_are(tmp_path: Path) -> None:
    node = make_node(9, value_h=["xyz"])
    node.input.add(id="y", shape={"dims": [2**40]}, layout=5, dtype=3, value_f=[1])
    node.input.add(id="z", shape={"dims": [2]}, layout=5, dtype=23, path="../escape.bin")
    source = put(tmp_path, node)
    told: list[str] = []
    text = convert(source, tmp_path / "a.prototxt", told.append, inline_limit=0)
    assert message(text) == message(source)
    assert len(told) == 3
    assert all("left as it is" in each for each in told)


def test_external_data_are_copied_to_another_folder(tmp_path: Path) -> None:
    node = make_node(2, path="data/x.bin")
    node.input.add(id="y", shape={"dims": [1]}, layout=5, dtype=2, path="y.bin")
    node.input.add(id="again", shape={"dims": [2]}, layout=5, dtype=2, path="data/x.bin")
    source = put(tmp_path / "in", node)
    (tmp_path / "in" / "data").mkdir()
    (tmp_path / "in" / "data" / "x.bin").write_bytes(np.array([3, 4], np.float32).tobytes())
    (tmp_path / "in" / "y.bin.zst").write_bytes(b"compressed")
    target = convert(source, tmp_path / "out" / "deep" / "case.prototxt")
    assert message(target) == message(source)
    assert read_case(target).inputs[0].array().tolist() == [3, 4]
    assert (target.parent / "y.bin.zst").read_bytes() == b"compressed"
    told: list[str] = []
    (tmp_path / "in" / "y.bin.zst").unlink()
    convert(source, tmp_path / "other" / "case.pb", told.append)
    assert len(told) == 1
    assert "external data are not copied" in told[0]


def test_a_strided_tensor_keeps_its_span(tmp_path: Path) -> None:
    node = make_node(2, 2, value_f=[1, 2, 99, 3, 4])
    node.input[0].shape.dim_stride.extend([3, 1])
    target = convert(put(tmp_path, node), tmp_path / "a.pb", inline_limit=0)
    assert np.fromfile(external(tmp_path), np.float32).tolist() == [1, 2, 99, 3, 4]
    assert read_case(target).inputs[0].array().tolist() == [[1, 2], [3, 4]]


def test_sources_without_priority_are_reported_when_values_move(tmp_path: Path) -> None:
    node = make_node(1, value_f=[2], value_i=[3], random_data={"seed": 1})
    told: list[str] = []
    target = convert(put(tmp_path, node), tmp_path / "a.pb", told.append, inline_limit=0)
    assert "value_i dropped, value_f has priority" in told[0]
    record = read_case(target).inputs[0]
    assert (record.source, record.array().tolist()) == ("path", [2])
    assert record.header.random_data.seed == 1


def test_nothing_is_drawn(tmp_path: Path) -> None:
    source = put(tmp_path, make_node(2**40, random_data={"seed": 1}))
    for name in ("a.prototxt", "a.pb"):
        target = convert(source, tmp_path / name, inline_limit=0)
        assert message(target) == message(source)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pb", "a.prototxt", "case.pb"]


def test_unknown_fields_survive_in_binary_and_are_reported_for_text(tmp_path: Path) -> None:
    source = put(tmp_path, make_node(1, value_f=[1]).SerializeToString() + b"\xf8\x3f\x2a")
    assert b"\xf8\x3f\x2a" in convert(source, tmp_path / "a.pb").read_bytes()
    told: list[str] = []
    convert(source, tmp_path / "a.prototxt", told.append)
    assert len(told) == 1
    assert "unknown fields 1023 are dropped" in told[0]


def test_a_file_may_be_converted_in_place(tmp_path: Path) -> None:
    array = np.arange(100_000, dtype=np.float32)  # mapped
    write_case(tmp_path / "a.pb", make_node(array.size), [array], [])
    before = (tmp_path / "a.pb").read_bytes()
    convert(tmp_path / "a.pb", tmp_path / "a.pb")
    assert (tmp_path / "a.pb").read_bytes() == before


def test_strings_that_are_no_text_are_refused(tmp_path: Path) -> None:
    content = make_node(1).SerializeToString()
    tensor = make_node(1).input[0].SerializeToString() + b"\x4a\x02\xff\xfe"
    content = b"\x2a\x01a\x32" + bytes([len(tensor)]) + tensor
    with pytest.raises(InputError, match="no UTF-8"):
        convert(put(tmp_path, content), tmp_path / "a.prototxt")
    assert not (tmp_path / "a.prototxt").exists()


def put_with_external(folder: Path, name: str, numbers: list[float]) -> Path:
    """A case file of that name whose values are in data.bin beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    np.array(numbers, np.float32).tofile(folder / "data.bin")
    return put(folder, make_node(len(numbers), path="data.bin"), name)


def values(path: Path) -> Any:
    with read_case(path) as case:
        return case.inputs[0].array().tolist()


def test_a2_external_data_of_one_name_never_collide(tmp_path: Path) -> None:
    told: list[str] = []
    first = convert(put_with_external(tmp_path / "a", "a.pb", [1, 2]), tmp_path / "out" / "a.prototxt")
    second = convert(put_with_external(tmp_path / "b", "b.pb", [3, 4]), tmp_path / "out" / "b.prototxt", told.append)
    same = convert(put_with_external(tmp_path / "c", "c.pb", [1, 2]), tmp_path / "out" / "c.prototxt")
    assert [values(path) for path in (first, second, same)] == [[1, 2], [3, 4], [1, 2]]
    assert len(told) == 1
    assert "data.bin holds other data: external data are copied to b.in0." in told[0]
    assert len(list((tmp_path / "out").glob("*.bin"))) == 2


def test_a2_a_compressed_sibling_does_not_hide_and_is_not_hidden(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    plain = put_with_external(tmp_path / "a", "a.pb", [1, 2])
    packed = put_with_external(tmp_path / "b", "b.pb", [3, 4])
    image = (packed.parent / "data.bin").read_bytes()
    (packed.parent / "data.bin").rename(packed.parent / "kept.bin")
    (packed.parent / "data.bin.zst").write_bytes(zstandard.ZstdCompressor().compress(image))
    for folder, order in (("x", (plain, packed)), ("y", (packed, plain))):
        told: list[str] = []
        targets = [convert(each, tmp_path / folder / f"{each.stem}.prototxt", told.append) for each in order]
        assert [values(path) for path in targets] == [values(path) for path in order]
        assert len(told) == 1


@pytest.mark.parametrize(
    ("size", "name"), [(1 << 40, "data.bin"), (1 << 40, "data.bin.zst"), (12, "data.bin"), (0, "data.bin")]
)
def test_f8_external_data_of_the_wrong_size_are_not_copied(tmp_path: Path, size: int, name: str) -> None:
    source = put_with_external(tmp_path / "in", "a.pb", [1, 2])
    (source.parent / "data.bin").unlink()
    with (source.parent / name).open("wb") as file:
        file.truncate(size)  # sparse: 1 TiB takes no space
    for limit, word in ((None, "external data are not copied"), (0, "left as it is"), (1 << 30, "left as it is")):
        told: list[str] = []
        target = convert(source, tmp_path / "out" / "a.prototxt", told.append, inline_limit=limit)
        assert message(target) == message(source)
        assert word in told[0]
        assert f"{size} bytes" in told[0]
        assert [path.name for path in target.parent.iterdir()] == ["a.prototxt"]


def test_a4_a_rewritten_case_never_reads_half_of_the_new_external_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = add_output(make_node(2), 2)
    old, new = np.array([1, 2], np.float32), np.array([3, 4], np.float32)
    path = tmp_path / "a.pb"
    write_case(path, node, [old], [old], inline_limit=0)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    replace, seen = os.replace, []

    def third_fails(*args: Any) -> None:
        seen.append(args)
        if len(seen) == 3:
            raise OSError(28, "No space left on device")
        replace(*args)

    monkeypatch.setattr(os, "replace", third_fails)
    with pytest.raises(UnavailableError):
        write_case(path, node, [new], [new], inline_limit=0)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    with read_case(path) as case:
        assert [record.array().tolist() for record in (*case.inputs, *case.outputs)] == [[1, 2], [1, 2]]
    monkeypatch.undo()
    write_case(path, node, [new], [new], inline_limit=0)
    assert values(path) == [3, 4]


_NANS = np.array([0x7FC00000, 0xFFC00000, 0x7FC00001, 0x7F800001, 0x3F800000], np.uint32)


@pytest.mark.parametrize("dtype", ["float", "complex_float"])
def test_e5_bits_of_nans_survive_a_text(tmp_path: Path, dtype: str) -> None:
    array = np.concatenate([_NANS, _NANS[::-1]]).view(np.float32 if dtype == "float" else np.complex64)
    for suffix in (".pb", ".prototxt"):  # as gen --format both does
        write_case(tmp_path / f"a{suffix}", make_node(array.size, dtype=dtype), [array], [])
    convert(tmp_path / "a.pb", tmp_path / "b.prototxt")
    convert(tmp_path / "b.prototxt", tmp_path / "c.pb")
    for name in ("a.pb", "a.prototxt", "b.prototxt", "c.pb"):
        with read_case(tmp_path / name) as case:
            assert case.inputs[0].array().tobytes() == array.tobytes()
    plain = np.array([1, np.nan, np.inf], np.float32)  # the NaN that text means
    write_case(tmp_path / "d.prototxt", make_node(3), [plain], [])
    assert read_case(tmp_path / "d.prototxt").inputs[0].source == "value_f"


def test_e5_where_a_text_cannot_hold_the_bits_of_a_nan_that_is_reported(tmp_path: Path) -> None:
    for dtype, fields in (("half", {}), ("float", {"value_h": ["0"] * _NANS.size})):
        node = make_node(_NANS.size, dtype=dtype, value_f=[0] * _NANS.size, **fields)
        raw = node.SerializeToString().replace(bytes(4 * _NANS.size), _NANS.tobytes())
        told: list[str] = []
        convert(put(tmp_path, raw), tmp_path / "a.prototxt", told.append)
        (line,) = told
        assert line.endswith(
            """input[0] "x": value_f holds NaNs whose bits a text can't hold: they become plain NaNs"""
        )


def test_e10_small_files_get_no_padding(tmp_path: Path) -> None:
    text = put(
        tmp_path,
        'op_name: "abs" input { id: "x" shape { dims: 2 } layout: LAYOUT_NC dtype: DTYPE_FLOAT value_f: [1, 2] }',
        "a.prototxt",
    )
    small = convert(text, tmp_path / "a.pb")
    assert small.read_bytes() == message(text)
    large = make_node(1 << 14, value_f=range(1 << 14))
    payload = np.arange(1 << 14, dtype=np.float32).tobytes()
    assert convert(put(tmp_path, large), tmp_path / "b.pb").read_bytes().index(payload) % 64 == 0


@pytest.mark.parametrize("length", [240, 250])
def test_f14_long_names(tmp_path: Path, length: int) -> None:
    node = make_node(2, value_f=[1, 2])
    source = put(tmp_path, node, "x" * (length - 3) + ".pb")
    target = convert(source, tmp_path / "out" / ("y" * (250 - 9) + ".prototxt"), inline_limit=0)
    assert values(target) == [1, 2]
    assert values(convert(target, tmp_path / "out" / ("z" * (255 - 3) + ".pb"))) == [1, 2]
