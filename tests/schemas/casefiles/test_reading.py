"""Reading case files: headers, texts, unknown things, and every way a file can be broken."""

from __future__ import annotations

import os
import re
import resource
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schemas.casefiles.reading import read_case, write_case
from schemas.errors import InputError, UnavailableError
from schemas.protos import messages as proto
from tests.schemas.casefiles.building import add_output, make_node, read

_TEXT = """op_name: "abs"
input {
  id: "x"
  shape { dims: 2 dims: 2 }
  layout: LAYOUT_NHWC
  dtype: DTYPE_FLOAT
  value_f: [1, 2.5, -3, 4e0]
}
"""


def test_what_a_case_tells(tmp_path: Path) -> None:
    node = add_output(make_node(2, 3, dtype="half", value_i=range(6)), 2, dtype="int32")
    node.op_name = "psamask_forward"
    node.nms_param.run_mode = 1
    node.psamask_forward_param.h_mask = 7
    node.psamask_forward_param.w_mask = 5
    node.psamask_forward_param.psa_type = 0
    node.test_param.error_func.append(8)
    node.test_param.error_threshold.append(0)
    proto.set_meta(node, proto.CaseMeta(suite="network", name="case"))
    with read(tmp_path, node) as case:
        assert case.op == "psamask_forward"
        assert case.meta is not None
        assert case.meta.suite == "network"
        params = case.params_message()
        assert params is not None
        assert params.h_mask == 7
        assert [(r.id, r.dtype.name, r.shape, r.source) for r in (*case.inputs, *case.outputs)] == [
            ("x", "half", (2, 3), "value_i"), ("y", "int32", (2,), None),
        ]  # fmt: skip
        assert list(case.node.input[0].value_i) == []  # bulk values stay in the file
        assert case.node.input[0].id == "x"
    bare = read(tmp_path, make_node(1))
    assert bare.params_message() is None
    assert bare.meta is None


def test_reading_headers_does_not_read_values(tmp_path: Path) -> None:
    path = tmp_path / "case.pb"
    write_case(path, make_node(1 << 24), [np.zeros(1 << 24, np.float32)], [], inline_limit=1 << 40)
    tracemalloc.start()
    read_case(path).close()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20  # of 64 MB


@pytest.mark.parametrize(
    "text",
    [
        _TEXT,
        _TEXT.rstrip("\n"),
        _TEXT.replace("\n", "\r\n"),
        "\ufeff" + _TEXT,
        "# a comment\n" + _TEXT.replace('"x"', '"x"  # another'),
        _TEXT.replace("shape { dims: 2 dims: 2 }", "shape < dims: 2; dims: 2, >"),
        _TEXT.replace("value_f: [1, 2.5, -3, 4e0]", "value_f: 1 value_f: 2.5 value_f: -3 value_f: [4]"),
        _TEXT.replace('"x"', "'x'").replace("input {", "input: {"),
    ],
)
def test_unusual_texts_are_legal(tmp_path: Path, text: str) -> None:
    record = read(tmp_path, text, ".prototxt").inputs[0]
    assert (record.id, record.layout) == ("x", "NHWC")
    assert record.array().tolist() == [[1, 2.5], [-3, 4]]


def test_a_text_in_utf8_whatever_the_locale(tmp_path: Path) -> None:
    assert read(tmp_path, _TEXT.replace('"x"', '"Größe 大"'), ".prototxt").inputs[0].id == "Größe 大"


