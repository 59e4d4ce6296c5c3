"""Workers, hosts and the scheduler fail in the middle of a run: every case gets one record or none, the client ends."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from mluops_cli.core.discovery import PlannedCase
from mluops_cli.execution.cluster import client as fleet
from mluops_cli.execution.cluster import members
from mluops_cli.execution.cluster.batch import Batch
from mluops_cli.execution.cluster.members import Members
from tests.mluops_cli.execution.cluster.conftest import (
    PATIENCE,
    SCHEDULER,
    Dask,
    meanwhile,
    records_in,
    waiting_kernel,
)
from tests.mluops_cli.execution.conftest import PLUGIN, wait_until, write_psamask

SLOW = f"python:{PLUGIN}:slow"
MLU = ("--resource", "MLU=1")
pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("default")]


def write_cases(folder: Path, count: int) -> Path:
    for number in range(count):
        write_psamask(folder / "cases", f"case{number}", seed=number)
    return folder / "cases"


def give_up_the_silent(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let an idle worker of this name be given up soon; others may be silent as long as a loaded machine lets them."""
    silent = Members.silent
    monkeypatch.setattr(members, "_SILENT", 5.0)
    monkeypatch.setattr(Members, "silent", lambda self: [each for each in silent(self) if self.name(each) == name])


def test_f3_a_late_and_a_slow_worker_get_their_share(dask: Dask, tmp_path: Path, run: Any) -> None:
    """The slow one waits in its second case until the late one has come."""
    cases = write_cases(tmp_path, 60)
    impl = waiting_kernel(tmp_path).replace("waiting.py", "napping.py")
    (tmp_path / "napping.py").write_text(
        "import os, time, waiting\n"
        "def kernel(*arguments):\n"
        "    if os.environ['WHO'] == 'late':\n"
        "        (waiting.folder / 'go').touch()\n"
        "    time.sleep(float(os.environ['NAP']))\n"
        "    return waiting.kernel(*arguments)\n"
    )
    dask.worker("slow", NAP="0.6")
    dask.wait(1)

    def join() -> None:
        wait_until(lambda: records_in(tmp_path))
        dask.worker("late", NAP="0.01")

    with meanwhile(join):
        ran = run(cases, "--impl", impl, "--scheduler", dask.address, *MLU)
    assert ran.code == 0
    assert len(ran.records) == 60
    by_worker = [record["worker"] for record in ran.records.values()]
    assert by_worker.count("late") > by_worker.count("slow") > 0


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(each, marks=pytest.mark.slow) for each in range(2, 20))])
def test_f3_workers_that_are_killed_in_turn(seed: int, dask: Dask, tmp_path: Path, run: Any) -> None:
    count = 60
    cases = write_cases(tmp_path, count)
    dask.workers("0", "1", "2")
    chance = random.Random(seed)
    ended = threading.Event()
    killed: list[str] = []

    def kill() -> None:
        wait_until(lambda: records_in(tmp_path))
        while not ended.wait(chance.uniform(0.1, 1.0)) and len(killed) < 6:
            alive = [name for name, each in dask.processes.items() if name != SCHEDULER and each.poll() is None]
            killed.append(chance.choice(alive))
            dask.kill(killed[-1])
            dask.worker(str(len(dask.processes) - 1))

    with meanwhile(kill):
        try:
            ran = run(cases, "--impl", SLOW, "--scheduler", dask.address, *MLU)
        finally:
            ended.set()
    assert len(ran.records) == count
    assert ran.summary["not_run"] == 0
    lost = [record for record in ran.records.values() if record["status"] == "crash"]
    assert len(lost) <= len(killed)
    assert {record["worker"] for record in lost} <= set(killed)
    assert all("of the fleet was lost in the middle of the case" in record["reason"] for record in lost)
    assert list(ran.statuses.values()).count("pass") == count - len(lost)


DIES = '''
import os
from distributed.diagnostics.plugin import WorkerPlugin

class Dies(WorkerPlugin):
    """Ends the worker a moment after a task of ours has finished there: its result is lost."""
    def setup(self, worker):
        self.worker = worker

    def transition(self, key, start, finish, **kwargs):
        if finish == "memory" and str(key).startswith("mluops-"):
            self.worker.loop.call_later({delay}, os._exit, 1)

async def dask_setup(worker):
    def get_data(*arguments, **keywords):
        os._exit(1)
    worker.handlers["get_data"] = get_data
    await worker.plugin_add(Dies())
'''


@pytest.mark.parametrize("delay", [0.0, 0.05])
def test_f3_a_worker_that_dies_when_its_task_has_finished(delay: float, dask: Dask, tmp_path: Path, run: Any) -> None:
    cases = write_cases(tmp_path, 24)
    (tmp_path / "dies.py").write_text(DIES.replace("{delay}", str(delay)))
    dask.worker("dies", "MLU=1", "--preload", str(tmp_path / "dies.py"))
    dask.worker("steady")
    dask.wait(2)
    ran = run(cases, "--impl", SLOW, "--scheduler", dask.address, *MLU)
    assert len(ran.records) == 24
    assert dask.processes["dies"].wait(PATIENCE) == 1
    assert list(ran.statuses.values()).count("pass") >= 23
    assert ran.summary["not_run"] == 0


