"""What arrives from a worker is read without waiting, and taken for a message only where it is one."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest

from mluops_cli.execution.workers.channel import BrokenChannelError, FrameReader, check_result


def framed(content: bytes) -> bytes:
    return struct.pack("!i", len(content)) + content


def test_a_message_in_pieces() -> None:
    reader = FrameReader()
    for byte in framed(b'{"ready": true}') + framed(b'{"status": "pass"}'):
        assert reader.message() is None
        reader.feed(bytes([byte]))
        if byte == ord("}"):
            break
    assert reader.message() == {"ready": True}
    assert not reader
    reader.feed(framed(b"{}") + b"\0")
    assert reader.message() == {}
    assert reader


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"\x7f\xff\xff\xff", "a message of 2147483647 bytes"),
        (b"\xff\xff\xff\xff", "a message of -1 bytes"),
        (framed(b"hello"), "a message that is not JSON"),
        (framed(b"\xff\xfe"), "a message that is not JSON"),
        (framed(b"[1]"), "a message that is a list"),
    ],
)
def test_b1_what_is_no_message(data: bytes, what: str) -> None:
    reader = FrameReader()
    reader.feed(data)
    with pytest.raises(BrokenChannelError, match=what):
        reader.message()


@pytest.mark.parametrize(
    "result",
    [
        {"ready": True},
        {"status": "well done"},
        {"status": "pass", "case": "another/one"},
        {"status": "pass", "unheard of": 1},
        {"status": "pass", "outputs": [1]},
        {"status": "pass", "latency_us": "fast"},
        {"status": "pass", "retire": 1},
    ],
)
def test_b2_what_is_no_result(result: dict[str, Any]) -> None:
    with pytest.raises(BrokenChannelError):
        check_result(result)


def test_results_of_all_kinds() -> None:
    check_result({"status": "crash", "reason": "gone", "retire": True, "again": False, "traceback": ""})
    full = {"status": "pass", "latency_us": 1, "outputs": {"y": {}}, "perf": None, "blame": None, "repeats": 3}
    check_result(json.loads(json.dumps(full | {"latency_interval_us": [0.5, 1.5], "io_efficiency": 0.25})))
