"""Long runs of values in texts: read as protobuf reads them, refused where it refuses, placed where it places."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.errors import InputError
from schemas.protos import messages as proto
from schemas.prototext import parser as runs
from schemas.prototext.parser import parse_case_text

HEAD = 'op_name: "abs"\ninput {\n  id: "x"\n  shape { dims: 100 }\n  layout: LAYOUT_ARRAY\n  dtype: DTYPE_FLOAT\n'


def as_protobuf(text: str) -> bytes:
    """The bytes of what protobuf's own parser makes of a text."""
    return proto.serialize(proto.parse_text(text, proto.Node(), "f"))


def tensor_text(*fields: str) -> str:
    """A case whose only input holds those lines."""
    return HEAD + "".join(fields) + "}\n"


def run(field: str, values: Any, indent: str = "  ", colon: str = ": ", end: str = "\n") -> str:
    return "".join(f"{indent}{field}{colon}{value}{end}" for value in values)


NUMBERS: dict[str, list[str]] = {
    "value_f": ["0", "-0", "1.5", "-2.25e-3", "3.4028235e+38", "3.4028236e38", "1e-45", "inf", "-inf", "nan", "1e400"],
    "value_i": ["0", "-0", "7", "-2147483648", "2147483647"],
    "value_l": ["-9223372036854775808", "9223372036854775807", "12"],
    "value_ui": ["4294967295", "0", "3"],
    "value_ul": ["9223372036854775807", "0", "18446744073709551615"],
    "value_h": ['"0"', '"3f800000"', '"0xFF"', '"ABCDEF"'],
}


@pytest.mark.parametrize("field", NUMBERS)
@pytest.mark.parametrize(
    "style", [("  ", ": ", "\n"), ("\t", ":", "\n"), ("", ":  ", "\r\n")], ids=["usual", "tight", "crlf"]
)
def test_runs_of_lines_read_as_protobuf_reads_them(field: str, style: tuple[str, str, str]) -> None:
    text = tensor_text(
        run(field, NUMBERS[field] * 100, *style), f"{field}: [{NUMBERS[field][0]}, {NUMBERS[field][1]}]\n"
    )
    assert proto.serialize(parse_case_text(text, "f")) == as_protobuf(text)


@pytest.mark.parametrize("field", NUMBERS)
@pytest.mark.parametrize("comma", [", ", ",\n    ", " ,\r\n"])
def test_long_lists_read_as_protobuf_reads_them(field: str, comma: str) -> None:
    text = tensor_text(f"  {field}: [ {comma.join(NUMBERS[field] * 200)} ]\n", run(field, NUMBERS[field] * 50))
    assert proto.serialize(parse_case_text(text, "f")) == as_protobuf(text)


def test_a_run_is_not_given_to_protobuf(monkeypatch: pytest.MonkeyPatch) -> None:
    text = tensor_text(run("value_f", range(5000)))
    seen: list[int] = []
    parse = proto.parse_text

    def noting(text: str, *rest: Any) -> Any:
        seen.append(len(text))
        return parse(text, *rest)

    monkeypatch.setattr(proto, "parse_text", noting)
    assert list(parse_case_text(text, "f").input[0].value_f) == list(range(5000))
    assert seen == [pytest.approx(len(HEAD), abs=40)]


def test_many_tensors_many_runs_in_any_order() -> None:
    rng = np.random.default_rng(0)
    parts = []
    for index in range(12):
        role = ("output", "input")[int(rng.integers(2))]
        body = [
            run(("value_f", "value_i")[int(rng.integers(2))], rng.integers(0, 99, rng.integers(1, 300)))
            for _ in range(5)
        ]
        parts.append(
            f'{role} {{\n id: "t{index}"\n shape {{}} layout: LAYOUT_NC\n{"".join(body)} dtype: DTYPE_INT8 }}\n'
        )
    text = 'op_name: "abs"\n' + "".join(parts)
    assert len(runs._cut(text)[1]) > 12
    assert proto.serialize(parse_case_text(text, "f")) == as_protobuf(text)


