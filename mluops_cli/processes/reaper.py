"""The reaper: the parent process of each worker, which ends everything that the worker leaves running.

A process in a session of its own survives a kill of the worker's process group, and after the worker's end nothing
shows which worker started it. The reaper is the child subreaper of one worker and has no other children, so
whatever becomes its child belongs to that worker. The supervisor can't be the reaper: its process may have other
children.
"""

from __future__ import annotations

import os
import resource
import signal
from contextlib import suppress
from multiprocessing import parent_process
from typing import Final, NoReturn

from mluops_cli.processes.process_tree import become_subreaper, die_with_parent, end_children

_SIGNALS: Final = {signal.SIGCHLD, signal.SIGTERM}  # the worker has ended; the supervisor ends it, or has ended


def put_under_reaper() -> None:
    """Continue in a forked child, the worker; this process becomes its reaper and ends with its exit status."""
    supervisor = parent_process()
    assert supervisor is not None
    os.setsid()  # out of reach of Ctrl-C
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # an inherited SIG_IGN would suppress it
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    become_subreaper()
    die_with_parent(signal.SIGTERM)
    if os.getppid() != supervisor.pid:
        os._exit(1)
    reaper_id = os.getpid()
    if worker := os.fork():
        end_as(_watch(worker))
    die_with_parent()
    if os.getppid() != reaper_id:
        os._exit(1)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _watch(worker: int) -> int:
    """Wait for the worker's end, or kill it on SIGTERM, then end its descendants; its status as of os.waitpid."""
    ended, status = 0, 0
    while not ended and signal.sigwait(_SIGNALS) == signal.SIGCHLD:
        ended, status = os.waitpid(worker, os.WNOHANG)
    if not ended:
        os.kill(worker, signal.SIGKILL)
        _, status = os.waitpid(worker, 0)
    with suppress(OSError):
        os.killpg(worker, signal.SIGKILL)  # it leads a process group
    end_children()
    return status


def end_as(status: int) -> NoReturn:
    """End as another process did, whose status is as of os.waitpid."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        with suppress(OSError, ValueError):  # SIGKILL has no handler
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status))
