"""Files of the older enum numbering: recognised in each way, read right when asked, ambiguous ones said to be so."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schemas.casefiles.reading import read_case
from schemas.casefiles.requested_criteria import criteria_of
from schemas.errors import InputError

# Numbers of the older generator; those that aren't listed are the current ones.
DTYPES = {
    "half": 1, "float": 2, "double": 3, "int8": 4, "int16": 5, "int32": 6, "int64": 7, "uint8": 8, "uint16": 9,
    "uint32": 10, "uint64": 11, "bool": 12, "complex_half": 13, "complex_float": 14,
}  # fmt: skip
LAYOUTS = {"NCHW": 0, "NHWC": 1, "HWCN": 2, "NDHWC": 3, "ARRAY": 4, "NCDHW": 5, "TNC": 6, "NTC": 7, "NC": 8, "NLC": 9}
CRITERIA = {"diff1": 1, "diff2": 2, "diff3": 3, "diff3_2": 4, "diff4": 5}


def varint(value: int) -> bytes:
    value %= 2**64
    return bytes([value]) if value < 128 else bytes([value % 128 + 128]) + varint(value // 128)


def field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def tensor(name: str, dtype: str, layout: str, dims: tuple[int, ...], *more: bytes) -> bytes:
    """A Tensor message with old numbers."""
    shape = b"".join(field(1, dim) for dim in dims)
    head = field(1, name.encode()) + field(2, shape) + field(3, LAYOUTS[layout]) + field(4, DTYPES[dtype])
    return head + b"".join(more)


def values(number: int, *entries: int) -> bytes:
    return field(number, b"".join(map(varint, entries)))


def node(*tensors: bytes, more: bytes = b"") -> bytes:
    return field(5, b"abs") + b"".join(field(6, each) for each in tensors) + more


def written(folder: Path, content: bytes) -> Path:
    path = folder / "old.pb"
    path.write_bytes(content)
    return path


FLOATS = field(7, struct.pack("<4f", 1, 2, 3, 4))

BETRAYED = {
    "field 23 is a number": (
        node(tensor("x", "float", "NHWC", (1, 1, 2, 2), FLOATS), more=varint(23 << 3 | 1) + struct.pack("<d", 1e-3)),
        "field 23",
    ),
    "a criterion MAPE": (
        node(tensor("x", "float", "NHWC", (1, 1, 2, 2), FLOATS), more=field(10, field(1, 1) + b"\x11" + bytes(8))),
        "criterion MAPE has the older number of DIFF1",
    ),
    "a criterion SMAPE": (
        node(tensor("x", "float", "NHWC", (1, 1, 2, 2), FLOATS), more=field(14, 2)),
        "criterion SMAPE has the older number of DIFF2",
    ),
    "a criterion MAXAPE": (
        node(tensor("x", "float", "NHWC", (1, 1, 2, 2), FLOATS), more=field(14, 3)),
        "criterion MAXAPE has the older number of DIFF3",
    ),
    "values that only the older dtype counts": (
        node(tensor("x", "int16", "NHWC", (1, 1, 2, 2), values(8, 1, 2, 3, 4))),
        "its values are int16, not int31",
    ),
    "a double read as int8": (
        node(tensor("x", "double", "NHWC", (1, 1, 1, 2), values(17, 0x3FF0000000000000, 0x4000000000000000))),
        "its values are double, not int8",
    ),
    "a list read as five-dimensional": (
        node(tensor("x", "float", "ARRAY", (4,), FLOATS)),
        "1 dims are ARRAY, not NDHWC",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BETRAYED)
def test_each_kind_of_evidence(tmp_path: Path, name: str) -> None:
    content, reason = BETRAYED[name]
    with read_case(written(tmp_path, content)) as case:
        assert case.numbering.word == "old"
        assert any(reason in each for each in case.numbering.reasons)
        assert "--generation old" in case.numbering.text


def test_external_data_whose_size_is_that_of_the_older_dtype(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(bytes(16))
    content = node(tensor("x", "double", "NHWC", (1, 1, 1, 2), field(11, b"x.bin")))
    assert read_case(written(tmp_path, content)).numbering.word == "old"


def test_a_number_that_only_the_older_numbering_has_is_an_error_that_says_so(tmp_path: Path) -> None:
    path = written(tmp_path, node(tensor("x", "float", "NCHW", (1, 1, 2, 2), FLOATS)))
    with pytest.raises(InputError, match=r"TensorLayout has no number 0.*--generation old"):
        read_case(path)
    assert read_case(path, "old").inputs[0].layout == "NCHW"
    with pytest.raises(InputError, match=r"DataType has no number 99$"):
        read_case(written(tmp_path, node(field(1, b"x") + field(2, b"") + field(3, 1) + field(4, 99))))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_of_the_older_numbering(tmp_path: Path, dtype: str) -> None:
    record = read_case(written(tmp_path, node(tensor("x", dtype, "ARRAY", (2, 3)))), "old").inputs[0]
    assert (record.dtype.name, record.layout, record.shape) == (dtype, "ARRAY", (2, 3))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_of_the_older_numbering(tmp_path: Path, layout: str) -> None:
    assert read_case(written(tmp_path, node(tensor("x", "int64", layout, (2,)))), "old").inputs[0].layout == layout


def test_an_old_file_is_read_whole(tmp_path: Path) -> None:
    x = tensor("x", "double", "ARRAY", (2,), values(17, 0x3FF0000000000000, -(2**62)))
    y = tensor("y", "int64", "NC", (1, 2), values(17, -5, 2**40))
    thresholds = b"".join(varint(15 << 3 | 1) + struct.pack("<d", each) for each in (0.1, 0.2))
    imaginary = b"".join(varint(23 << 3 | 1) + struct.pack("<d", each) for each in (0.3, 0.4))
    content = node(x, more=field(7, y) + field(14, bytes([1, 3])) + thresholds + imaginary + b"\xf8\x3f\x2a")
    with read_case(written(tmp_path, content), "old") as case:
        assert case.inputs[0].array().tolist() == [1.0, -2.0]
        assert case.outputs[0].array().tolist() == [[-5, 2**40]]
        assert case.outputs[0].layout == "NC"
        assert [(each.name, each.threshold) for each in criteria_of(case)[0]] == [("diff1", 0.1), ("diff3", 0.2)]
        assert list(case.node.evaluation_threshold_imag) == [0.3, 0.4]
        assert case.node.SerializeToString().endswith(b"\xf8\x3f\x2a")  # unknown fields stay
        assert case.numbering.word == "current"  # what was asked for isn't doubted


@pytest.mark.parametrize("dtype", [15, 16, 17])
def test_numbers_that_the_older_numbering_lacks_are_refused_with_it(tmp_path: Path, dtype: int) -> None:
    content = node(field(1, b"x") + field(2, field(1, 2)) + field(3, 4) + field(4, dtype))
    with pytest.raises(InputError, match=rf"input\.dtype: DataType has no number {dtype} in the older numbering"):
        read_case(written(tmp_path, content), "old")


def test_a_file_that_nothing_decides_is_ambiguous(tmp_path: Path) -> None:
    content = node(tensor("x", "float", "NHWC", (1, 1, 2, 2), FLOATS))  # or NCHW, of the current numbering
    with read_case(written(tmp_path, content)) as case:
        assert case.numbering.word == "ambiguous"
        assert "nothing in it tells which" in case.numbering.text


def test_a_file_that_says_both_is_ambiguous_and_tells_why(tmp_path: Path) -> None:
    current = field(1, b"y") + field(2, field(1, 3)) + field(3, 5) + field(4, 16) + values(17, 1, 2, 3)  # ARRAY INT64
    content = node(tensor("x", "float", "NHWC", (1, 1, 2, 2), FLOATS), current, more=field(14, 1))
    with read_case(written(tmp_path, content)) as case:
        assert case.numbering.word == "ambiguous"
        assert any("MAPE" in each for each in case.numbering.reasons)
        assert any(each.startswith("but ") and "DataType 16" in each for each in case.numbering.reasons)


@pytest.mark.parametrize(
    "more",
    [field(10, field(1, 6)), field(14, 9)],  # DIFF1 and DIFF3_2
)
def test_a_criterion_with_its_current_number_decides(tmp_path: Path, more: bytes) -> None:
    case = read_case(written(tmp_path, node(tensor("x", "float", "NHWC", (1, 1, 2, 2), FLOATS), more=more)))
    assert case.numbering.word == "current"
    assert case.numbering.text == ""


def test_texts_and_our_own_files_are_not_doubted(tmp_path: Path) -> None:
    from schemas.casefiles.reading import write_case
    from schemas.protos import messages as proto
    from tests.schemas.casefiles.building import make_node

    text = 'op_name: "a" evaluation_criterion: MAPE input { id: "x" shape {} layout: LAYOUT_NDHWC dtype: DTYPE_INT8 }'
    (tmp_path / "case.prototxt").write_text(text)
    assert read_case(tmp_path / "case.prototxt").numbering.word == "current"
    ours: Any = make_node(1, 1, 1, 2)
    ours.input[0].layout = 1
    proto.set_meta(ours, proto.CaseMeta(suite="s", name="n"))
    write_case(tmp_path / "ours.pb", ours, [np.ones((1, 1, 1, 2), np.float32)], [])
    assert read_case(tmp_path / "ours.pb").numbering.word == "current"


def test_public_files_as_binaries_are_current(shared: Path, tmp_path: Path) -> None:
    from schemas.casefiles.converting import convert_case

    files = sorted((shared / "public_cases/prototxt").rglob("*.prototxt"))
    words = []
    for path in files:
        with read_case(path) as case:
            convert_case(case, tmp_path / "case.pb", warn=lambda message: None)
        words.append(read_case(tmp_path / "case.pb").numbering.word)
    assert set(words) == {"current"}
