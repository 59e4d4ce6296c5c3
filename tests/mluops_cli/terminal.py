"""A terminal to run commands on: a pseudo-terminal of a given width, and what it shows in the end."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from typing import Final

import pyte
import pytest

from mluops_cli.main import main
from tests.conftest import PROJECT

_END: Final = b"\0\0\0"  # no command prints it, and a terminal shows nothing for it
_ROWS: Final = 400  # as many lines as any command prints: nothing scrolls away
_WITH_WORKERS: Final = (
    "fuzz",
    "gen",
    "run",
    "replay",
)  # their progress bars have threads, their workers inherit the terminal
_VOLATILE: Final = (
    # Durations, rates and sizes of memory differ from run to run, and their width with them.
    (re.compile(r"\d+(?:\.\d+)? (?:s|ms|µs|us|min|h)\b"), "TIME"),
    (re.compile(r"\d+:\d\d:\d\d"), "TIME"),
    (re.compile(r"^\w+: \d+ of \d+ mutants, \d+ killed\n", re.MULTILINE), ""),  # progress, every few seconds
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
        code = (_in_a_process if arguments[0] in _WITH_WORKERS else _in_this_process)(arguments, theirs)
    finally:
        os.write(theirs, _END)
        reader.join()
        os.close(theirs)
        os.close(ours)
    return code, "\n".join(line.rstrip() for line in screen.display).rstrip() + "\n"


def _in_this_process(arguments: list[str], theirs: int) -> int:
    before = sys.stdout, sys.stderr
    try:
        with open(theirs, "w", encoding="utf-8", buffering=1, closefd=False) as terminal:
            sys.stdout = sys.stderr = terminal
            with pytest.raises(SystemExit) as stop:
                main(arguments)
    finally:
        sys.stdout, sys.stderr = before
    assert isinstance(stop.value.code, int)
    return stop.value.code


def _in_a_process(arguments: list[str], theirs: int) -> int:
    command = [sys.executable, "-m", "mluops_cli", *arguments]
    env = {**os.environ, "PYTHONPATH": str(PROJECT)}
    return subprocess.run(command, stdout=theirs, stderr=theirs, env=env, check=False).returncode


def steady(text: str, *folders: str) -> str:
    """The text without what differs from run to run: durations, sizes of this machine, temporary folders."""
    for folder in folders:
        parts = re.compile(r"(\n?)".join(map(re.escape, folder)))  # a terminal breaks a path anywhere
        text = parts.sub(lambda match: "FOLDER" + "".join(filter(None, match.groups())), text)
    for pattern, word in _VOLATILE:
        text = pattern.sub(word, text)
    return "\n".join(map(str.rstrip, text.split("\n")))  # columns are as wide as what differs
