"""YAML files: what words and numbers mean, what is refused, and where."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from generators.specs.mistakes import shown
from generators.specs.yaml_loader import Document, load_yaml
from schemas.errors import InputError
from tests.conftest import PROJECT


def load(folder: Path, text: str | bytes) -> Document:
    path = folder / "a.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_yaml(path)


def refusal(folder: Path, text: str | bytes) -> list[str]:
    """The lines of the message, without the folder."""
    with pytest.raises(InputError) as caught:
        load(folder, text)
    return str(caught.value).replace(f"{folder}{os.sep}", "").splitlines()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001), ("1.0e-3", 0.001), ("1E5", 1e5), (".5", 0.5), ("5.", 5.0), ("-0.0", -0.0), ("+.inf", math.inf),
        ("-.INF", -math.inf), ("010", 10), ("0o10", 8), ("0x1F", 31), ("-7", -7), ("+7", 7), ("no", "no"),
        ("yes", "yes"),
        ("on", "on"), ("Off", "Off"), ("y", "y"), ("true", True), ("False", False), ("null", None), ("~", None),
        ("", None), ("1_000", "1_000"), ("12:30", "12:30"),
        ("0b1", "0b1"), ("2024-01-01", "2024-01-01"), ("1e", "1e"),
        (".", "."),
        ("-", "-"), ("NaN", "NaN"), ("inf", "inf"), ("'1'", "1"), ('"no"', "no"), ("!!str 1", "1"), ("!!float 1", 1.0),
        ("=", "="), ("nope", "nope"), ("8" * 38, int("8" * 38)),
    ],
)  # fmt: skip
def test_plain_scalars_follow_yaml_1_2(tmp_path: Path, text: str, value: Any) -> None:
    if text == "-":
        text, value = "'-'", "-"
    found = load(tmp_path, f"key: {text}\n").data["key"]
    assert found == value
    assert type(found) is type(value)
    assert not isinstance(value, float) or math.copysign(1, found) == math.copysign(1, value)


def test_nan_is_a_number(tmp_path: Path) -> None:
    assert math.isnan(load(tmp_path, "[.nan, .NaN]").data[1])


def test_keys_are_words_and_null_is_empty(tmp_path: Path) -> None:
    assert load(tmp_path, "{1: a, no: b, true: c, ~: d}").data == {"1": "a", "no": "b", "true": "c", "~": "d"}
    assert load(tmp_path, "").data is None
    assert load(tmp_path, "# nothing\n").data is None


def test_anchors_and_merge_keys(tmp_path: Path) -> None:
    data = load(
        tmp_path, "a: &a {x: 1, y: 2}\nb: &b {y: 3, z: 3}\nc: {<<: *a, y: 9}\nd: {<<: [*a, *b]}\ne: [*a]\n"
    ).data
    assert data["c"] == {"x": 1, "y": 9}
    assert data["d"] == {"x": 1, "y": 2, "z": 3}
    assert data["e"] == [{"x": 1, "y": 2}]


def test_places_are_those_of_the_text(tmp_path: Path) -> None:
    document = load(tmp_path, "base: &b\n  p: 1\nlist:\n  - {a: 7}\n  - <<: *b\n    q: [5, 66]\n")
    places = {
        ("list", 0, "a"): (4, 9), ("list", 1, "q", 1): (6, 12), ("list", 1, "p"): (2, 6), ("list", 9, "p"): (4, 3),
    }  # fmt: skip
    for path, (line, column) in places.items():
        place = document.place(path)
        assert (place.line, place.column) == (line, column), path
    assert document.place(("list", 0, "a"), at_key=True).column == 6
    assert str(document.place(("list", 1, "q", 1))).endswith("a.yaml:6:12: list[1].q[1]")
    assert document.data["list"][1].line == 5


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\nb: {c: 1, d: 2, c: 3}\n", ["a.yaml:2:17: duplicate key 'c', first in line 2"]),
        ("a: 1\na: 2\nb: 1\nb: 2", ["a.yaml:2:1: duplicate key 'a', first in line 1",
                                   "a.yaml:4:1: duplicate key 'b', first in line 3"]),
        ("a:\n\tb: 1\n", ["a.yaml:2:1: found a tab, expected spaces", "     b: 1", "    ^"]),
        ("a:\n  b: 1\n\tc: 2\n", ["a.yaml:3:1: found a tab, expected spaces", "     c: 2", "    ^"]),
        ("a:\n  b: 1\n c: 2\n", [
            "a.yaml:3:2: this line is indented unlike the keys of the mapping that starts in line 1", "     c: 2",
            "     ^"]),
        ("a:\n- b: 1\n  c: 2\n   d: 3\n", [
            "a.yaml:4:5: a key can't stand here: is it indented too far, or is a text with a colon not in quotes?",
            "       d: 3", "        ^"]),
        ("a:\n  - b: 1\n - c: 1\n", [
            "a.yaml:3:2: this line is indented unlike the keys of the mapping that starts in line 1", "     - c: 1",
            "     ^"]),
        ("a: - b\n", ["a.yaml:1:4: a list can't start here: put it into the next line", "    a: - b", "       ^"]),
        ("a:\n  b\nc: 1\nd\n", ["a.yaml:5:1: a key without a colon: expected `key: value`"]),
        ("a: [1, 2\nb: 3\n", ["a.yaml:2:2: the list that starts in line 1 isn't closed: expected , or ]", "    b: 3",
                            "     ^"]),
        ("a: {b: 1\nc: 3\n", ["a.yaml:2:2: the mapping that starts in line 1 isn't closed: expected , or }",
                            "    c: 3", "     ^"]),
        ("a: 'x\n", ["a.yaml:2:1: the quote that opens in line 1 isn't closed"]),
        ("a: @x\n", ["a.yaml:1:4: a value can't start with this character: put it in quotes", "    a: @x", "       ^"]),
        ("a: *x\n", ["a.yaml:1:4: alias *x has no anchor before it"]),
        ("a: &x [*x]\n", ["a.yaml:1:8: alias *x has no anchor before it"]),
        ("{[1]: 2}", ["a.yaml:1:2: found a key that is no word"]),
        ("a: 1\n---\nb: 2\n", ["a.yaml:2:1: found a second document, expected one"]),
        ("a: !!int x\n", ["a.yaml:1:4: 'x' with tag tag:yaml.org,2002:int, expected a plain value"]),
        ("a: !python/object x\n", ["a.yaml:1:4: 'x' with tag !python/object, expected a plain value"]),
        ("a: {<<: 3}", ["a.yaml:1:5: << merges mappings, found something else"]),
        (b"a: 1\nb: \xe9\n", ["a.yaml:2:4: byte 0xe9 is not UTF-8"]),
    ],
)  # fmt: skip
def test_refusals_tell_the_place(tmp_path: Path, text: str | bytes, expected: list[str]) -> None:
    assert refusal(tmp_path, text) == expected


@pytest.mark.parametrize("text", ["a: [1, 2\nb: 3\n", "a: 'x\n", "a: b: c\n", "[" * 100_000, "a: \x07\n"])
def test_broken_yaml_is_one_error_with_its_line(tmp_path: Path, text: str) -> None:
    lines = refusal(tmp_path, text)
    assert len(lines) in (1, 3)
    assert lines[0].startswith("a.yaml")
    assert len(lines) == 1 or lines[2].lstrip() == "^"
    assert max(map(len, lines)) < 200


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.yaml: can't read it: No such file"):
        load_yaml(tmp_path / "none.yaml")
    with pytest.raises(InputError, match="it is a folder"):
        load_yaml(tmp_path)


def test_many_errors_are_cut_short(tmp_path: Path) -> None:
    lines = refusal(tmp_path, "a: 1\n" * 100)
    assert len(lines) == 21
    assert lines[-1] == "... and 79 more"


def test_a_byte_order_mark_and_crlf_are_read(tmp_path: Path) -> None:
    assert load(tmp_path, b"\xef\xbb\xbfa: 1\r\nb: 2\r\n").data == {"a": 1, "b": 2}


def test_utf_8_whatever_the_locale_says(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes("a: größe 面罩\n".encode())
    code = (
        "from generators.specs.yaml_loader import load_yaml; from pathlib import Path\n"
        f"print(ascii(load_yaml(Path({str(path)!r})).data))"
    )
    env = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONPATH": str(PROJECT)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ascii({"a": "größe 面罩"})


@pytest.mark.parametrize("text", ["1e400", "-1e400"])
def test_a_float_too_large_is_no_infinity(tmp_path: Path, text: str) -> None:
    assert refusal(tmp_path, f"a:\n  b: [1, {text}]") == [
        f"a.yaml:2:10: {text} is too large a number; infinity is written .inf"
    ]


def test_integers_end_at_128_bits(tmp_path: Path) -> None:
    assert load(tmp_path, f"{2**128 - 1}").data == 2**128 - 1
    (line,) = refusal(tmp_path, f"a: {10**3900}")
    assert line == f"a.yaml:1:4: {10**39} is too large a number; infinity is written .inf"


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 10)
)


def test_f12_nested_aliases_are_bounded(tmp_path: Path) -> None:
    """Nine levels of nine aliases each would repeat 9^10 values."""
    started = time.perf_counter()
    assert refusal(tmp_path, BOMB) == ["a.yaml:7:10: aliases repeat more than 1000000 values"]
    assert time.perf_counter() - started < 2
    merged = "".join(
        f"m{level}: &m{level} {{b: *m{level - 1}, c: *m{level - 1}, <<: *m{level - 1}}}\n" for level in range(1, 30)
    )
    (line,) = refusal(tmp_path, f"m0: &m0 {{a: 1}}\n{merged}")
    assert line.endswith("aliases repeat more than 1000000 values")


def test_b7_what_was_found_is_shown_in_bounded_time_and_length(tmp_path: Path) -> None:
    """As many aliases as are allowed, where a word is expected."""
    text = "\n".join(BOMB.splitlines()[:5])
    path = tmp_path / "a.yaml"
    path.write_text(f"{text}\n")
    value = load_yaml(path).data["a4"]
    started = time.perf_counter()
    assert len(shown(value)) <= 60
    assert len(shown({"a": value})) <= 60
    assert time.perf_counter() - started < 0.1


def test_f12_a_pipe_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.yaml")
    with pytest.raises(InputError, match=r"a\.yaml: can't read it: it is no regular file"):
        load_yaml(tmp_path / "a.yaml")
