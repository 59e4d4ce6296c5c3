"""Stopping what a process has started, and letting it go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from mluops_cli.processes.pausing import pause_below, resume
from mluops_cli.processes.process_tree import state_of
from mluops_cli.processes.tree_memory import process_trees

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
# Two children, of which one has a child in a session of its own; all are at work. The last line waits.
_TREE = """
import os, sys
for number in range(2):
    if os.fork() == 0:
        if number and os.fork() == 0:
            os.setsid()
        while True:
            pass
print("ready", flush=True)
input()
"""


def test_descendants_stand_still_until_they_are_resumed() -> None:
    with subprocess.Popen([sys.executable, "-c", _TREE], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        while len(tree := process_trees([process.pid])[process.pid]) < 4:
            time.sleep(0.01)
        try:
            by_another = tree[1]
            os.kill(by_another, signal.SIGSTOP)
            while state_of(by_another) != "T":
                time.sleep(0.01)
            paused = pause_below(process.pid)
            assert set(paused) == set(tree[2:])
            assert [state_of(pid) for pid in tree[1:]] == ["T"] * 3
            assert state_of(process.pid) == "S"
            resume(paused)
            assert not paused
            time.sleep(0.1)
            assert [state_of(pid) for pid in tree[1:]] == ["T", "R", "R"]
        finally:
            for pid in reversed(tree):
                os.kill(pid, signal.SIGKILL)


def test_a_process_without_children_needs_no_look_at_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mluops_cli.processes.pausing.process_trees", None)
    with subprocess.Popen(["sleep", "600"]) as process:
        try:
            assert pause_below(process.pid) == []
        finally:
            process.kill()


def test_a_process_that_has_ended() -> None:
    assert pause_below(2**30) == []
    assert state_of(2**30) == "X"
