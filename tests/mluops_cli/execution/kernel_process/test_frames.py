"""What arrives is read without waiting, and taken for a message only where it is one."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import pytest

from mluops_cli.execution.kernel_process.frames import BrokenChannelError, FrameReader
from mluops_cli.execution.kernel_process.reply import Reply, read_reply
from tests.mluops_cli.execution.kernel_process.mutated_frames import mutated, with_length

TOKEN = "0123456789abcdef"
REPLY: dict[str, Any] = {
    "token": TOKEN, "kind": "done", "status": "SUCCESS", "latency_us": 1.5, "workspace_bytes": None,
    "scalars": {"num_act_out": 3}, "host_us": 2.5, "spoilt": False,
}  # fmt: skip


def test_a_message_in_pieces() -> None:
    reader = FrameReader()
    for byte in with_length(b'{"ready": true}') + with_length(b'{"status": "pass"}'):
        assert reader.message() is None
        reader.feed(bytes([byte]))
        if byte == ord("}"):
            break
    assert reader.message() == {"ready": True}
    assert not reader
    reader.feed(with_length(b"{}") + b"\0")
    assert reader.message() == {}
    assert reader


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"\x7f\xff\xff\xff", "a message of 2147483647 bytes"),
        (b"\xff\xff\xff\xff", "a message of -1 bytes"),
        (with_length(b"hello"), "a message that is not JSON"),
        (with_length(b"\xff\xfe"), "a message that is not JSON"),
        (with_length(b"[1]"), "a message that is a list"),
    ],
)
def test_b1_what_is_no_message(data: bytes, what: str) -> None:
    reader = FrameReader()
    reader.feed(data)
    with pytest.raises(BrokenChannelError, match=what):
        reader.message()


@pytest.mark.parametrize(("count", "seed"), [(500, 1), pytest.param(10_000, 2, marks=pytest.mark.slow)])
def test_b1_b2_of_any_bytes_there_is_a_reply_nothing_or_a_word(count: int, seed: int) -> None:
    taken, rng = 0, random.Random(seed)
    for _ in range(count):
        data = mutated(REPLY, rng)
        step = rng.randint(1, len(data) + 1)
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
        {"baseline": "?"}, {"workspace_bytes": 0.5}, {"workspace_bytes": -1}, {"workspace_bytes": 10**4000},
        {"text": "x" * 200_000}, {"traceback": "x" * 200_000},
        {"status": "x" * 200_000}, {"known_answers": ["x" * 200_000]}, {"programs": ["x" * 200_000]},
    ],
)  # fmt: skip
def test_b2_what_is_no_reply(change: dict[str, object]) -> None:
    assert read_reply(dict(REPLY), TOKEN).scalars == {"num_act_out": 3}
    with pytest.raises(BrokenChannelError):
        read_reply({**REPLY, **change}, TOKEN)