@pytest.mark.parametrize(
    ("content", "suffix", "message"),
    [
        (b"", ".pb", "the file is empty"),
        (b" \n", ".prototxt", "the file is empty"),
        (b"\x89PNG\r\n\x1a\n", ".pb", "byte 0: "),
        (b"op_name: 'abs'", ".pb", "byte "),
        ("input {", ".prototxt", ':1:7: Expected "}"'),
        ("op_name: 'a'\nnope: 1", ".prototxt", ":2:1: "),
        (b"op_name: 'a'\n# \xff", ".prototxt", ":2: byte 15 is not UTF-8"),
        (b"\x18\x02", ".pb", "required op_name missing"),
        ("op_name: ''", ".prototxt", "op_name is '', expected a word of letters"),
        ("op_name: '../../evil/op'", ".prototxt", "op_name is '../../evil/op', expected a word of letters"),
        ("op_name: 'a\\033[31m'", ".prototxt", "op_name is 'a\\x1b[31m', expected a word of letters"),
        (b"\x2a\x01a\x32\x03\x0a\x01x", ".pb", "required input[0].shape, input[0].layout, input[0].dtype missing"),
        ("input {}", ".prototxt", "required op_name, input[0].id, input[0].shape"),
        (b"\x2a\x02\xff\xfe", ".pb", "op_name: b'\\xff\\xfe' is not UTF-8"),
        (make_node(1, dtype="invalid"), ".pb", "DTYPE_INVALID is not the dtype of a tensor"),
    ],
)
def test_files_that_are_no_cases(tmp_path: Path, content: Any, suffix: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        read(tmp_path, content, suffix)
    assert str(caught.value).startswith(str(tmp_path / f"case{suffix}"))


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    (tmp_path / "folder.pb").mkdir()
    for name, message in (
        ("missing.pb", "No such file"),
        ("missing.prototxt", "No such file"),
        ("folder.pb", "it is a folder"),
        ("case.txt", "ends in .pb or .prototxt"),
    ):
        with pytest.raises(InputError, match=re.escape(message)):
            read_case(tmp_path / name)


@pytest.mark.parametrize(
    ("where", "tag", "message"),
    [
        ("tensor", b"\x20\x63", "input[0].dtype: DataType has no number 99"),
        ("tensor", b"\x18\x63", "input[0].layout: TensorLayout has no number 99"),
        ("tensor", b"\x60\x63", "input[0].mlu_dtype: DataType has no number 99"),
        ("node", b"\x18\x63", "device: Device has no number 99"),
        ("node", b"\x70\x63", "evaluation_criterion: EvaluationCriterion has no number 99"),
        ("node", b"\x52\x02\x08\x63", "test_param.error_func: EvaluationCriterion has no number 99"),
    ],
)
def test_unknown_enum_numbers_are_never_a_default(tmp_path: Path, where: str, tag: bytes, message: str) -> None:
    tensor = make_node(1).input[0].SerializeToString() + (tag if where == "tensor" else b"")
    content = b"\x2a\x01a\x32" + bytes([len(tensor)]) + tensor + (tag if where == "node" else b"")
    with pytest.raises(InputError, match=re.escape(message)):
        read(tmp_path, content)


def test_unknown_fields_survive_reading_and_writing(tmp_path: Path) -> None:
    unknown = b"\xf8\x3f\x2a"  # field 1023: 42
    tensor = make_node(1).input[0].SerializeToString() + unknown
    node = b"\x2a\x01a" + unknown + b"\x32" + bytes([len(tensor)]) + tensor
    case = read(tmp_path, node)
    write_case(tmp_path / "again.pb", case.node, [np.ones(1, np.float32)], [])
    again = (tmp_path / "again.pb").read_bytes()
    assert again.count(unknown) == 2
    parsed = proto.Node.FromString(again)
    assert parsed.input[0].value_f[:] == [1]
    assert read_case(tmp_path / "again.pb").node.SerializeToString() == case.node.SerializeToString()


def _rich(folder: Path) -> bytes:
    """A small file with every kind of field in it."""
    node = add_output(make_node(9, dtype="int32"), 3)
    node.input.add(id="h", shape={"dims": [3]}, layout=5, dtype=2, value_h=["3f800000", "0", "7f"])
    proto.set_meta(node, proto.CaseMeta(suite="s", expect=["BAD_PARAM"]))
    path = folder / "rich.pb"
    write_case(path, node, [np.arange(-4, 5, dtype=np.int32), None], [np.ones(3, np.float32)])
    hexed = node.input[1].SerializeToString()
    unpacked = node.input[0].SerializeToString() + b"".join(b"\x40" + bytes([i]) for i in range(20))
    extra = b"\x32" + bytes([len(hexed)]) + hexed + b"\x32" + bytes([len(unpacked)]) + unpacked + b"\x33\x08\x01\x34"
    return bytes(path.read_bytes() + extra)


def _look(content: bytes, path: Path) -> None:
    """Read everything there is; anything but an InputError fails the test."""
    path.write_bytes(content)
    try:
        with read_case(path) as case:
            for record in (*case.inputs, *case.outputs):
                record.value_count()
                if record.has_values:
                    try:
                        record.array()
                    except InputError:
                        record.stored()
    except InputError:
        pass


def test_a_file_cut_off_anywhere_is_an_input_error_or_a_smaller_file(tmp_path: Path) -> None:
    whole = _rich(tmp_path)
    assert len(read(tmp_path, whole).inputs) == 4
    refused = 0
    for size in range(1, len(whole)):
        _look(whole[:size], tmp_path / "cut.pb")
        try:
            (tmp_path / "cut.pb").write_bytes(whole[:size])
            read_case(tmp_path / "cut.pb")
        except InputError:
            refused += 1
    assert refused > 0.8 * len(whole)  # only between fields of Node can a cut go unseen


def test_damaged_bytes_never_crash(tmp_path: Path) -> None:
    whole = _rich(tmp_path)
    rng = np.random.default_rng(5)
    for _ in range(600):
        damaged = bytearray(whole)
        for at in rng.integers(0, len(whole), rng.integers(1, 4)):
            damaged[at] = rng.integers(0, 256)
        _look(bytes(damaged), tmp_path / "damaged.pb")


def test_small_cases_hold_no_open_files(tmp_path: Path) -> None:
    read(tmp_path, make_node(1))
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else pytest.skip("needs /proc")
    cases = [read_case(tmp_path / "case.pb") for _ in range(50)]
    assert len(os.listdir("/proc/self/fd")) == before
    assert len(cases) == 50


def test_a_process_that_can_open_no_file_does_not_blame_the_case(tmp_path: Path) -> None:
    path = tmp_path / "case.pb"
    path.touch()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        with pytest.raises(UnavailableError, match=re.escape(f"{path}: can't read the case file: Too many open files")):
            read_case(path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(
    ("dtype", "field", "elements"),
    [
        ("float", "value_f", [b"\xbd\x00" + np.float32(each).tobytes() for each in (1, 2, 3, 4, 5)]),
        ("float", "value_f", [b"\x3d" + np.float32(1).tobytes(), b"\xbd\x80\x00" + np.float32(2).tobytes()]),
        ("int32", "value_i", [b"\xc0\x00\x05", b"\x40\x06", b"\xc0\x80\x00\xff\x00"]),
        ("float", "value_h", [b"\xca\x00\x083f800000", b"\x4a\x88\x0040000000"]),
        ("float", "value_h", [b"\x4a\x083f800000"] * 20 + [b"\x4a\x81\x000"]),
    ],
)
def test_a11_tags_and_lengths_of_more_bytes_than_needed(
    tmp_path: Path, dtype: str, field: str, elements: list[bytes]
) -> None:
    """protobuf reads them, so do we: held against its own reading."""
    tensor = make_node(len(elements), dtype=dtype).input[0].SerializeToString() + b"".join(elements)
    content = b"\x2a\x01a\x32" + bytes([len(tensor) % 128 + 128, len(tensor) // 128]) + tensor
    expected = list(getattr(proto.Node.FromString(content).input[0], field))
    assert len(expected) == len(elements)
    array = read(tmp_path, content).inputs[0].array()
    if field == "value_h":
        assert array.view(np.uint32).tolist() == [int(each, 16) for each in expected]
    else:
        assert array.tolist() == expected


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"suite": "../../../victim", "name": "x"}, "suite '../../../victim' can't be part of a path"),
        ({"suite": "s", "name": "/etc/passwd"}, "case name '' can't be part of a path: it is empty"),
        ({"suite": "s", "name": "a/../../b"}, "case name '..' can't be part of a path"),
        ({"suite": "a\nb", "name": "x"}, "control characters"),
        ({"suite": "s", "name": "x" * 201}, "at most 200 are allowed"),
    ],
)
def test_f1_metadata_whose_names_lead_elsewhere(tmp_path: Path, names: dict[str, str], message: str) -> None:
    node = make_node(1)
    proto.set_meta(node, proto.CaseMeta(**names))
    for suffix, content in ((".pb", node), (".prototxt", proto.print_text(node))):
        with pytest.raises(InputError, match=re.escape(message)):
            read(tmp_path, content, suffix)
    node.ClearExtension(proto.extension("mluops_case"))
    node.op_name = "o" * 300
    with pytest.raises(InputError, match=r"op_name 'ooo.*300 bytes, at most 200"):
        read(tmp_path, node)
