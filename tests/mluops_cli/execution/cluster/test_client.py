"""Runs on a Dask fleet: a LocalCluster, and two `dask worker` processes of which one is killed."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from mluops_cli.execution.cluster import client as fleet
from mluops_cli.execution.cluster.client import parse_resource
from schemas.errors import InputError
from tests.mluops_cli.execution.cluster.conftest import PATIENCE, Dask, meanwhile, records_in, waiting_kernel
from tests.mluops_cli.execution.conftest import (
    HANGING,
    PLUGIN,
    SUITE,
    TEN,
    sleeping,
    wait_until,
    write_psamask,
    write_ways,
)

RIGHT = f"python:{PLUGIN}:right"
# Dask warns and leaves sockets to the collector; what it does with its own is not ours to judge.
pytestmark = pytest.mark.filterwarnings("default")
cluster = pytest.mark.cluster


@pytest.fixture(scope="module")
def local() -> Iterator[str]:
    """The address of a cluster of two workers, one card each."""
    distributed = pytest.importorskip("distributed", reason="needs Dask: pip install 'mluops[cluster]'")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, resources={"MLU": 1}, dashboard_address=None, scheduler_port=0
    ) as running:
        yield running.scheduler_address


@cluster
def test_ten_ill_behaved_cases(local: str, tmp_path: Path, run: Any) -> None:
    """Those that hang in a run of their own, for its timeout would end others on a slow machine too."""
    others = [way for way in TEN if way not in HANGING]
    for ways, limits in ((HANGING, ("--timeout", "3")), (others, ("--memory", "400MiB"))):
        write_ways(folder := tmp_path / limits[0][2:], ways)
        options = ("--scheduler", local, "--resource", "MLU=1", *limits)
        ran = run(folder, "--impl", f"python:{PLUGIN}:everything", *options, "--junit", tmp_path / "j.xml")
        assert ran.code == 1
        assert ran.statuses == {f"{SUITE}/{way}": TEN[way][0] for way in ways}
        for way in ways:
            assert TEN[way][1] in ran.records[f"{SUITE}/{way}"]["reason"]
            assert ran.records[f"{SUITE}/{way}"]["worker"] in ("0", "1")
            assert ran.records[f"{SUITE}/{way}"]["repro"].startswith("mluops run ")
        assert (tmp_path / "j.xml").read_text().count("<testcase") == len(ways)
        assert re.search("finished by worker: [01] ", ran.out)
    assert ran.records[f"{SUITE}/segfault"]["printed"].startswith("about to fall\n")
    assert not sleeping(987)  # what the case `endless` starts


@cluster
def test_problems_are_told_at_once(local: str, tmp_path: Path, run: Any) -> None:
    write_psamask(tmp_path / "cases", "one")
    start = time.monotonic()
    ran = run(tmp_path / "cases", "--impl", RIGHT, "--scheduler", local, "--resource", "GPU=1")
    assert ran.code == 2
    assert ran.err == "--resource GPU=1: no worker has it; the 2 workers have MLU=1\n"
    ran = run(tmp_path / "cases", "--impl", RIGHT, "--scheduler", local, "--resource", "MLU=2")
    assert (ran.code, "no worker has it" in ran.err) == (2, True)
    ran = run(tmp_path / "cases", "--impl", f"python:{PLUGIN}:rigt", "--scheduler", local, "--resource", "MLU=1")
    assert ran.code == 2
    assert "has no 'rigt': did you mean 'right'?" in ran.err
    assert time.monotonic() - start < PATIENCE  # for a replacement it would have waited that long
    assert ran.records == {}


@cluster
def test_a_relative_implementation_is_found_from_here(
    local: str, tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_psamask(tmp_path / "cases", "one")
    (tmp_path / "impl.py").write_text("def f(op, inputs, outputs, params):\n    return 'NOT_SUPPORTED'\n")
    monkeypatch.chdir(tmp_path)
    ran = run("cases", "--impl", "python:impl.py:f", "--scheduler", local, "--resource", "MLU=1")
    assert set(ran.statuses.values()) == {"skip"}
    (record,) = ran.records.values()
    assert record["file"] == "cases/one.pb"
    assert record["case_hash"]


@cluster
def test_a_worker_that_is_killed(dask: Dask, tmp_path: Path, run: Any) -> None:
    dask.workers("steady", "doomed")
    for number in range(24):
        write_psamask(tmp_path / "cases", f"case{number}", seed=number)

    def kill() -> None:
        wait_until(lambda: records_in(tmp_path, "doomed"))
        dask.kill("doomed")
        (tmp_path / "go").touch()

    with meanwhile(kill):
        impl = waiting_kernel(tmp_path)
        ran = run(tmp_path / "cases", "--impl", impl, "--scheduler", dask.address, "--resource", "MLU=1")
    # Nothing is lost, nothing run twice (the fixture looks), and what was being run is said.
    assert len(ran.records) == 24
    crashed = [record for record in ran.records.values() if record["status"] == "crash"]
    assert len(crashed) <= 1
    assert "worker doomed is lost" in ran.out
    for record in crashed:
        assert record["worker"] == "doomed"
        assert record["reason"].startswith("worker doomed of the fleet was lost in the middle of the case")
    assert list(ran.statuses.values()).count("pass") == 24 - len(crashed)
    assert ran.code == (1 if crashed else 0)
    assert {record["worker"] for record in ran.records.values()} == {"steady", "doomed"}


def runs_cases(process: psutil.Process) -> bool:
    """Whether the process is a worker process of ours that has not ended."""
    try:
        return "spawn_main" in " ".join(process.cmdline())
    except psutil.Error:  # it has ended meanwhile
        return False


@cluster
def test_ctrl_c_on_a_fleet(dask: Dask, tmp_path: Path) -> None:
    dask.workers("polite")
    for number in range(60):
        write_psamask(tmp_path / "cases", f"case{number}", seed=number)
    out = tmp_path / "out"
    impl = waiting_kernel(tmp_path)
    command = [sys.executable, "-m", "mluops_cli", "run", str(tmp_path / "cases"), "--impl", impl, "--out", str(out)]
    with (tmp_path / "said").open("wb") as said:
        fleet_options = ("--scheduler", dask.address, "--resource", "MLU=1")
        process = subprocess.Popen([*command, *fleet_options], stdout=said, stderr=said)
    try:
        wait_until(lambda: records_in(tmp_path))
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
    finally:
        process.kill()
        process.wait()
    worker = psutil.Process(dask.processes["polite"].pid)
    wait_until(lambda: not any(map(runs_cases, worker.children(True))))


def test_no_scheduler_answers(tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    write_psamask(tmp_path / "cases", "one")
    monkeypatch.setattr(fleet, "_CONNECT", 0.5)
    ran = run(tmp_path / "cases", "--impl", RIGHT, "--scheduler", "tcp://127.0.0.1:9")
    assert ran.code == 3
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in ran.err or "mluops[cluster]" in ran.err
    assert len(ran.err.strip().splitlines()) == 1


def test_resources() -> None:
    assert parse_resource(None) == {}
    assert parse_resource("MLU=1") == {"MLU": 1.0}
    for text in ("MLU", "=1", "MLU=0", "MLU=x", "MLU=-1"):
        with pytest.raises(InputError, match="expected NAME=NUMBER"):
            parse_resource(text)
