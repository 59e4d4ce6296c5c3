"""Mutated case files: an InputError or a reading that protobuf confirms, never a crash, a hang, or a value of our own.

What protobuf reads is the judge: where both read a file, header and entries must be the same.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from schemas.casefiles.converting import convert_case
from schemas.casefiles.reading import read_case, write_case
from schemas.errors import InputError
from schemas.protos import messages as proto
from schemas.wire.payloads import kept
from schemas.wire.value_fields import BULK
from tests.schemas.casefiles.building import add_output, make_node

SECONDS = 5.0  # for one file of a few hundred bytes, on a loaded machine
BYTES = 256 << 20  # what reading all of them together may add to the peak memory


def seeds(folder: Path) -> dict[str, list[bytes]]:
    """Small files with every kind of field in them, by suffix."""
    node = add_output(make_node(9, dtype="int32"), 3)
    node.input.add(id="h", shape={"dims": [3]}, layout=5, dtype=2, value_h=["3f800000", "0", "7f"])
    node.input.add(id="l", shape={"dims": [2, 1], "dim_stride": [3, 1]}, layout=2, dtype=8, value_l=[1, -1, 5, 7])
    node.input.add(
        id="p", shape={"dims": [2]}, layout=5, dtype=1, path="x.bin", random_data={"seed": 2, "mu_double": 3}
    )
    node.input.add(id="c", shape={"dims": [2]}, layout=5, dtype=19, value_f=[1, 2, 3, 4])
    node.input.add(id="i", shape={"dims": [2]}, layout=5, dtype=5, value_i=[1, 2, 3, 4], value_ui=[3])
    node.test_param.error_func.append(8)
    node.test_param.error_threshold.append(0)
    node.psamask_forward_param.h_mask = 7
    plain = node.SerializePartialToString()
    proto.set_meta(node, proto.CaseMeta(suite="s", expect=["BAD_PARAM"]))
    write_case(folder / "ours.pb", make_node(70), [np.arange(70, dtype=np.float32)], [])
    tensor = make_node(20, dtype="int32").input[0].SerializeToString() + b"".join(
        b"\x40" + bytes([i]) for i in range(20)
    )
    unpacked = b"\x2a\x01a\x32" + bytes([len(tensor)]) + tensor + b"\x33\x08\x01\x34"
    long_text = proto.print_text(make_node(3, value_f=[1, 2, 3])) + 'output {\n  id: "y"\n' + "  value_f: 1.5\n" * 80
    texts = [proto.print_text(node), long_text + "  shape {}\n  layout: LAYOUT_NC\n  dtype: DTYPE_HALF\n}\n"]
    return {
        ".pb": [plain, node.SerializePartialToString(), (folder / "ours.pb").read_bytes(), unpacked],
        ".prototxt": [text.encode() for text in texts],
    }


_EDIT = st.one_of(
    st.tuples(st.just("set"), st.integers(0, 1000), st.integers(0, 255)),
    st.tuples(st.just("cut"), st.integers(0, 1000), st.integers(1, 40)),
    st.tuples(st.just("copy"), st.integers(0, 1000), st.integers(1, 40)),
    st.tuples(st.just("insert"), st.integers(0, 1000), st.binary(min_size=1, max_size=12)),
    st.tuples(st.just("huge"), st.integers(0, 1000), st.sampled_from([2**31 - 1, 2**32, 2**40, 2**63 - 1, 2**64 - 1])),
    st.tuples(st.just("end"), st.integers(0, 1000), st.just(0)),
)


def mutated(content: bytes, edits: list[Any]) -> bytes:
    data = bytearray(content)
    for kind, at, what in edits:
        at = at * (len(data) + 1) // 1001
        if kind == "set" and at < len(data):
            data[at] = what
        elif kind == "cut":
            del data[at : at + what]
        elif kind == "copy":
            data[at:at] = data[at : at + what]
        elif kind == "insert":
            data[at:at] = what
        elif kind == "huge":
            data[at : at + 1] = varint(what)
        elif kind == "end":
            del data[at:]
    return bytes(data)


def varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value % 128 + 128]) + varint(value // 128)


def look(path: Path, content: bytes) -> None:
    """Read everything there is, and convert it; hold it against what protobuf reads."""
    path.write_bytes(content)
    begin = time.monotonic()
    for enum_numbering in ("current", "old"):
        try:
            with read_case(path, enum_numbering) as case:
                if enum_numbering == "current":
                    confirm(case, content, path.suffix)
                assert case.numbering.word in ("current", "old", "ambiguous")
                for record in (*case.inputs, *case.outputs):
                    values(record)
                convert_case(case, path.with_name("again.pb"), warn=lambda message: None)
                convert_case(case, path.with_name("again.prototxt"), inline_limit=0, warn=lambda message: None)
        except InputError:
            pass
    assert time.monotonic() - begin < SECONDS


def values(record: Any) -> None:
    """All ways to the values agree."""
    try:
        array = record.array() if record.has_values else None
    except InputError:
        array = None
    try:
        stored = record.stored() if record.has_values else None
        pieces = list(record.blocks()) if record.has_values else None
    except InputError:
        assert array is None
        return
    if stored is not None and pieces is not None:
        assert b"".join(piece.tobytes() for piece in pieces) == stored.tobytes()
        assert array is None or array.size <= record.elements * 2


def confirm(case: Any, content: bytes, suffix: str) -> None:
    """Every entry of every field is what protobuf reads there."""
    try:
        if suffix == ".pb":
            whole = proto.Node.FromString(content)
        else:
            whole = proto.parse_text(content.decode("utf-8-sig"), proto.Node(), "f")
    except DecodeError:  # of values, which we look at when they are asked for
        bulks = [bulk for record in (*case.inputs, *case.outputs) for bulk in record.bulks.values()]
        with pytest.raises(InputError):
            list(map(kept, bulks))
        return
    for record, tensor in zip((*case.inputs, *case.outputs), (*whole.input, *whole.output), strict=True):
        assert (record.id, record.shape) == (tensor.id, tuple(tensor.shape.dims))
        for name in BULK.values():
            theirs = list(getattr(tensor, name))
            if name == "value_h":
                payload: Any = kept(record.bulks[name]) if name in record.bulks else None
                assert (list(payload.strings()) if payload else []) == theirs
            else:
                payload = kept(record.bulks[name]) if name in record.bulks else None
                ours = payload.entries if payload else np.empty(0)
                assert np.array_equal(ours, np.array(theirs, ours.dtype), equal_nan=name == "value_f")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("fuzz")
    np.array([1, 2], np.float16).tofile(made / "x.bin")
    return made


@pytest.fixture
def bounded_memory() -> Iterator[None]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10 < BYTES


def _fuzz(folder: Path, suffix: str, examples: int) -> None:
    files = seeds(folder)[suffix]

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(0, len(files) - 1), st.lists(_EDIT, min_size=1, max_size=4))
    def run(index: int, edits: list[Any]) -> None:
        look(folder / f"mutated{suffix}", mutated(files[index], edits))

    run()


@pytest.mark.parametrize(("suffix", "examples"), [(".pb", 400), (".prototxt", 100)])
def test_a_few_mutated_files(folder: Path, bounded_memory: None, suffix: str, examples: int) -> None:
    _fuzz(folder, suffix, examples)


@pytest.mark.slow
@pytest.mark.parametrize(("suffix", "examples"), [(".pb", 16_000), (".prototxt", 4_000)])
def test_twenty_thousand_mutated_files(folder: Path, bounded_memory: None, suffix: str, examples: int) -> None:
    begin = time.monotonic()
    _fuzz(folder, suffix, examples)
    assert time.monotonic() - begin < 1200 * max(1, os.getloadavg()[0] / (os.cpu_count() or 1))


def test_the_fuzz_sees_a_wrong_value(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from schemas.wire import value_fields as module

    convert = module._number_of
    monkeypatch.setattr(module, "_number_of", lambda *rest: convert(*rest) + 1)
    path = folder / "right.pb"
    path.write_bytes(make_node(2, dtype="int8", value_i=[1, 2]).SerializeToString())
    with read_case(path) as case:
        assert case.inputs[0].array().tolist() == [2, 3]  # the fault is there ...
    monkeypatch.setattr(module, "decode_varints", lambda raw: iter([np.array([7, 7], np.uint64)]))
    with read_case(path) as case, pytest.raises(AssertionError):
        confirm(case, path.read_bytes(), ".pb")  # ... and one in the entries is seen