def test_f3_a_host_that_hangs_is_limited_by_the_timeout(
    dask: Dask, tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock goes ahead for the batches of that host alone: the others may be as slow as the machine."""
    cases = write_cases(tmp_path, 40)
    dask.workers("hangs", "steady")
    stopped = threading.Event()
    deadline = fleet._Fleet._deadline

    def early(self: fleet._Fleet, batch: Batch) -> float:
        hangs = stopped.is_set() and self.batches.name(batch) == "hangs"
        return deadline(self, batch) - hangs * (2 * PATIENCE - 5.0)

    def hang() -> None:
        wait_until(lambda: records_in(tmp_path, "hangs"))
        dask.stop("hangs")
        (tmp_path / "go").touch()
        stopped.set()

    monkeypatch.setattr(fleet._Fleet, "_deadline", early)
    give_up_the_silent(monkeypatch, "hangs")  # where its second case has not begun
    with meanwhile(hang):
        impl = waiting_kernel(tmp_path)
        ran = run(cases, "--impl", impl, "--scheduler", dask.address, *MLU, "--timeout", PATIENCE)
    assert len(ran.records) == 40
    late = [record for record in ran.records.values() if record["status"] != "pass"]
    assert len(late) <= 1
    for record in late:
        assert (record["status"], record["worker"]) == ("timeout", "hangs")
        assert record["reason"].endswith("it doesn't answer any more")
    assert "worker hangs is lost" in ran.out


def test_f3_an_idle_host_that_hangs(dask: Dask, tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    give_up_the_silent(monkeypatch, "hangs")
    cases = write_cases(tmp_path, 24)
    dask.workers("hangs", "steady")
    dask.stop("hangs")
    ran = run(cases, "--impl", SLOW, "--scheduler", dask.address, *MLU)
    assert (ran.code, len(ran.records)) == (0, 24)
    assert {record["worker"] for record in ran.records.values()} == {"steady"}


@pytest.mark.parametrize("way", ["killed", "stopped"])
def test_f3_a_scheduler_that_is_lost(
    way: str, dask: Dask, tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = write_cases(tmp_path, 60)
    dask.workers("one")

    def lose() -> None:
        wait_until(lambda: records_in(tmp_path))
        (dask.kill if way == "killed" else dask.stop)(SCHEDULER)
        monkeypatch.setattr(fleet, "_UNREACHABLE", 5.0)
        monkeypatch.setattr(fleet, "_GRACE", 15.0)  # for the farewell

    impl = waiting_kernel(tmp_path)
    with meanwhile(lose):
        ran = run(cases, "--impl", impl, "--scheduler", dask.address, *MLU)
    assert ran.code == 3
    assert ran.summary["exit_code"] == 3
    assert ran.summary["not_run"] == 60 - len(ran.records) > 0
    assert set(ran.statuses.values()) == {"pass"}
    assert "scheduler" in ran.summary["problem"]
    assert ran.summary["problem"] in ran.out
    done = set(ran.records)
    (tmp_path / "go").touch()
    resumed = run(cases, "--impl", impl, "--resume")
    assert (resumed.code, len(resumed.records)) == (0, 60)
    assert done < set(resumed.records)


def test_f6_cases_that_nobody_ran_are_not_run_and_resumed(
    dask: Dask, tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members, "_REPLACEMENT", 1.0)
    cases = write_cases(tmp_path, 12)
    (tmp_path / "impl.py").write_text("import time\ndef f(op, inputs, outputs, params):\n    time.sleep(3600)\n")
    dask.workers("last")

    told = threading.Event()
    begin = Batch.begin

    def begun(self: Batch, case: PlannedCase) -> None:
        begin(self, case)
        told.set()

    def kill() -> None:
        told.wait()
        dask.kill("last")

    monkeypatch.setattr(Batch, "begin", begun)
    impl = f"python:{tmp_path / 'impl.py'}:f"
    with meanwhile(kill):
        ran = run(cases, "--impl", impl, "--scheduler", dask.address, *MLU)
    assert ran.code == 3
    assert list(ran.statuses.values()) == ["crash"]
    assert ran.summary["not_run"] == 11
    assert "no worker of the fleet is left and none came" in ran.out
    (tmp_path / "impl.py").write_text("from tests.mluops_cli.execution.misbehaving import right as f\n")
    resumed = run(cases, "--impl", impl, "--resume")
    assert len(resumed.records) == 12
    assert list(resumed.statuses.values()).count("pass") == 11


@pytest.mark.parametrize("signals", [1, 2])
def test_f3_ctrl_c_ends_a_client_whose_scheduler_hangs(signals: int, dask: Dask, tmp_path: Path) -> None:
    cases = write_cases(tmp_path, 60)
    dask.workers("one")
    out = tmp_path / "out"
    impl = waiting_kernel(tmp_path)
    command = [sys.executable, "-m", "mluops_cli", "run", str(cases), "--impl", impl, "--out", str(out)]
    with (tmp_path / "said").open("wb") as said:
        process = subprocess.Popen([*command, "--scheduler", dask.address, *MLU], stdout=said, stderr=said)
    try:
        wait_until(lambda: records_in(tmp_path))
        dask.stop(SCHEDULER)
        time.sleep(1.5)
        for _ in range(signals):
            process.send_signal(signal.SIGINT)
            time.sleep(0.5)
        assert process.wait(PATIENCE) in (130, -signal.SIGINT)
    finally:
        process.kill()
        process.wait()
    if signals == 1:
        assert json.loads((out / "summary.json").read_text())["interrupted"] is True


@pytest.mark.slow
def test_f3_tiny_cases_take_little_longer_than_without_a_cluster(dask: Dask, tmp_path: Path, run: Any) -> None:
    cases = write_cases(tmp_path, 2000)
    dask.workers("one", "two")
    local, spread = [], []
    for _ in range(3):  # in turn: other work on the machine slows both
        local.append(run(cases, "--impl", "tiled", "-j", "2").summary["seconds"])
        spread.append(run(cases, "--impl", "tiled", "--scheduler", dask.address, *MLU).summary["seconds"])
    assert min(spread) <= 1.5 * min(local), (spread, local)
