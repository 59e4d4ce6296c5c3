"""The process that makes the calls holds nothing of the judge, and what it does changes no verdict."""

from __future__ import annotations

import errno
import os
import platform
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from mluops_cli.core.case_options import CaseOptions
from mluops_cli.execution.kernel_process.kernel_handle import KernelEnded, KernelProcess
from mluops_cli.execution.kernel_process.reply import Reply
from mluops_cli.execution.workers.handle import WorkerProcess
from mluops_cli.implementations.base import BadAnswer, Call
from mluops_cli.processes.process_tree import state_of
from tests.conftest import PROJECT
from tests.mluops_cli.execution.conftest import SUITE, wait_until, write_psamask
from tests.mluops_cli.execution.kernel_process import prying
from tests.mluops_cli.execution.kernel_process.conftest import Started

PRYING = f"python:{Path(prying.__file__)}"


def test_there_is_no_judge_and_no_baseline_to_be_found(tmp_path: Path, run: Any) -> None:
    write_psamask(tmp_path / "cases", "a")
    ran = run(tmp_path / "cases", "--impl", f"{PRYING}:looks_around", "-j", "1", "--relations")
    (record,) = ran.records.values()
    assert record["status"] == "pass"
    assert set(record["printed"].splitlines()) == {"found [] by ['mluops']"}


def test_replaced_functions_change_no_verdict(tmp_path: Path, run: Any) -> None:
    for name, mask in (("a_right", 3), ("b_wrong", 5), ("c_right", 3), ("d_wrong", 5)):
        write_psamask(tmp_path / "cases", name, h_mask=mask)
    ran = run(tmp_path / "cases", "--impl", f"{PRYING}:replaces_functions", "-j", "1")
    assert ran.code == 1
    assert ran.statuses[f"{SUITE}/a_right"] == "pass"
    assert {ran.statuses[f"{SUITE}/{name}"] for name in ("b_wrong", "d_wrong")} <= {"fail", "crash", "error"}
    assert len(ran.statuses) == 4


def test_a_clock_that_runs_faster_than_ours_is_named(tmp_path: Path, run: Any) -> None:
    write_psamask(tmp_path / "cases", "a")
    ran = run(tmp_path / "cases", "--impl", f"{PRYING}:stops_our_clock", "-j", "1", "--repeat", "2")
    (record,) = ran.records.values()
    assert (record["status"], ran.code) == ("fail", 1)
    assert "clock replaced: a call took " in record["reason"]


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the allocator of glibc")
def test_memory_that_a_kernel_frees_is_there_for_its_next_allocation(tmp_path: Path, run: Any) -> None:
    write_psamask(tmp_path / "cases", "a")
    ran = run(tmp_path / "cases", "--impl", f"{PRYING}:takes_memory_again_and_again", "-j", "1")
    (record,) = ran.records.values()
    assert record["status"] == "pass"
    assert int(record["printed"].removeprefix("touched ")) < 1000  # of 9 * 4096


@pytest.mark.slow
def test_b1_b2_whatever_comes_every_case_has_a_record(tmp_path: Path, run: Any) -> None:
    cases = 6
    for number in range(cases):
        write_psamask(tmp_path / "cases", f"bad{number}", h_mask=11 + 2 * number)
    write_psamask(tmp_path / "cases", "right")
    ran = run(tmp_path / "cases", "--impl", f"{PRYING}:ends_in_garbage", "-j", "2", "--timeout", "20")
    assert len(ran.statuses) == cases + 1
    assert ran.statuses.pop(f"{SUITE}/right") == "pass"
    assert set(ran.statuses.values()) <= {"crash", "pass", "timeout"}  # a pass: a frame that the reply makes whole
    assert "crash" in ran.statuses.values()
    for record in ran.records.values():
        if record["status"] == "crash":
            assert "the implementation wrote into it: a " in record["reason"]


def test_no_case_is_charged_with_the_end_of_the_process_after_the_one_before(
    tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        write_psamask(tmp_path / "cases", f"{number}", h_mask=5 if number % 2 == 0 else 3)
    send, before = WorkerProcess.send, [""]

    def late(worker: WorkerProcess, task: dict[str, Any]) -> None:
        """Let the worker find a case that is sent after the end of its kernel process, before it looks for that."""
        judge = None
        if before[0] in ("0", "2"):
            with suppress(psutil.NoSuchProcess, IndexError):  # it has looked already, and ended
                judge = psutil.Process(worker.pid).children()[0]
                judge.suspend()
                kernels = judge.children()
                wait_until(lambda: all(state_of(each.pid) in "ZX" for each in kernels))
        before[0] = task["case"].rpartition("/")[2]
        send(worker, task)
        if judge is not None:
            judge.resume()

    monkeypatch.setattr(WorkerProcess, "send", late)
    ran = run(tmp_path / "cases", "--impl", f"{PRYING}:ends_after_its_reply", "-j", "1")
    assert {each["reason"] for each in ran.records.values()} == {""}
    assert len(ran.records) == 4
    assert (set(ran.statuses.values()), ran.code) == ({"pass"}, 0)


@pytest.mark.slow
def test_words_of_an_exception_are_cut(tmp_path: Path, run: Any) -> None:
    for mask in (3, 5, 7):
        write_psamask(tmp_path / "cases", f"mask{mask}", h_mask=mask)
    ran = run(tmp_path / "cases", "--impl", f"{PRYING}:raises_a_long_name", "-j", "1")
    assert set(ran.statuses.values()) == {"error"}
    reasons = [ran.records[f"{SUITE}/mask{mask}"]["reason"] for mask in (3, 5, 7)]
    assert reasons[0].startswith("raised AAAA")
    assert reasons[1].startswith("returned an unknown operator status 'AAAA")
    assert reasons[2].startswith("raised ValueError")
    assert max(map(len, reasons)) < 101_000


@pytest.mark.parametrize("kilobytes", [8_000_000, 2_000_000])
def test_a_limit_on_address_space_leaves_room(kilobytes: int, tmp_path: Path) -> None:
    """Shared memory is reserved as large as it may become; libraries must still be loaded."""
    for number in range(2):
        write_psamask(tmp_path / "cases", f"case{number}")
    command = f"{sys.executable} -m mluops_cli run {tmp_path / 'cases'} --impl tiled -j 1 --out {tmp_path / 'out'}"
    shell = ["bash", "-c", f"ulimit -v {kilobytes}; exec {command}"]
    done = subprocess.run(shell, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 pass" in done.stdout


def test_the_end_of_a_kernel_process_is_seen_where_the_system_has_no_pidfd(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(process: int) -> int:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(os, "pidfd_open", refused)
    kernel = started(CaseOptions(impl="tiled"))
    assert kernel.await_ready().problem is None
    os.kill(kernel._process.pid, signal.SIGKILL)
    with pytest.raises(KernelEnded) as ended:
        kernel._message()
    assert ended.value.code == -signal.SIGKILL


@pytest.mark.parametrize("latency", [-5.0, float("nan"), float("inf")])
def test_a_latency_that_is_no_time_is_a_bad_answer(latency: float, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = object.__new__(KernelProcess)
    answer = Reply(kind="done", token="", status="SUCCESS", latency_us=latency)
    monkeypatch.setattr(kernel, "_process", SimpleNamespace(pid=2**30), raising=False)
    monkeypatch.setattr(kernel, "_write", lambda call: {}, raising=False)
    monkeypatch.setattr(kernel, "_answer", lambda request: answer)
    with pytest.raises(BadAnswer, match="latency_us is "):
        kernel.timed_call(Call("psamask_forward", {}, {}, {}, {}))
