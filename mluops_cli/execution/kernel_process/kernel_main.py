"""The kernel process: loads the implementation once, then makes one call per request of the judging process.

It holds inputs, outputs, their canaries, and the parameters of the call. It has no baseline, threshold
or verdict, and not the path of the case file.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np

from mluops_cli.execution.kernel_process.shared_memory import AttachedMemory
from mluops_cli.execution.kernel_process.streams import Streams, identity
from mluops_cli.processes.process_tree import become_subreaper, die_with_parent

LOST: Final = "the pipe to the supervisor is gone: the implementation closed it, or opened another file in its place"
_CAME_BACK: Final = "a process that the implementation forked returned from the call, and was ended"
# Bytes of an allocation up to which glibc keeps freed memory, rather than give it back and fetch it page by page at the
# next call: those of the largest that it has freed so far, at most 32 MiB.
_REUSED: Final = 31 << 20
_LENGTH: Final = struct.Struct("!i")


def main(channel: int, memory: Sequence[int], parent: int) -> None:
    """Answer requests until the channel closes. The first message says whether the implementation is loaded."""
    die_with_parent()
    if os.getppid() != parent:
        os._exit(1)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    become_subreaper()  # what a program leaves running can be ended after it
    sys.argv[:] = ["mluops"]
    np.empty(_REUSED, np.uint8)  # freed at once
    attached = AttachedMemory(memory)
    streams = Streams()
    answers = _Channel(channel)
    requests = answers.requests()
    # Before the implementation: it may limit what can be loaded after it.
    from mluops_cli.execution.kernel_process import reply
    from mluops_cli.execution.kernel_process.request import FLUSH, read_request
    from mluops_cli.execution.kernel_process.timed_call import flush_caches, timed_call

    implementation, known = _loaded(next(requests), answers)

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        try:
            if request["what"] == FLUSH:
                flush_caches(implementation)
                return {"kind": "done"}
            call = read_request(request, attached)
            done = reply.done(timed_call(implementation, call, request["token"]))
            noted: dict[str, Any] = known.found()
            return done | noted
        except BaseException as error:  # also SystemExit and KeyboardInterrupt
            return reply.raised(error)

    for request in requests:
        found = answer(request)
        answers.check_process()
        spoilt = not streams.restore()
        answers.send(found | {"token": request["token"], "spoilt": spoilt})
    with suppress(BaseException):  # no case is affected
        implementation.close()


class _Channel:
    """The channel to the judging process, which an implementation may close or replace."""

    def __init__(self, descriptor: int) -> None:
        self._home = os.getpid()
        self._descriptor = descriptor
        self._socket = socket.socket(fileno=descriptor)
        self._file = identity(descriptor)

    def requests(self) -> Iterator[dict[str, Any]]:
        """The requests, until the channel closes."""
        while (header := self._received(_LENGTH.size)) and (content := self._received(*_LENGTH.unpack(header))):
            yield json.loads(content)

    def _received(self, count: int) -> bytes:
        """So many bytes; none where the channel closes."""
        data = bytearray()
        while len(data) < count:
            try:
                part = self._socket.recv(min(count - len(data), 1 << 20))
            except OSError:
                _leave(LOST)
            if not part:
                return b""
            data += part
        return bytes(data)

    def send(self, message: dict[str, Any]) -> None:
        self.check_process()
        if identity(self._descriptor) != self._file:  # it would be lost, or go into a file of the implementation
            _leave(LOST)
        content = json.dumps(message).encode()
        self._socket.sendall(_LENGTH.pack(len(content)) + content)

    def check_process(self) -> None:
        """End this process where it is a fork of the implementation that has returned out of it."""
        if os.getpid() != self._home:
            _leave(_CAME_BACK)


def _loaded(settings: dict[str, Any], answers: _Channel) -> Any:
    """The implementation and a watch over what it uses; a message tells that it is loaded, or this process ends."""
    from mluops_cli.execution.kernel_process.reply import load_problem

    try:
        from mluops_cli.execution.kernel_process.floating_point import MODE
        from mluops_cli.execution.kernel_process.known_answers import KnownAnswers
        from mluops_cli.implementations.registry import implementation_named

        with MODE.of_implementation():
            if settings["plugins"]:
                from mluops_cli.implementations.plugins import load_plugins

                load_plugins([Path(path) for path in settings["plugins"]])
            known = KnownAnswers(settings["impl"])
            implementation = implementation_named(settings["impl"])
            operators = implementation.operators()
            ready = {
                "name": implementation.name,
                "operators": None if operators is None else list(operators),
                "device": implementation.device(),
            }
    except BaseException as error:
        answers.send(load_problem(error))
        sys.exit()
    answers.send(ready)
    return implementation, known


def _leave(why: str) -> NoReturn:
    with suppress(OSError):
        os.write(2, f"{why}\n".encode())
    os._exit(1)
