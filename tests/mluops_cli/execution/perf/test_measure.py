from __future__ import annotations

import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from generators.operator_registry import operator_named
from mluops_cli.core.case_options import CaseOptions
from mluops_cli.core.hardware import peaks as peaks_module
from mluops_cli.core.hardware.peaks import Peaks, device_peaks, measured_peaks, peaks_for
from mluops_cli.execution.perf.efficiency import Efficiency, Work, efficiency_of, shortfall
from mluops_cli.execution.perf.measure import MOST, Meter, sample_of
from mluops_cli.implementations.python import Python
from schemas.casefiles.reading import read_case
from schemas.errors import InputError
from schemas.protos import messages as proto
from tests.mluops_cli.execution.conftest import PLUGIN, SUITE, write_psamask

RIGHT = f"python:{PLUGIN}:right"
PEAKS = ("--peak-bandwidth", "1TB/s", "--peak-ops", "10T")


def test_the_median_with_an_interval_of_order_statistics() -> None:
    found = sample_of([float(each) for each in (9, 1, 8, 2, 7, 3, 6, 4, 5, 100)])
    assert found.median == 5.5
    assert found.least == 1
    # Of 10 runs the 2nd and the 9th enclose the median with 97.9 % (binomial: 1 - 2 * 11 / 1024).
    assert found.interval == (2, 9)
    assert found.error == pytest.approx(3.5 / 5.5)
    assert found.spread == pytest.approx((7.75 - 3.25) / 5.5)


def test_few_runs_have_no_interval() -> None:
    assert sample_of([1.0] * 5).interval is None
    assert math.isinf(sample_of([1.0] * 5).error)
    assert sample_of([1.0, 2, 3, 4, 5, 6]).interval == (1, 6)


def test_efficiencies_by_hand() -> None:
    # 300 MB in 1 ms at 600 GB/s peak; 2 G operations in 1 ms at 10 T/s.
    found = efficiency_of(Work(300e6, 2e9), 1000.0, Peaks(600e9, 10e12, ""))
    assert found.io == pytest.approx(0.5)
    assert found.compute == pytest.approx(0.2)
    assert found.bottleneck == "io"
    assert not found.impossible
    assert efficiency_of(Work(None, 2e9), 1000.0, Peaks(600e9, None, "")) == Efficiency(None, None)
    assert "io efficiency 106.0%" in Efficiency(1.06, 0.2).impossible
    assert not Efficiency(1.05, 0.2).impossible


# The table of the design documents, theoretical work.
@pytest.mark.parametrize(
    ("op", "suite", "io", "compute", "holds"),
    [
        ("roi_crop_forward", "network", 0.61, 0.1, True),
        ("roi_crop_forward", "network", 0.1, 0.61, True),
        ("roi_crop_forward", "network", 0.59, 0.59, False),
        ("roi_crop_forward", "general", 0.31, 0.0, True),
        ("roi_crop_forward", "general", 0.29, 0.1, False),
        ("roi_crop_forward", "boundary", 0.01, 0.01, True),
        ("masked_im2col_forward", "network", 0.3, 0.9, False),  # pure io: the io efficiency alone
        ("get_indice_pairs", "general", 0.2, 0.9, False),
        ("get_indice_pairs", "general", 0.35, 0.0, True),
        ("voxel_pooling_forward", "network", 0.2, 0.65, True),
        ("psamask_forward", "network", 0.51, 0.0, True),
        ("psamask_backward", "network", 0.0, 0.51, True),
        ("psamask_forward", "general", 0.45, 0.45, False),
        ("roi_crop_forward", "network", None, None, False),
    ],
)
def test_the_standard(op: str, suite: str, io: float | None, compute: float | None, holds: bool) -> None:
    reason = shortfall(operator_named(op).contract, suite, Efficiency(io, compute))
    assert (reason == "") is holds


def test_peaks_given_before_the_table_before_a_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peaks_module, "measured_peaks", lambda: Peaks(1e10, 1e11, "measured"))
    assert peaks_for(CaseOptions(), None) == Peaks(1e10, 1e11, "measured")
    assert peaks_for(CaseOptions(peak_ops=5e11), None) == Peaks(1e10, 5e11, "ops given; measured")
    assert peaks_for(CaseOptions(device="mlu370-x8"), None).bandwidth == 614.4e9
    assert peaks_for(CaseOptions(), "NVIDIA H100 80GB HBM3").bandwidth == 3.35e12
    assert peaks_for(CaseOptions(peak_bandwidth=1.0, peak_ops=2.0), "NVIDIA H100 80GB HBM3") == Peaks(
        1.0, 2.0, "bandwidth and ops given"
    )
    assert peaks_for(CaseOptions(), "Unheard Of") == Peaks(None, None, "")
    assert device_peaks("A100-SXM4-80GB").bandwidth == 2.04e12
    with pytest.raises(InputError, match="no peaks of a device 'MLU999' are known"):
        peaks_for(CaseOptions(device="MLU999"), None)
    with pytest.raises(InputError, match="--perf-gate: no peaks of Unheard Of are known"):
        peaks_for(CaseOptions(perf_gate=True), "Unheard Of")


