"""Text and bulk decoding: a million values against protobuf's text_format and element-wise Python, in one run."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf import text_format

from benchmarks.measure import Row, ratio, seconds
from schemas.casefiles.reading import read_case, write_case
from schemas.protos import messages as proto
from schemas.wire import codec as wire
from schemas.wire.varints import decode_varints, encode_varints

ELEMENTS = 1_000_000
PART = 20  # protobuf and Python get one element in so many: their time is proportional
FLOAT, ARRAY = 2, 5  # numbers of a dtype and of the layout in a case file


def _node(elements: int) -> Any:
    node = proto.Node(op_name="benchmark")
    node.input.add(id="x", layout=ARRAY, dtype=FLOAT, shape={"dims": [elements]})
    return node


def _per_million(name: str, ours: Callable[[], object], plain: Callable[[], object], bound: float) -> Row:
    """Ours on all elements against the plain way on a part of them, both per million."""
    row = ratio(name, ours, plain, pairs=3)
    taken = seconds(ours)
    return Row(name, row.value / PART, "x", bound, note=f"{taken:.2f} s per million; {row.note}")


def _texts(folder: Path) -> list[Row]:
    values = np.random.default_rng(0).standard_normal(ELEMENTS).astype(np.float32)
    few = values[: ELEMENTS // PART]
    path, node, message = folder / "case.prototxt", _node(ELEMENTS), _node(few.size)
    message.input[0].value_f.extend(few.tolist())
    text = text_format.MessageToString(message, descriptor_pool=proto.pool())

    def write() -> None:
        write_case(path, node, [values], [])

    def print_text() -> None:
        text_format.MessageToString(message, descriptor_pool=proto.pool())

    def read() -> None:
        with read_case(path) as case:
            case.inputs[0].array()

    def parse() -> None:
        text_format.Parse(text, proto.Node(), descriptor_pool=proto.pool())

    return [
        _per_million("write floats as text / protobuf's text_format", write, print_text, 0.5),
        _per_million("read floats from text / protobuf's text_format", read, parse, 0.5),
    ]


def _decoding() -> list[Row]:
    bits = np.random.default_rng(0).integers(0, 2**32, ELEMENTS, np.uint32)
    varints = np.concatenate(list(encode_varints(bits)))
    few_varints = np.concatenate(list(encode_varints(bits[: ELEMENTS // PART]))).tobytes()
    words = [f"{each:x}" for each in bits.tolist()]
    tag = wire.encode_tag(9, wire.LEN)
    strings = np.frombuffer(b"".join(tag + bytes([len(word)]) + word.encode() for word in words), np.uint8)
    few_strings = strings[: strings.size // PART].tobytes()

    def element_by_element() -> None:
        at, found = 0, []
        while at < len(few_varints):
            value, at = wire.read_varint(few_varints, at, len(few_varints))
            found.append(value)

    def string_by_string() -> None:
        at, found = 0, []
        while at < len(few_strings):
            size = few_strings[at + 1]
            found.append(int(few_strings[at + 2 : at + 2 + size], 16))
            at += 2 + size

    return [
        _per_million(
            "decode varints / element-wise Python",
            lambda: [*decode_varints(varints)],
            element_by_element,
            0.1,
        ),
        _per_million(
            "decode hex / element-wise Python",
            lambda: [*wire.decode_hex(strings, 9)],
            string_by_string,
            0.5,
        ),
    ]


def rows() -> list[Row]:
    """The rows of the table; takes about 30 MB in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        return [*_texts(Path(folder)), *_decoding()]