@pytest.mark.parametrize(
    "text",
    [
        tensor_text(run("value_f", range(500))).replace("value_f: 77\n", "value_f: 77 # why\n"),
        tensor_text(run("value_f", range(500))).replace("value_f: 77\n", "value_f: 77;\n"),
        tensor_text(run("value_f", range(500))).replace("value_f: 77\n", "value_f: 1.5f\n"),
        tensor_text(run("value_f", range(500))).replace("value_f: 77\n", "value_f: 1E5\n value_f: Infinity\n"),
        tensor_text(run("value_i", range(500))).replace("value_i: 77\n", "value_i: 0x10\n  value_i: 017\n"),
        tensor_text(
            "  value_f: 7000001\n", run("value_f", range(500)), "  value_f: 7000001\n"
        ),  # as what stands for it
        tensor_text('  path: "', "a" * 3, '"\n', run("value_h", ['"7"'] * 99), '  value_h: "run 0"\n'),
        "# value_f: 1\n" * 200 + tensor_text(run("value_f", range(100))),
        tensor_text(run("value_f", range(500))).rstrip("\n"),
        "\n" * 50 + tensor_text(run("value_f", range(500))),
        'op_name: "abs"\nruntime_env { dl_framework: "value_f: 1" }\n',
    ],
)
def test_what_is_unusual_is_left_to_protobuf(text: str) -> None:
    assert proto.serialize(parse_case_text(text, "f")) == as_protobuf(text)


WRONG = {
    "a number of another kind": tensor_text(run("value_i", [*range(500), "1.5", *range(500)])),
    "one too large": tensor_text(run("value_i", [*range(500), 2**31, *range(500)])),
    "one too small": tensor_text(run("value_ui", [*range(500), -1, *range(500)])),
    "octal": tensor_text(run("value_f", [*range(500), "09", *range(500)])),
    "a word": tensor_text(run("value_f", [*range(500), "one"])),
    "no number": tensor_text(run("value_f", [*range(500), ""])),
    "a run where no tensor is": 'op_name: "abs"\n' + run("value_f", range(500)),
    "a run in a string": 'op_name: "\n' + run("value_f", range(500)) + '"\n',
    "the end missing": HEAD + run("value_f", range(500)),
    "a mistake behind the run": tensor_text(run("value_f", range(500)), "  nope: 1\n"),
    "a mistake two runs further": tensor_text(run("value_f", range(500)), run("value_i", range(99)), "  \tdtype: X\n"),
    "a mistake before the run": tensor_text("  nope: 1\n", run("value_f", range(500))),
    "an open list": tensor_text("  value_f: [" + "1, " * 500, "}\n"),
    "a list with a gap": tensor_text("  value_f: [" + "1, " * 500 + ", 1]\n"),
    "two lists in one": tensor_text("  value_f: [[" + "1, " * 500 + "1]]\n"),
    "a run in a list": tensor_text("  value_f: [\n", run("value_f", range(500)), "]\n"),
    "one value in a message": tensor_text("  shape {\n", run("value_f", range(500)), "}\n"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_protobuf_refuses_is_refused_at_the_same_place_in_the_same_words(name: str) -> None:
    with pytest.raises(InputError) as theirs:
        proto.parse_text(WRONG[name], proto.Node(), "f")
    with pytest.raises(InputError) as ours:
        parse_case_text(WRONG[name], "f")
    assert str(ours.value) == str(theirs.value)
    assert re.match(r"f:\d+:\d+: ", str(ours.value))


_LINES = st.sampled_from([
    *(f"  {field}: {number}\n" for field, numbers in NUMBERS.items() for number in numbers[:3]),
    "  value_f: 1\n" * 70, "  value_i: 5\n" * 70, '  value_h: "7"\n' * 65, "  value_f: [" + "3, " * 70 + "3]\n", "}\n",
    "input {\n", "output {\n", "# value_f: 1\n", "  value_f:\n", "  value_f: 1,\n", '  id: "x"\n', "shape {\n", "\r\n",
    'id: "value_f: 1', "]\n", "\n", "value_f: [1,\n",
])  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(_LINES, max_size=8))
def test_any_mixture_of_lines_is_read_or_refused_as_by_protobuf(lines: list[str]) -> None:
    text = 'op_name: "abs"\ninput {\n' + "".join(lines) + "}\n"
    try:
        expected: Any = as_protobuf(text)
    except InputError as error:
        expected = str(error)
    try:
        found: Any = proto.serialize(parse_case_text(text, "f"))
    except InputError as error:
        found = str(error)
    assert found == expected


def test_random_bit_patterns_come_back_from_text() -> None:
    values = np.random.default_rng(1).integers(0, 2**32, 100_000, np.uint32).view(np.float32)
    text = tensor_text(run("value_f", values.astype("U").tolist()))
    read = np.array(parse_case_text(text, "f").input[0].value_f, np.float32)
    numbers = ~np.isnan(values)
    assert np.array_equal(read.view(np.uint32)[numbers], values.view(np.uint32)[numbers])
    assert np.isnan(read[~numbers]).all()
