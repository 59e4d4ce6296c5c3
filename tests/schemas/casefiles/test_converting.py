"""Converting: equal messages both ways, bits kept, values moved in and out of side files, nothing else touched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from schemas.casefiles.converting import convert_case
from schemas.casefiles.reading import read_case, write_case
from schemas.errors import InputError
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
    if dtype in ("float", "complex_float"):
        parts = array.view(np.float32)
        parts[np.isnan(parts)] = np.nan  # a text has one NaN for value_f
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
        found, numbers = case.outputs[0].array(), ~np.isnan(floats.view(np.float32))
        assert np.array_equal(found.view(np.uint32)[numbers], floats[numbers])
        assert np.isnan(found[~numbers]).all()


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


def test_side_files_go_along_to_another_folder(tmp_path: Path) -> None:
    node = make_node(2, path="data/x.bin")
    node.input.add(id="y", shape={"dims": [1]}, layout=5, dtype=2, path="y.bin")
    node.input.add(id="again", shape={"dims": [2]}, layout=5, dtype=2, path="data/x.bin")
    source = put(tmp_path / "in", node)
    (tmp_path / "in" / "data").mkdir()
    (tmp_path / "in" / "data" / "x.bin").write_bytes(np.float32([3, 4]).tobytes())
    (tmp_path / "in" / "y.bin.zst").write_bytes(b"packed")
    target = convert(source, tmp_path / "out" / "deep" / "case.prototxt")
    assert message(target) == message(source)
    assert read_case(target).inputs[0].array().tolist() == [3, 4]
    assert (target.parent / "y.bin.zst").read_bytes() == b"packed"
    told: list[str] = []
    (tmp_path / "in" / "y.bin.zst").unlink()
    convert(source, tmp_path / "other" / "case.pb", told.append)
    assert len(told) == 1
    assert "no side file is copied" in told[0]


def test_a_strided_tensor_keeps_its_span(tmp_path: Path) -> None:
    node = make_node(2, 2, value_f=[1, 2, 99, 3, 4])
    node.input[0].shape.dim_stride.extend([3, 1])
    target = convert(put(tmp_path, node), tmp_path / "a.pb", inline_limit=0)
    assert np.fromfile(tmp_path / "a.in0.bin", np.float32).tolist() == [1, 2, 99, 3, 4]
    assert read_case(target).inputs[0].array().tolist() == [[1, 2], [3, 4]]


def test_sources_that_do_not_count_are_told_when_values_move(tmp_path: Path) -> None:
    node = make_node(1, value_f=[2], value_i=[3], random_data={"seed": 1})
    told: list[str] = []
    target = convert(put(tmp_path, node), tmp_path / "a.pb", told.append, inline_limit=0)
    assert "value_i beside value_f" in told[0]
    record = read_case(target).inputs[0]
    assert (record.source, record.array().tolist()) == ("path", [2])
    assert record.random.seed == 1


def test_nothing_is_drawn(tmp_path: Path) -> None:
    source = put(tmp_path, make_node(2**40, random_data={"seed": 1}))
    for name in ("a.prototxt", "a.pb"):
        target = convert(source, tmp_path / name, inline_limit=0)
        assert message(target) == message(source)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pb", "a.prototxt", "case.pb"]


def test_unknown_fields_survive_a_binary_and_are_told_in_a_text(tmp_path: Path) -> None:
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
