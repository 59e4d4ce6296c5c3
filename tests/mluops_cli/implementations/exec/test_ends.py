"""Programs of `exec:` that end in every way, and the state that they leave behind."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from mluops_cli.implementations.base import Crashed
from mluops_cli.implementations.exec import Exec
from mluops_cli.processes import scratch_dir
from tests.conftest import PROJECT
from tests.mluops_cli.execution.conftest import write_psamask
from tests.mluops_cli.implementations.calls import psamask
from tests.mluops_cli.implementations.exec.conftest import EXAMPLE, scratch_directories

# A program that aborts in one of two cases, and one that starts another and never ends.
SOMETIMES = """
import os, runpy, sys
if "h_mask 1 1" in open(sys.argv[1] + "/case.txt").read():
    print("ouch", flush=True)
    os.abort()
runpy.run_path(EXAMPLE, run_name="__main__")
"""
ENDLESS = """
import os, subprocess, time
started = subprocess.Popen(["sleep", "600"])
open(NOTED, "w").write(f"{os.getpid()} {started.pid}")
time.sleep(600)
"""

# A program that leaves another running in a session of its own, and says if it finds one that it left before.
LEAVES = """
import os, runpy, subprocess, sys
for pid in open(NOTED).read().split() if os.path.exists(NOTED) else []:
    if os.path.exists(f"/proc/{pid}"):
        print("an earlier one runs")
left = subprocess.Popen(["sleep", "600"], start_new_session=True, env={}, cwd=sys.argv[1])
print(left.pid, file=open(NOTED, "a"))
runpy.run_path(EXAMPLE, run_name="__main__")
"""


@pytest.mark.parametrize(
    ("code", "status"), [(0, "SUCCESS"), (67, "BAD_PARAM"), (71, "NOT_SUPPORTED"), (72, "NUMERICAL_OVERFLOW")]
)
def test_exit_codes_are_statuses(code: int, status: str, script: Callable[[str], str]) -> None:
    assert Exec(f"{script(f'raise SystemExit({code})')} {{dir}}").call(psamask()).status == status


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise SystemExit(1)", "ended with exit code 1: expected 0 or 64"),
        ("raise SystemExit(73)", "ended with exit code 73"),
        ("raise SystemExit(255)", r"ended with exit code 255: expected 0 or 64"),
        ("raise SystemExit(139)", r"exit code 139, signal 11 \(SIGSEGV\) of what it ran"),
        ("import os; os.abort()", r"died of signal 6 \(SIGABRT\)"),
        ("import os; os.kill(os.getpid(), 11)", r"died of signal 11 \(SIGSEGV\)"),
    ],
)
def test_any_other_end_is_a_crash(source: str, reason: str, script: Callable[[str], str]) -> None:
    with pytest.raises(Crashed, match=reason):
        Exec(f"{script(source)} {{dir}}").call(psamask())


def test_a_crash_is_the_case_s_and_the_run_goes_on(
    script: Callable[[str], str], run: Callable[..., Any], tmp_path: Path
) -> None:
    for h_mask in (1, 3):
        write_psamask(tmp_path / "cases", f"case_{h_mask}", h_mask)
    command = script(f"EXAMPLE = {str(EXAMPLE)!r}{SOMETIMES}")
    ran = run(tmp_path / "cases", "--impl", f"exec:{command} {{dir}}", "-j", "1")
    assert ran.code == 1
    crash, passed = (ran.records[f"psamask_forward/general/case_{h_mask}"] for h_mask in (1, 3))
    assert (crash["status"], passed["status"]) == ("crash", "pass")
    assert "SIGABRT" in crash["reason"]
    assert "ouch" in crash["printed"]


def test_a_timeout_ends_all_it_started_and_its_folder_goes(
    script: Callable[[str], str], run: Callable[..., Any], tmp_path: Path
) -> None:
    case = write_psamask(tmp_path / "cases", "case")
    noted = tmp_path / "pids"
    command = script(f"NOTED = {str(noted)!r}{ENDLESS}")
    ran = run(case, "--impl", f"exec:{command} {{dir}}", "--timeout", "3")
    assert list(ran.statuses.values()) == ["timeout"]
    deadline = time.monotonic() + 5
    pids = [int(word) for word in noted.read_text().split()]
    while any(map(running, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(running, pids))
    assert not scratch_directories()


def running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_sweeping_leaves_alone_what_is_in_use() -> None:
    with scratch_dir.scratch_directory() as used:
        scratch_dir.sweep()
        assert used.is_dir()
    assert not scratch_directories()


def test_a_directory_that_was_written_to_while_it_was_removed_is_swept() -> None:
    left = Path(tempfile.gettempdir()) / "mluops-exec-left"
    (left / "deep").mkdir(parents=True)
    scratch_dir.sweep()
    assert not scratch_directories()


def test_what_a_program_left_running_ends_with_the_call(
    script: Callable[[str], str], run: Callable[..., Any], tmp_path: Path
) -> None:
    for number in range(2):
        write_psamask(tmp_path / "cases", f"case{number}")
    noted = tmp_path / "pids"
    command = script(f"NOTED, EXAMPLE = {str(noted)!r}, {str(EXAMPLE)!r}{LEAVES}")
    ran = run(tmp_path / "cases", "--impl", f"exec:{command} {{dir}}", "-j", "1")
    assert set(ran.statuses.values()) == {"pass"}
    assert len(noted.read_text().split()) == 2
    assert "an earlier one runs" not in "".join(record["printed"] for record in ran.records.values())
    assert not scratch_directories()


def test_a_killed_supervisor_takes_the_program_along(script: Callable[[str], str], tmp_path: Path) -> None:
    case = write_psamask(tmp_path / "cases", "case")
    noted = tmp_path / "pid"
    source = f"import os, time; open({str(noted)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    command = [sys.executable, "-m", "mluops_cli", "run", str(case), "--impl", f"exec:{script(source)} {{dir}}"]
    supervisor = subprocess.Popen(
        [*command, "--out", str(tmp_path / "out")], env={**os.environ, "PYTHONPATH": str(PROJECT)}
    )
    deadline = time.monotonic() + 60
    while not (noted.exists() and noted.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    pid = int(noted.read_text())
    supervisor.kill()
    supervisor.wait()
    deadline = time.monotonic() + 5
    while running(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not running(pid)
