"""What arrives is read without waiting, and taken for a message only where it is one."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from contextlib import suppress

import numpy as np
import pytest

from mluops_cli.execution.kernel_process.frames import BrokenChannelError, FrameReader
from mluops_cli.execution.kernel_process.reply import Reply, read_reply

TOKEN = "0123456789abcdef"
REPLY = {
    "token": TOKEN, "kind": "done", "status": "SUCCESS", "latency_us": 1.5, "workspace_bytes": None,
    "scalars": {"num_act_out": 3}, "host_us": 2.5, "spoilt": False,
}  # fmt: skip


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


def mutated(count: int, seed: int) -> Iterator[tuple[bytes, int]]:
    """Frames that are changed, cut or of a huge length, each with the size of the pieces that it comes in."""
    rng = np.random.default_rng(seed)
    whole = framed(json.dumps(REPLY).encode())
    values = [None, [], {}, "x", -1, 2**70, 1e308, True, [REPLY], {"a": 1}]
    for number in range(count):
        data = bytearray(whole)
        how = number % 5
        if how == 0:
            for at in rng.integers(0, len(data), rng.integers(1, 9)):
                data[at] = rng.integers(256)
        elif how == 1:
            del data[rng.integers(len(data)) :]
        elif how == 2:
            data[:4] = struct.pack("!i", int(rng.integers(-(2**31), 2**31)))
        elif how == 3:
            key = str(rng.choice([*REPLY, "unheard of"]))
            data = bytearray(framed(json.dumps(REPLY | {key: values[rng.integers(len(values))]}).encode()))
        else:
            data = bytearray(rng.bytes(int(rng.integers(1, 300))))
        yield bytes(data), int(rng.integers(1, len(data) + 2))


@pytest.mark.parametrize(("count", "seed"), [(500, 1), pytest.param(10_000, 2, marks=pytest.mark.slow)])
def test_b1_b2_of_any_bytes_there_is_a_reply_nothing_or_a_word(count: int, seed: int) -> None:
    taken = 0
    for data, step in mutated(count, seed):
        reader = FrameReader()
        with suppress(BrokenChannelError):
            for at in range(0, len(data), step):
                reader.feed(data[at : at + step])
                if (message := reader.message()) is not None:
                    reply = read_reply(message, TOKEN)
                    assert isinstance(reply, Reply)
                    assert reply.token == TOKEN
                    taken += 1
    assert 0 < taken < count / 4  # a change may leave a reply that is one


@pytest.mark.parametrize(
    "change",
    [
        {"token": "another"}, {"kind": "pass"}, {"status": 3}, {"latency_us": "fast"}, {"scalars": {"n": 1.5}},
        {"scalars": [1]}, {"host_us": -1.0}, {"host_us": float("nan")}, {"host_us": float("inf")}, {"spoilt": 1},
        {"baseline": "?"}, {"workspace_bytes": 0.5},
    ],
)  # fmt: skip
def test_b2_what_is_no_reply(change: dict[str, object]) -> None:
    assert read_reply(dict(REPLY), TOKEN).scalars == {"num_act_out": 3}
    with pytest.raises(BrokenChannelError):
        read_reply({**REPLY, **change}, TOKEN)
