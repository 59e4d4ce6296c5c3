"""A terminal to run commands on: a pseudo-terminal of a given width, and what it shows in the end."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import struct
import termios
import threading
from collections.abc import Iterator
from typing import Final

import pyte
import pytest

from mluops_cli.main import main

_END: Final = b"\0\0\0"  # no command prints it, and a terminal shows nothing for it
_ROWS: Final = 400  # as many lines as any command prints: nothing scrolls away
_VOLATILE: Final = (
    # Durations, rates and sizes of memory differ from run to run, and their width with them.
    (re.compile(r"\d+(?:\.\d+)? (?:s|ms|µs|us|min|h)\b"), "TIME"),
    (re.compile(r"\d+:\d\d:\d\d"), "TIME"),
    (re.compile(r"^fuzz: \d+ cases? in .*\n", re.MULTILINE), ""),  # progress of fuzz, every ten seconds
    (re.compile(r"^\w+: \d+ of \d+ mutants?(?:, | compared ).*\n", re.MULTILINE), ""),  # progress, every few seconds
    (re.compile(r"\b\d+/s\b"), "RATE"),
    (re.compile(r"\b\d+(?:\.\d+)?(?:e[+-]?\d+)? (?:B|[KMGT]i?B|[KMGT]?B/s|[KMGT]?op/s)(?= free| of memory|$)"), "SIZE"),
)


def show(arguments: list[str], columns: int) -> tuple[int, str]:
    """The exit code of `mluops ARGUMENTS`, and what a terminal of so many columns shows when it has ended."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, columns, 0, 0))
    screen = pyte.Screen(columns, _ROWS)
    stream = pyte.ByteStream(screen)

    def read() -> None:
        # The end of the file is not waited for: a helper process of multiprocessing may keep the terminal open.
        received = b""
        while _END not in received:
            data = os.read(ours, 1 << 16)
            received = received[-len(_END) :] + data
            stream.feed(data.replace(b"\0", b""))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        code = _run(arguments, theirs)
    finally:
        os.write(theirs, _END)
        reader.join()
        os.close(theirs)
        os.close(ours)
    assert not screen.cursor.hidden
    return code, "\n".join(line.rstrip() for line in screen.display).rstrip() + "\n"


def _run(arguments: list[str], terminal: int) -> int:
    """The exit code of the command, called in this process; what it starts inherits the terminal too."""
    with (
        _descriptor(1, terminal),
        _descriptor(2, terminal),
        open(terminal, "w", encoding="utf-8", buffering=1, closefd=False) as stream,
        contextlib.redirect_stdout(stream),
        contextlib.redirect_stderr(stream),
        pytest.raises(SystemExit) as stop,
    ):
        main(arguments)
    assert isinstance(stop.value.code, int)
    return stop.value.code


@contextlib.contextmanager
def _descriptor(number: int, replacement: int) -> Iterator[None]:
    kept = os.dup(number)
    os.dup2(replacement, number)
    try:
        yield
    finally:
        os.dup2(kept, number)
        os.close(kept)


def steady(text: str, **words: str) -> str:
    """The text without what differs from run to run: durations, sizes, and what each of the words stands for."""
    for word, replaced in words.items():
        text = _put(word, replaced, text)
    for pattern, word in _VOLATILE:
        text = pattern.sub(word, text)
    return "\n".join(map(str.rstrip, text.split("\n")))  # columns are as wide as what differs


def _put(word: str, replaced: str, text: str) -> str:
    parts = r"(\n?)".join(map(re.escape, replaced))  # a terminal breaks a path anywhere
    return re.sub(parts, lambda match: word + "".join(filter(None, match.groups())), text)
