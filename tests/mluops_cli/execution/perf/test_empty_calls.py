"""Times that a kernel reports too short are named, whatever clock it replaces; those of right kernels are not."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mluops_cli.core.case_options import CaseOptions
from mluops_cli.execution.kernel_process.timed_call import Timed
from mluops_cli.execution.perf import empty_calls
from mluops_cli.execution.perf.empty_calls import EmptyCalls
from mluops_cli.execution.perf.measure import Meter
from mluops_cli.implementations.base import Outcome, OutOfBounds
from mluops_cli.search.exploits import replaced_functions
from tests.mluops_cli.execution.conftest import PLUGIN, write_psamask

PEAKS = ("--peak-bandwidth", "1TB/s", "--peak-ops", "10T")
EMPTY = [(5.0, 100.0, 300.0 + 20 * each) for each in range(8)]  # the upper quartile of what lies beside: 410 µs


def timed(latency: float | None, host: float, round_trip: float, workspace: int | None = None) -> Timed:
    return Timed(Outcome(latency_us=latency, workspace_bytes=workspace), host, round_trip)


def verdict(
    calls: list[Timed], monkeypatch: pytest.MonkeyPatch, impl: str = "python:kernel.py:f", first: int = 0
) -> str:
    monkeypatch.setattr(empty_calls, "KernelProcess", lambda options, memory: None)
    found = EmptyCalls(CaseOptions(impl=impl), SimpleNamespace(memory=None))  # type: ignore[arg-type]
    found._empty = [timed(*each) for each in EMPTY]
    return found.too_short(SimpleNamespace(timed=calls), first)  # type: ignore[arg-type]


def test_right_calls_are_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not verdict([timed(5000, 5100, 5400)] * 8, monkeypatch)
    # A busy machine delays all calls but one.
    delayed = [timed(5000, 5100, 25000)] * 7
    assert not verdict([*delayed, timed(4000, 4100, 4400)], monkeypatch)
    assert verdict(delayed, monkeypatch)


def test_calls_that_take_three_empty_ones_besides_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not verdict([timed(5, 5, 5 + 3 * 410)] * 6, monkeypatch)
    reason = verdict([timed(5, 5, 7 + 3 * 410)] * 6, monkeypatch)
    assert reason == (
        "clock replaced: a call took 1.24 ms by another clock, 5 µs by its own; one that does nothing takes 410 µs"
    )
    assert not verdict([timed(5, 5, 5000)] * 5, monkeypatch)  # too few
    assert not verdict([timed(5, 5, 5000)] * 5 + [timed(5000, 5100, 5400)] * 5, monkeypatch, first=5)


def test_right_times_in_less_than_half_of_the_calls_do_not_help(monkeypatch: pytest.MonkeyPatch) -> None:
    assert verdict([timed(5, 5, 5400)] * 5 + [timed(5000, 5100, 5400)] * 3, monkeypatch)


def test_the_whole_call_counts_where_its_latency_is_a_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert verdict([timed(5, 5000, 5400)] * 6, monkeypatch)
    assert not verdict([timed(5, 5000, 5400, workspace=64)] * 6, monkeypatch)
    assert not verdict([timed(5, 5000, 5400)] * 6, monkeypatch, impl="exec:./kernel {dir}")
    assert not verdict([timed(None, 5000, 5400)] * 6, monkeypatch, impl="capi:lib.so")
    assert verdict([timed(5, 50, 5400)] * 6, monkeypatch, impl="exec:./kernel {dir}")


def test_what_the_kernel_has_left_writing_is_no_fault_of_the_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread of the kernel may write to the outputs while the empty call is made."""

    def written(call: None) -> None:
        raise OutOfBounds("y is still being written after the call returned")

    process = SimpleNamespace(await_ready=list, timed_call=written)
    monkeypatch.setattr(empty_calls, "KernelProcess", lambda options, memory: process)
    monkeypatch.setattr(empty_calls, "flush_caches", lambda kernel: None)
    found = EmptyCalls(CaseOptions(), SimpleNamespace(memory=None))  # type: ignore[arg-type]
    calls = SimpleNamespace(once=lambda ready: {"status": "pass"}, latencies=[1e6, 1e6], timed=[None])
    calls.prepared = SimpleNamespace(call=None)
    meter = object.__new__(Meter)
    meter.options, meter.empty = CaseOptions(), found
    result = meter.measure(calls, {"status": "pass"})  # type: ignore[arg-type]
    assert (result["status"], result["reason"]) == ("fail", "y is still being written after the call returned")


@pytest.mark.parametrize(
    "name", ["moves_the_start", pytest.param("replaces_the_code_of_the_clock", marks=pytest.mark.slow)]
)
def test_replaced_clocks(name: str, tmp_path: Path, run: Any) -> None:
    path = write_psamask(tmp_path / "cases", "one")
    impl = f"python:{replaced_functions.__file__}:{name}"
    ran = run(path, "--impl", impl, "--perf", "--repeat", "8", *PEAKS)
    (record,) = ran.records.values()
    assert (ran.code, record["status"]) == (1, "fail"), record["reason"]
    assert record["reason"].startswith("clock replaced: a call took 1")
    assert record["latency_us"] < 10_000  # as it was reported, far below the 100 ms of a call


@pytest.mark.parametrize(
    "options",
    [("--rotate",), *(pytest.param(("--cache", kind), marks=pytest.mark.slow) for kind in ("fresh", "warm"))],
)
def test_a_right_kernel_has_times(options: tuple[str, ...], tmp_path: Path, run: Any) -> None:
    path = write_psamask(tmp_path / "cases", "one")
    impl = f"python:{PLUGIN}:right"
    ran = run(path, "--impl", impl, "--perf", "--repeat", "20", *options, *PEAKS)
    (record,) = ran.records.values()
    assert (ran.code, record["status"], record["reason"]) == (0, "pass", "")
    assert record["perf"]["runs"] == 20


def test_the_end_of_the_process_of_empty_calls_is_an_error_of_the_tool(tmp_path: Path, run: Any) -> None:
    path = write_psamask(tmp_path / "cases", "one")
    (tmp_path / "kernel.py").write_text(
        "import os, signal\n"
        "from pathlib import Path\n"
        "from tests.mluops_cli.execution.misbehaving import right\n"
        "def kills_the_other(op, inputs, outputs, params):\n"
        "    for each in Path('/proc').glob('[0-9]*'):\n"
        "        found = (each / 'stat').read_bytes().rpartition(b')')[2].split()\n"
        "        if int(found[1]) == os.getppid() and int(each.name) != os.getpid():\n"
        "            os.kill(int(each.name), signal.SIGKILL)\n"
        "    return right(op, inputs, outputs, params)\n"
    )
    ran = run(path, "--impl", f"python:{tmp_path / 'kernel.py'}:kills_the_other", "--perf", "--repeat", "8", *PEAKS)
    (record,) = ran.records.values()
    assert (record["status"], record["blame"]) == ("error", "tool")
    assert record["reason"].startswith("empty calls, which show whether times are too short: the kernel process ended")
