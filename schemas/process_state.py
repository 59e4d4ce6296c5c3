"""State of the whole process that foreign code may change: read before the code runs, put back after it.

Calls of an implementation change little, and are quick; what a module does when it is imported may be anything. The
floating-point mode and NumPy's handling of errors are kept elsewhere (kernel_process.floating_point): an implementation
finds its own again at its next call.
"""

from __future__ import annotations

import locale
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Final

# Ctrl-C, a request to end, a closed terminal, Ctrl-\\: commands undo what they had begun, and exit with 130.
ENDING_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


@contextmanager
def preserved_process_state() -> Iterator[None]:
    """Put back, at the end of the block, what the block changed for the whole process.

    That is the locale (a decimal comma changes how C code reads numbers), the current folder, the recursion limit and
    the handlers of the signals that end a command.
    """
    restorers = (_locale(), _folder(), _recursion_limit(), _handlers())
    try:
        yield
    finally:
        for restore in restorers:
            restore()


@contextmanager
def preserved_import_state() -> Iterator[None]:
    """As preserved_process_state, for a block that imports a module of others.

    Warning filters (with "error" NumPy's warnings would be exceptions), the umask and the standard streams are put back
    too. What Python code prints goes to stderr: stdout may be the JSON of a command.
    """
    with preserved_process_state(), warnings.catch_warnings(), redirect_stdout(sys.stderr):
        restorers = (_umask(), _stderr())
        try:
            yield
        finally:
            for restore in restorers:
                restore()


def _umask() -> Callable[[], None]:
    before = os.umask(0o077)
    os.umask(before)

    def restore() -> None:
        os.umask(before)

    return restore


def _stderr() -> Callable[[], None]:
    before = sys.stderr

    def restore() -> None:
        sys.stderr = before

    return restore


def _locale() -> Callable[[], None]:
    before = locale.setlocale(locale.LC_ALL)

    def restore() -> None:
        if locale.setlocale(locale.LC_ALL) != before:
            locale.setlocale(locale.LC_ALL, before)

    return restore


def _folder() -> Callable[[], None]:
    try:
        before = os.getcwd()
    except OSError:  # it was removed
        return _nothing

    def restore() -> None:
        with suppress(OSError):
            os.chdir(before)

    return restore


def _recursion_limit() -> Callable[[], None]:
    before = sys.getrecursionlimit()
    return lambda: sys.setrecursionlimit(before)


def _handlers() -> Callable[[], None]:
    if threading.current_thread() is not threading.main_thread():  # out of reach
        return _nothing
    before = [(number, signal.getsignal(number)) for number in ENDING_SIGNALS]

    def restore() -> None:
        for number, handler in before:
            if handler is not None and signal.getsignal(number) is not handler:  # None: set by C code
                signal.signal(number, handler)

    return restore


def _nothing() -> None:
    """Restore nothing."""
