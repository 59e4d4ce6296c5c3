"""Runs that are stopped: by Ctrl-C and other signals, by kill -9 at any moment; and what is left to go on from."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest

from mluops_cli.execution.interrupt import interruptible
from tests.mluops_cli.execution.conftest import PLUGIN, wait_until, write_psamask

CASES = 40
BRISK = f"python:{PLUGIN}:brisk"
SLOW = f"python:{PLUGIN}:slow"


def start(folder: Path, out: Path, impl: str, *options: str) -> subprocess.Popen[str]:
    """A run in a process of its own, which SIGHUP ends even where the tests were started by nohup."""
    command = [sys.executable, "-m", "mluops_cli", "run", str(folder), "--out", str(out), "--impl", impl, *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=_obey_hangup)


def _obey_hangup() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def lines(out: Path) -> list[str]:
    """The results so far."""
    path = out / "results.jsonl"
    return path.read_text().splitlines() if path.exists() else []


def workers(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The worker processes of a run."""
    children = psutil.Process(process.pid).children(recursive=True)
    return [each for each in children if "spawn_main" in " ".join(each.cmdline())]


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    """Small cases, of which a few fail."""
    for number in range(CASES):
        write_psamask(tmp_path / "cases", f"case{number}", h_mask=5 if number % 10 == 7 else 3, seed=number % 5)
    return tmp_path / "cases"


def killed_and_resumed(cases: Path, out: Path, run: Any, moment: int) -> Any:
    """What --resume makes of a run that is killed when it has so many results."""
    process = start(cases, out, BRISK, "-j", "2")
    wait_until(lambda: len(lines(out)) >= moment or process.poll() is not None)
    process.kill()
    process.communicate(timeout=60)
    before = lines(out)
    ran = run(cases, "--impl", BRISK, "--resume", "-j", "2")
    after = lines(out)
    assert Counter(json.loads(line)["case"] for line in after).most_common(1)[0][1] == 1
    # Results are kept as they are; the last one may have been cut off.
    assert after[: max(0, len(before) - 1)] == before[:-1]
    return ran


def check_kills(cases: Path, tmp_path: Path, run: Any, moments: list[int]) -> None:
    """Whenever the run is killed, --resume comes to what an undisturbed run comes to."""
    whole = run(cases, "--impl", BRISK, "-j", "2")
    assert len(whole.records) == CASES
    for moment in moments:
        ran = killed_and_resumed(cases, tmp_path / "out", run, moment)
        assert ran.statuses == whole.statuses
        for key in ("cases", "counts", "exit_code", "validated", "not_run", "interrupted"):
            assert ran.summary[key] == whole.summary[key]
        (tmp_path / "out" / "results.jsonl").unlink()


@pytest.mark.slow
def test_kill_9_at_three_moments_and_resume(cases: Path, tmp_path: Path, run: Any) -> None:
    check_kills(cases, tmp_path, run, [0, *random.sample(range(1, CASES), 2)])


@pytest.mark.slow
@pytest.mark.long
def test_kill_9_at_fifty_moments_and_resume(cases: Path, tmp_path: Path, run: Any) -> None:
    check_kills(cases, tmp_path, run, random.choices(range(CASES + 1), k=50))


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"])
def test_f14_a_signal_leaves_a_summary_to_go_on_from(number: str, cases: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = start(cases, out, SLOW, "-j", "2")
    wait_until(lambda: len(lines(out)) >= 2)
    children = workers(process)
    assert children
    process.send_signal(signal.Signals[number])
    said, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted" in said
    assert "Traceback" not in errors
    assert not [each for each in children if each.is_running() and each.status() != "zombie"]
    summary = json.loads((out / "summary.json").read_text())
    assert summary["interrupted"]
    assert summary["cases"] == len(lines(out))
    assert summary["cases"] + summary["not_run"] == CASES


@pytest.mark.slow
def test_an_interrupted_run_is_resumed(cases: Path, tmp_path: Path, run: Any) -> None:
    process = start(cases, tmp_path / "out", SLOW, "-j", "2")
    wait_until(lambda: len(lines(tmp_path / "out")) >= 2)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    ran = run(cases, "--impl", SLOW, "--resume", "-j", "2")
    assert len(ran.records) == CASES
    assert not ran.summary["interrupted"]


@pytest.mark.parametrize("gap", [0.0, 0.1, *(pytest.param(gap, marks=pytest.mark.slow) for gap in (0.05, 0.15, 0.3))])
def test_f14_a_second_ctrl_c_exits_with_130_whenever_it_comes(gap: float, cases: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = start(cases, out, SLOW, "-j", "1")
    wait_until(lambda: len(lines(out)) >= 1)
    process.send_signal(signal.SIGINT)
    time.sleep(gap)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in errors


def test_b17_sigterm_leaves_no_temporary_folder(tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "mluops_cli", "selftest"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: [*tmp_path.glob("mluops-selftest-*/*/*/*.pb")])
    process.terminate()
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert errors == "interrupted\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("way", ["slow", "hangs"])
def test_workers_end_with_a_supervisor_that_is_killed(way: str, cases: Path, tmp_path: Path) -> None:
    process = start(cases, tmp_path / "out", f"python:{PLUGIN}:{way}", "-j", "2")
    children = wait_until(lambda: len(found := workers(process)) == 2 and found)
    time.sleep(1.0)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=30)
    wait_until(lambda: not any(each.is_running() and each.status() != "zombie" for each in children), seconds=5.0)


def test_a_search_notices_the_signal_that_ends_one_of_its_runs() -> None:
    with interruptible() as search:
        with interruptible():
            signal.raise_signal(signal.SIGINT)
        assert search.is_set()
