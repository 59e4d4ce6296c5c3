"""The schema: its descriptor is fresh, says what the teams' table says, and works at run time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.protobuf import descriptor_pb2

from schemas.errors import InputError
from schemas.protos import messages as proto
from tools.build_descriptor import compile_descriptor, compiler

_LABELS = {1: "optional", 2: "required", 3: "repeated"}


def _shipped() -> Any:
    return descriptor_pb2.FileDescriptorSet.FromString(proto.DESCRIPTOR.read_bytes())


def _rows(message: Any) -> dict[str, dict[str, Any]]:
    """The fields of a DescriptorProto in the words of the teams' table."""
    types = {number: name.removeprefix("TYPE_").lower() for name, number in message.field[0].Type.items()}
    rows: dict[str, dict[str, Any]] = {}
    for field in message.field:
        row: dict[str, Any] = {"number": field.number, "label": _LABELS[field.label]}
        row["type"] = field.type_name.removeprefix(".mluoptest.") or types[field.type]
        if field.HasField("default_value"):
            row["default"] = field.default_value
        if field.options.HasField("packed"):
            row["packed"] = field.options.packed
        rows[field.name] = row
    return rows


def _same_default(told: Any, ours: str, kind: str) -> bool:
    if kind in ("float", "double"):
        return float(told) == float(ours)
    return str(told).lower() == ours.lower() if kind == "bool" else str(told) == ours


def test_the_schema_says_what_the_table_says(shared: Path) -> None:
    table = yaml.safe_load((shared / "case_format" / "mluoptest_fields.yaml").read_text())
    file = _shipped().file[0]
    assert (file.package, file.syntax or "proto2") == (table["package"], "proto2")
    enums = {enum.name: {value.name: value.number for value in enum.value} for enum in file.enum_type}
    assert enums == table["enums"]
    assert [list(enums[name]) for name in enums] == [
        list(table["enums"][name]) for name in enums
    ]  # the first: a default
    assert len(enums) == 37
    messages = {message.name: message for message in file.message_type}
    assert messages.keys() == table["messages"].keys()
    assert len(messages) == 77
    for name, fields in table["messages"].items():
        rows = _rows(messages[name])
        assert rows.keys() == fields.keys(), name
        for field, told in fields.items():
            ours = dict(rows[field])
            assert ("default" in told) == ("default" in ours), (name, field)
            if "default" in told:
                assert _same_default(told.pop("default"), ours.pop("default"), told["type"]), (name, field)
            assert ours == told, (name, field)
    assert [(span.start, span.end) for span in messages["Node"].extension_range] == [(3000, 4001)]


@pytest.mark.skipif(compiler() is None, reason="needs protoc (the dev extra installs it)")
def test_the_descriptor_is_fresh(tmp_path: Path) -> None:
    compile_descriptor(tmp_path / "new.desc")
    fresh = descriptor_pb2.FileDescriptorSet.FromString((tmp_path / "new.desc").read_bytes())
    assert fresh == _shipped(), "run: python -m tools.build_descriptor"


def test_importing_costs_no_protobuf() -> None:
    code = "import sys, schemas.protos.messages, schemas.criteria; sys.exit('google.protobuf' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_defaults_that_matter() -> None:
    node = proto.Node()
    assert (node.op_name, node.device, node.input.add().dtype) == ("unknown", 1, 2)
    assert proto.message_class("mluoptest.RandomData")().upper_bound == 1
    assert proto.message_class("mluoptest.LogspaceParam")().steps == 1024
    with pytest.raises(AttributeError):
        getattr(proto, "Nodes")  # noqa: B009  mypy knows that there is none


def test_our_extension_goes_with_the_node_and_comes_off() -> None:
    node = proto.Node(op_name="abs")
    assert proto.get_meta(node) is None
    plain = node.SerializeToString()
    meta = proto.CaseMeta(suite="network", expect=["BAD_PARAM"], seed=2**64 - 1)
    meta.criteria.add(output="y", name="diff3_1", threshold=1e-3, source="psamask.yaml:4")
    proto.set_meta(node, meta)
    assert proto.get_meta(proto.Node.FromString(node.SerializeToString())) == meta
    # field 3000 of Node, wire type 2: what others skip
    assert node.SerializeToString().removeprefix(plain)[:3] == bytes([0xC2, 0xBB, 0x01])
    proto.set_meta(node, None)
    assert node.SerializeToString() == plain


@pytest.mark.parametrize(
    ("text", "line", "column", "word"),
    [
        ('op_name: "a"\ninput { id: 3 }', 2, 13, "string"),
        ('op_name: "a"\n\n  nope: 1', 3, 3, "nope"),
        ('op_name: "a"\ninput { dtype: DTYPE_X }', 2, 16, "DTYPE_X"),
        ('op_name: "a"\ninput { dtype: 99 }', 2, 16, "99"),
        ('op_name: "a"\ninput { value_i: 2147483648 }', 2, 18, "2147483648"),
    ],
)
def test_a_wrong_text_is_told_with_its_place(text: str, line: int, column: int, word: str) -> None:
    with pytest.raises(InputError, match=f"^f.prototxt:{line}:{column}: ") as caught:
        proto.parse_text(text, proto.Node(), "f.prototxt")
    assert word in caught.value.message
    assert not caught.value.message.startswith(f"{line}:")


def test_a_long_line_is_not_quoted_whole() -> None:
    text = 'op_name: "a" device: nope input { id: "' + "x" * 100_000 + '" }'
    with pytest.raises(InputError, match=r"^f.prototxt:1:") as caught:
        proto.parse_text(text, proto.Node(), "f.prototxt")
    assert len(caught.value.message) < 1000


def test_threads_that_begin_at_once_have_one_pool() -> None:
    """What comes of two pools doesn't fit together: setting the metadata of a message raised KeyError."""
    code = (
        "import time\n"
        "from concurrent.futures import ThreadPoolExecutor; from threading import Barrier\n"
        "from schemas.protos import messages\n"
        "find = messages._extension\n"
        "messages._extension = lambda *of: (time.sleep(0.05), find(*of))[1]  # what makes a pool takes its time\n"
        "begin = Barrier(8)\n"
        "def made(_): begin.wait(); node = messages.Node(); messages.set_meta(node, messages.CaseMeta()); return node\n"
        "with ThreadPoolExecutor(8) as threads: nodes = list(threads.map(made, range(8)))\n"
        "assert len({id(type(node)) for node in nodes}) == 1\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
