"""A program that takes the place of the kernel process, and answers most cases with frames that are none.

It imports no package besides the standard library, so that it starts 20 times as fast as a kernel process.
"""

from __future__ import annotations

import json
import mmap
import os
import random
import signal
import socket
import struct
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from tests.mluops_cli.execution.kernel_process.mutated_frames import LONGEST, Message, accepted, framed, mutated

OP: Final = "an_operator_of_others"  # its output is its input, which begins with the number of the case
VALUES: Final = 4  # of type float
_BYTES: Final = 4 * VALUES
RIGHT_EVERY: Final = 10  # one case of so many is answered as it should be
PLACES: Final = ("instead of the reply", "before it", "in the middle of it", "behind it")


def main(channel: int, memory: Sequence[int], parent: int, *, seed: int, calls: int, waits: bool) -> None:
    """Answer requests: as it should be, then, in the last call of most cases, with wrong outputs and any bytes."""
    answers = socket.socket(fileno=channel)
    access = [mmap.ACCESS_READ, mmap.ACCESS_WRITE, mmap.ACCESS_WRITE]
    maps = [mmap.mmap(each, 0, access=how) for each, how in zip(memory, access, strict=True)]
    _received(answers)
    answers.sendall(framed({"name": "hostile"}))
    before, call = -1, 0
    while request := _received(answers):
        (given,), (taken,) = request["inputs"].values(), request["outputs"].values()
        x = maps[given[0]][given[1] : given[1] + _BYTES]
        number = int(struct.unpack_from("f", x)[0])
        before, call = number, call + 1 if number == before else 1
        rng = random.Random(f"{seed} {number} {call}")
        last = number % RIGHT_EVERY and call == calls
        maps[taken[0]][taken[1] : taken[1] + _BYTES] = bytes(_BYTES) if last else x
        reply = {
            "token": request["token"], "kind": "done", "status": "SUCCESS", "latency_us": 1.5, "workspace_bytes": None,
            "scalars": {}, "host_us": 0.001, "glimpse": {}, "known_answers": [], "programs": [], "spoilt": False,
        }  # fmt: skip
        if number % RIGHT_EVERY == 0:
            answers.sendall(framed(reply))
        elif not last:
            _in_pieces(answers, accepted(reply, rng), rng)
        else:
            _last_words(answers, reply, rng, waits=waits)


def _last_words(answers: socket.socket, reply: Message, rng: random.Random, *, waits: bool) -> None:
    """Send bytes that hold a mutated frame; end where nobody would answer them, unless waits is given."""
    whole, data = framed(reply), mutated(reply, rng)
    at = rng.randrange(1, len(whole))
    sent = {
        PLACES[0]: data,
        PLACES[1]: data + whole,
        PLACES[2]: whole[:at] + data + whole[at:],
        PLACES[3]: whole + data,
    }[rng.choice((PLACES[0], *PLACES))]
    if waits:
        answers.sendall(sent if not _says_its_end(sent) else whole[:at])
        time.sleep(3600)
    _in_pieces(answers, sent, rng)
    if not _says_its_end(sent):
        _end(rng)


def _in_pieces(answers: socket.socket, data: bytes, rng: random.Random) -> None:
    at = sorted(rng.randrange(len(data) + 1) for _ in range(rng.choice((0, 0, 1, 5))))
    for start, end in pairwise([0, *at, len(data)]):
        answers.sendall(data[start:end])


def _says_its_end(data: bytes) -> bool:
    """Whether the reader of these bytes waits for no more of them."""
    if len(data) < 4:
        return False
    (length,) = struct.unpack_from("!i", data)
    return not 0 <= length <= LONGEST or length <= len(data) - 4


def _end(rng: random.Random) -> None:
    if how := rng.choice((0, 0, signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM)):
        os.kill(os.getpid(), how)
    os._exit(rng.choice((0, 1, 255)))


def _received(channel: socket.socket) -> Any:
    """The next request; None where the channel has closed."""
    header = channel.recv(4, socket.MSG_WAITALL)
    if len(header) < 4:
        return None
    (length,) = struct.unpack("!i", header)
    return json.loads(channel.recv(length, socket.MSG_WAITALL))