def test_measured_peaks_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    times: list[int] = []

    def measure() -> float:
        times.append(1)
        return 2e10

    monkeypatch.setattr(peaks_module, "measure_bandwidth", measure)
    monkeypatch.setattr(peaks_module, "measure_ops", lambda: 3e11)
    assert measured_peaks() == measured_peaks() == Peaks(2e10, 3e11, "measured on this machine")
    assert len(times) == 1
    peaks_module.cache_file().write_text("cut o")
    assert measured_peaks().bandwidth == 2e10
    assert len(times) == 2


@pytest.mark.parametrize("kept", [b"[]", b'{"x": 1}', b"cut o", b"\xff"])
def test_a_cache_of_something_else_is_replaced(kept: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(peaks_module, "measure_bandwidth", lambda: 2e10)
    monkeypatch.setattr(peaks_module, "measure_ops", lambda: 3e11)
    file = peaks_module.cache_file()
    file.parent.mkdir(parents=True)
    file.write_bytes(kept)
    assert measured_peaks() == Peaks(2e10, 3e11, "measured on this machine")
    monkeypatch.setattr(peaks_module, "measure_ops", lambda: pytest.fail("kept"))
    assert measured_peaks().ops == 3e11


def test_b11_without_a_cache_folder_it_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(peaks_module, "measure_bandwidth", lambda: 2e10)
    monkeypatch.setattr(peaks_module, "measure_ops", lambda: 3e11)
    assert measured_peaks() == Peaks(2e10, 3e11, "measured on this machine")


def test_a_measurement_is_of_this_world(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peaks_module, "last_level_cache", lambda: 1 << 20)
    monkeypatch.setattr(peaks_module, "_TRIES", 2)
    assert 1e8 < peaks_module.measure_bandwidth() < 1e13
    assert 1e8 < peaks_module.measure_ops() < 1e15


def test_what_a_record_tells(tmp_path: Path, run: Any) -> None:
    path = write_psamask(tmp_path / "cases", "one")
    ran = run(path, "--impl", RIGHT, "--perf", "--repeat", "8", *PEAKS)
    assert ran.code == 0
    (record,) = ran.records.values()
    perf = record["perf"]
    assert (perf["runs"], perf["cache"], perf["timer"]) == (8, "fresh", "implementation")
    assert perf["threads"] == 1  # test_d12
    assert record["repeats"] >= 9
    low, high = record["latency_interval_us"]
    assert 0 < perf["min_us"] <= low <= record["latency_us"] <= high
    # psamask: 1*2*3*(9+6) floats moved once, an operation per element of the output.
    assert (perf["io_bytes"], perf["ops"]) == (4 * 6 * 15, 6 * 6)
    assert record["io_efficiency"] == pytest.approx(360 / (record["latency_us"] * 1e-6 * 1e12))
    assert record["compute_efficiency"] == pytest.approx(36 / (record["latency_us"] * 1e-6 * 10e12))
    assert perf["bottleneck"] == "io"
    assert ran.summary["options"]["perf"] is True
    assert "efficiency" in ran.out


def test_the_file_says_what_the_theory_is(tmp_path: Path, run: Any) -> None:
    path = write_psamask(tmp_path / "cases", "one")
    with read_case(path) as file:
        node = file.node
        extra = proto.Node(op_name=node.op_name, theory_io_size=1e6, theory_compute_ops=2e6, latency=50.0)
    # A later field of a message wins: the file's own bytes stay as they are.
    path.write_bytes(path.read_bytes() + proto.serialize(extra))
    (record,) = run(path, "--impl", RIGHT, "--perf", "--repeat", "1", *PEAKS).records.values()
    assert (record["perf"]["io_bytes"], record["perf"]["ops"]) == (1e6, 2e6)
    assert record["perf"]["file_latency_us"] == 50
    assert record["perf"]["relative_latency"] == pytest.approx(record["latency_us"] / 50)


@pytest.mark.parametrize(("cache", "extra"), [("fresh", 0), ("warm", 5)])
def test_a_warm_cache_is_made_by_a_call_before(cache: str, extra: int, tmp_path: Path, run: Any) -> None:
    path = write_psamask(tmp_path / "cases", "one")
    impl = f"python:{PLUGIN}:counted"
    (record,) = run(path, "--impl", impl, "--perf", "--repeat", "5", "--cache", cache, *PEAKS).records.values()
    assert record["printed"].count(".") == record["repeats"] + extra


def test_timed_runs_are_judged(tmp_path: Path, run: Any) -> None:
    path = write_psamask(tmp_path / "cases", "one", h_mask=5)
    ran = run(path, "--impl", f"python:{PLUGIN}:right_once", "--perf", *PEAKS)
    assert ran.code == 1
    (record,) = ran.records.values()
    assert record["status"] == "fail"
    assert record["reason"].startswith("repeat 2, after right ones: y: ")


def test_stopped_clocks_of_the_time_module_are_named(tmp_path: Path, run: Any) -> None:
    path = write_psamask(tmp_path / "cases", "one")
    ran = run(path, "--impl", f"python:{PLUGIN}:stops_clocks", "--perf", "--timeout", "10", *PEAKS)
    (record,) = ran.records.values()
    assert record["status"] == "fail"
    assert record["reason"] == "clock replaced: time.perf_counter"


@pytest.mark.slow
def test_d23_a_latency_of_0_is_unmeasured(tmp_path: Path, run: Any) -> None:
    """As of a device whose timer is broken: nothing can be said of the efficiency, so no gate holds."""
    path = write_psamask(tmp_path / "cases", "one")
    (tmp_path / "plugin.py").write_text(
        "from mluops_cli import Implementation, Outcome\n"
        "from tests.mluops_cli.execution.misbehaving import right\n"
        "class Timeless(Implementation):\n"
        "    name = 'timeless'\n"
        "    def call(self, call):\n"
        "        right(call.op, call.inputs, call.outputs, call.params)\n"
        "        return Outcome(latency_us=0.0)\n"
        "IMPLEMENTATIONS = [Timeless]\n"
    )
    for option, outcome in (("--perf", (0, "pass")), ("--perf-gate", (1, "fail"))):
        options = ("--plugin", tmp_path / "plugin.py", "--impl", "timeless", "--repeat", "8", option, *PEAKS)
        ran = run(path, *options)
        (record,) = ran.records.values()
        assert record["latency_us"] is record["io_efficiency"] is record["compute_efficiency"] is None
        assert record["perf"]["problem"] == "error of measurement: the timer shows 0 µs for a call"
        assert (ran.code, record["status"]) == outcome


def test_there_is_a_most_of_runs_whatever_clocks_say() -> None:
    meter = Meter(CaseOptions(peak_bandwidth=1.0, peak_ops=1.0, cache="warm"), Python(f"{PLUGIN}:right"))
    assert not meter._done([0.0] * (MOST - 1), 0.0)
    assert meter._done([0.0] * MOST, 0.0)


@pytest.mark.slow
def test_the_gate_and_an_error_of_measurement(tmp_path: Path, run: Any) -> None:
    write_psamask(tmp_path / "cases", "slow")
    write_psamask(tmp_path / "cases", "edge", suite="boundary")
    options = ("--impl", RIGHT, "--repeat", "1")
    gated = run(tmp_path / "cases", *options, "--perf-gate", *PEAKS)
    assert gated.code == 1
    assert gated.statuses == {f"{SUITE}/slow": "fail", "psamask_forward/boundary/edge": "pass"}
    reason = gated.records[f"{SUITE}/slow"]["reason"]
    found = re.search(r"efficiency is ([\d.e-]+)%, at least 50% must be reached", reason)
    assert found is not None, reason
    assert 0 < float(found[1]) < 1  # d17: a fraction that isn't 0 is not shown as 0.0%
    assert "--perf-gate" in gated.records[f"{SUITE}/slow"]["repro"]
    # Peaks so low that nothing could be that fast.
    low = ("--peak-bandwidth", "1", "--peak-ops", "1")
    told = run(tmp_path / "cases", *options, "--perf", *low)
    assert told.code == 0
    record = told.records[f"{SUITE}/slow"]
    assert record["perf"]["problem"].startswith("error of measurement: io efficiency")
    assert record["io_efficiency"] is record["compute_efficiency"] is None
    assert "error of measurement" in told.out
    refused = run(tmp_path / "cases", *options, "--perf-gate", *low)
    assert refused.statuses[f"{SUITE}/slow"] == "fail"
    assert refused.statuses["psamask_forward/boundary/edge"] == "fail"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--peak-ops", "24T"), "--peak-ops needs --perf"),
        (("--perf", "--peak-ops", "fast"), "is not a rate"),
        (("--perf", "--device", "MLU999"), "no peaks of a device 'MLU999' are known"),
        (("--resource", "MLU=1"), "--resource needs --scheduler"),
        (("--compare", "y=canonical"), "no output 'y' can be"),
        (("--compare", "indice_pairs"), "expected OUTPUT=canonical"),
    ],
)
def test_options_that_are_wrong(options: tuple[str, ...], message: str, tmp_path: Path, run: Any) -> None:
    ran = run(write_psamask(tmp_path / "cases", "one"), "--impl", RIGHT, *options)
    assert ran.code == 2
    assert message in ran.err


def test_a_latency_of_test_param_counts_too() -> None:
    from mluops_cli.execution.perf.measure import stored_latency

    assert stored_latency(SimpleNamespace(latency=0.0, test_param=SimpleNamespace(latency=7.0))) == 7.0
    assert stored_latency(SimpleNamespace(latency=0.0, test_param=SimpleNamespace(latency=0.0))) is None
