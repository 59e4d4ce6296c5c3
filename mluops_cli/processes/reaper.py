"""A warden above every worker: it outlives the worker by a moment, in which it ends all that the worker has started.

A process that an implementation put into a session of its own is out of reach of a kill of the worker's group; and once
the worker has died, nothing tells whose it was. So the worker is forked from a process that takes in its orphans and
has no other children. The supervisor can't be that one: it may be a guest in a process with children of its own.
"""

from __future__ import annotations

import os
import resource
import signal
from contextlib import suppress
from multiprocessing import parent_process
from typing import Final, NoReturn

from mluops_cli.processes.process_tree import become_subreaper, die_with_parent, end_children

_NEWS: Final = {signal.SIGCHLD, signal.SIGTERM}  # the worker has ended; the supervisor wants it to, or has ended itself


def put_under_reaper() -> None:
    """Go on in a child. This process stays above it as its warden, ends it on SIGTERM, and ends as it has ended."""
    supervisor = parent_process()
    assert supervisor is not None
    os.setsid()  # out of reach of Ctrl-C
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, as it may be in the supervisor, it brings no news
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _NEWS)
    become_subreaper()
    die_with_parent(signal.SIGTERM)
    if os.getppid() != supervisor.pid:
        os._exit(1)
    warden = os.getpid()
    if worker := os.fork():
        _end_as(_watch(worker))
    die_with_parent()
    if os.getppid() != warden:
        os._exit(1)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _watch(worker: int) -> int:
    """Wait for the worker's end or ask for it, then end what it leaves; its exit status as waitpid has it."""
    ended, status = 0, 0
    while not ended and signal.sigwait(_NEWS) == signal.SIGCHLD:
        ended, status = os.waitpid(worker, os.WNOHANG)
    if not ended:
        os.kill(worker, signal.SIGKILL)
        _, status = os.waitpid(worker, 0)
    with suppress(OSError):
        os.killpg(worker, signal.SIGKILL)  # it made itself the leader of a group
    end_children()
    return status


def _end_as(status: int) -> NoReturn:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        with suppress(OSError, ValueError):  # SIGKILL has no handler
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status))
