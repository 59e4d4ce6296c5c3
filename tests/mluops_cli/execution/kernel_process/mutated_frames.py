"""Frames of a kernel process, changed at random: most are none, some are another reply. The standard library only."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from typing import Any, Final

LONGEST: Final = 64 << 20  # bytes of a message, at most
Message = dict[str, Any]
_VALUES: Final[tuple[Any, ...]] = (
    None, [], {}, "x", "", "\0\x1b[31m]]>\ud800", -1, 0, 2**70, 10**4000, 1e308, -0.0, 1.5, float("nan"), float("inf"),
    True, [{"a": 1}], {"a": 1}, "A" * 300_000, [""] * 1000, "/dev/zero", "NOT_SUPPORTED", "raised", "cannot show",
)  # fmt: skip


def framed(message: Message) -> bytes:
    """The bytes of a message."""
    return with_length(json.dumps(message).encode())


def with_length(content: bytes) -> bytes:
    """The content behind its length."""
    return struct.pack("!i", len(content)) + content


def mutated(reply: Message, rng: random.Random) -> bytes:
    """A frame of the reply that is changed, cut, too long, or none at all."""
    return rng.choice(_WAYS)(reply, rng)


def accepted(reply: Message, rng: random.Random) -> bytes:
    """A frame of the reply that is written in another way, with other values, and as right as before."""
    changed = reply | {
        "latency_us": rng.choice((None, 0, rng.uniform(0, 1e300), 5e-324)),
        "workspace_bytes": rng.choice((None, 0, rng.randrange(2**62))),
        "text": rng.choice(("", "\0", "\ud800", "x" * rng.randrange(100_000))),
        "errno": rng.choice((None, 0, -1, 24, 10**18)),
        "scalars": {str(rng.random()): rng.randrange(-(2**62), 2**62) for _ in range(rng.randrange(4))},
        "glimpse": {rng.choice(("", "z", "\ud800")): rng.randrange(2**62) for _ in range(rng.randrange(3))},
        "host_us": rng.uniform(0, 0.01),
        "spoilt": rng.random() < 0.1,
    }
    keys = list(changed)
    rng.shuffle(keys)
    content = json.dumps({key: changed[key] for key in keys}, indent=rng.choice((None, 0, 3)))
    if rng.random() < 0.2:  # the last one of a key counts
        content = content.replace("{", '{"status": [], "token": 0, ', 1)
    return with_length(content.encode())


def _other_bytes(reply: Message, rng: random.Random) -> bytes:
    data = bytearray(framed(reply))
    for _ in range(rng.randrange(1, 9)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def _cut(reply: Message, rng: random.Random) -> bytes:
    data = framed(reply)
    return data[: rng.randrange(1, len(data))]


def _other_length(reply: Message, rng: random.Random) -> bytes:
    return struct.pack("!i", rng.randrange(-(2**31), 2**31)) + framed(reply)[4:]


def _huge_length(reply: Message, rng: random.Random) -> bytes:
    length = rng.choice((2**31 - 1, -1, -(2**31), LONGEST, LONGEST + 1, rng.randrange(LONGEST, 2**31)))
    return struct.pack("!i", length) + framed(reply)[4:]


def _other_value(reply: Message, rng: random.Random) -> bytes:
    key = rng.choice((*reply, "text", "traceback", "errno", "unheard of"))
    return framed(reply | {key: rng.choice(_VALUES)})


def _without_a_key(reply: Message, rng: random.Random) -> bytes:
    gone = rng.choice(list(reply))
    return framed({key: value for key, value in reply.items() if key != gone})


def _noise(reply: Message, rng: random.Random) -> bytes:
    return rng.randbytes(rng.randrange(1, 300))


def _framed_noise(reply: Message, rng: random.Random) -> bytes:
    return with_length(rng.randbytes(rng.randrange(300)))


def _other_json(reply: Message, rng: random.Random) -> bytes:
    texts = (
        json.dumps([reply]), "null", "3", '"done"', "", "{}", "[" * 100_000, '{"a":' * 50_000, "9" * 5000,
        json.dumps(reply)[:-1], json.dumps(reply) * 2, json.dumps(reply) + "\0", "\ufeff" + json.dumps(reply),
    )  # fmt: skip
    return with_length(rng.choice(texts).encode())


_WAYS: Final[tuple[Callable[[Message, random.Random], bytes], ...]] = (
    _other_bytes, _cut, _other_length, _huge_length, _other_value, _without_a_key, _noise, _framed_noise, _other_json,
)  # fmt: skip
