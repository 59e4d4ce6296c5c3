"""However an implementation fails, its case gets the right word, the others their verdicts, and nothing is left."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import psutil
import pytest

from mluops_cli.execution import supervisor
from tests.mluops_cli.execution.conftest import (
    PLUGIN,
    SUITE,
    TEN,
    TEN_WORDS,
    sleeping,
    wait_until,
    write_psamask,
    write_ways,
)

from . import misbehaving

CASES = 4
BAD = "psamask_forward/general/case2"

# name of the callable -> status, part of the reason
WAYS = {
    "segfault": ("crash", "signal 11 (SIGSEGV)"),
    "aborts": ("crash", "signal 6 (SIGABRT)"),
    "killed": ("crash", "signal 9 (SIGKILL"),
    "leaves": ("crash", "exit code 0 in the middle of the case"),
    "exits": ("error", "raised SystemExit: 0"),
    "hostile": ("error", "raised ValueError: \x00\x1b[31mred ]]>"),
    "unpicklable": ("error", "raised UnpicklableError: an exception without a readable text"),
    "eats_memory": ("error", "raised MemoryError: cannot allocate"),
    "writes_behind": ("fail", "y: written out of bounds, 40 bytes behind the end (4 canary bytes changed)"),
    "writes_before": ("fail", "y: written out of bounds, 4 bytes before the start"),
    "changes_input": ("fail", "input 'x' was changed"),
    "assigns_input": ("error", "read-only"),
    "writes_nothing": ("fail", "elements wrong (1); never written: the buffer still holds what it was filled with"),
    "returns_nonsense": ("error", "returned a value of type list, expected None, a status (number or name), or a dict"),
    "unknown_status": ("error", "unknown operator status 99"),
    "bad_param": ("fail", "expected SUCCESS, got BAD_PARAM"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four cases, the third of which triggers the misbehaviour."""
    folder = tmp_path_factory.mktemp("cases")
    for number in range(CASES):
        write_psamask(folder, f"case{number}", h_mask=5 if number == 2 else 3, seed=number)
    return folder


def left_behind() -> list[str]:
    children = psutil.Process().children(recursive=True)
    return [" ".join(each.cmdline()) for each in children if "resource_tracker" not in " ".join(each.cmdline())]


def test_each_way_gets_its_word_and_the_case_after_it_passes(tmp_path: Path, run: Any) -> None:
    for number, way in enumerate(misbehaving.WAYS):
        if way in WAYS:
            write_psamask(tmp_path / "cases", f"{way}_bad", h_mask=misbehaving.FIRST + number)
            write_psamask(tmp_path / "cases", f"{way}_good")
    ran = run(tmp_path / "cases", "--impl", f"python:{PLUGIN}:everything", "-j", "1")
    assert ran.code == 1
    assert len(ran.records) == 2 * len(WAYS)
    for way, (status, reason) in WAYS.items():
        bad = ran.records[f"psamask_forward/general/{way}_bad"]
        assert bad["status"] == status, way
        assert reason in bad["reason"], way
        assert f"mluops run {tmp_path}/cases/{way}_bad.pb" in ran.out
        assert ran.records[f"psamask_forward/general/{way}_good"]["status"] == "pass", way
    assert "\x1b" not in ran.out
    assert left_behind() == []


@pytest.mark.usefixtures("_only_hanging_cases_are_late")
def test_ten_cases_on_four_workers(tmp_path: Path, run: Any) -> None:
    write_ways(tmp_path / "cases")
    reports = {name: tmp_path / f"report.{name}" for name in ("xml", "html", "md", "csv")}
    options = [f"--{'junit' if name == 'xml' else name}={path}" for name, path in reports.items()]
    limits = ("--timeout", "3", "--memory", "400MiB")
    ran = run(tmp_path / "cases", "--impl", f"python:{PLUGIN}:everything", "-j", "4", *limits, *options)
    assert ran.code == 1
    assert ran.statuses == TEN_WORDS
    for case, (status, reason) in {f"{SUITE}/{way}": TEN[way] for way in TEN}.items():
        assert ran.records[case]["status"] == status
        assert reason in ran.records[case]["reason"]
        assert ran.records[case]["repro"].startswith("mluops run ")
    cases = ElementTree.parse(reports["xml"]).getroot().iter("testcase")
    assert len(list(cases)) == len(TEN)
    for name in ("html", "csv"):
        assert all(f"{SUITE}/{way}" in reports[name].read_text() for way in TEN), name
    assert all(f"{SUITE}/{way}" in reports["md"].read_text() for way in TEN if TEN[way][0] != "pass")
    assert left_behind() == []
    assert not sleeping(987)


def test_memory_of_what_a_case_starts_counts(folder: Path, run: Any) -> None:
    ran = run(folder, "--impl", f"python:{PLUGIN}:child_hoards", "-j", "1", "--memory", "300MiB")
    assert ran.code == 1
    assert ran.records[BAD]["status"] == "crash"
    assert "the limit is 300 MiB (--memory)" in ran.records[BAD]["reason"]
    assert list(ran.statuses.values()).count("pass") == CASES - 1
    assert left_behind() == []


@pytest.mark.usefixtures("_only_hanging_cases_are_late")
@pytest.mark.parametrize(
    ("way", "status"),
    [
        ("segfault", "crash"),
        ("endless", "timeout"),
        pytest.param("hoards", "crash", marks=pytest.mark.slow),
        pytest.param("stray_message", "crash", marks=pytest.mark.slow),
    ],
)
def test_records_of_cases_without_an_answer_say_what_the_case_is(way: str, status: str, folder: Path, run: Any) -> None:
    limit = ("--timeout", "3") if status == "timeout" else ("--memory", "400MiB")
    ran = run(folder, "--impl", f"python:{PLUGIN}:{way}", "-j", "1", *limit)
    assert ran.records[BAD]["status"] == status
    assert ran.records[BAD]["params"] == {"psa_type": 0, "h_mask": 5, "w_mask": 3}
    described = {name: (each["role"], each["dims"]) for name, each in ran.records[BAD]["tensors"].items()}
    assert described == {"x": ("input", [1, 2, 3, 15]), "y": ("output", [1, 2, 3, 6])}
    assert ran.records[BAD]["expected_status"] == ["SUCCESS"]


def test_crashes_are_told_with_what_they_have_in_common(tmp_path: Path, run: Any) -> None:
    for number, h_mask in enumerate((5, 3, 5, 7)):
        write_psamask(tmp_path / "cases", f"case{number}", h_mask=h_mask)
    ran = run(tmp_path / "cases", "--impl", f"python:{PLUGIN}:segfault", "-j", "1")
    assert "2 cases, both with h_mask = 5: psamask_forward, crash: its process died of signal 11" in ran.out


def test_a_crash_keeps_what_was_printed(folder: Path, run: Any) -> None:
    printed = run(folder, "-j", "2", "--impl", f"python:{PLUGIN}:segfault").records[BAD]["printed"]
    assert printed.startswith("about to fall\n")
    assert "misbehaving.py" in printed  # where it fell, from faulthandler


@pytest.mark.usefixtures("_only_hanging_cases_are_late")
@pytest.mark.parametrize("way", ["endless", "stuck_in_c"])
def test_a_hang_is_ended_with_all_it_started(way: str, folder: Path, run: Any) -> None:
    ran = run(folder, "--impl", f"python:{PLUGIN}:{way}", "--timeout", "1", "-j", "2")
    assert ran.code == 1
    assert ran.records[BAD]["status"] == "timeout"
    assert ran.records[BAD]["reason"] == "no answer within 1 s"
    assert list(ran.statuses.values()).count("pass") == CASES - 1
    assert left_behind() == []
    assert not sleeping(987)


def test_a_flood_is_cut_and_harmless(folder: Path, run: Any) -> None:
    ran = run(folder, "--impl", f"python:{PLUGIN}:floods", "-j", "1")
    assert ran.code == 0
    printed = ran.records[BAD]["printed"]
    assert printed.startswith("flood flood")
    assert "bytes ..." in printed
    assert len(printed) < 10_000


@pytest.mark.parametrize("way", ["right_once", "caches"])
def test_every_repeat_is_judged(way: str, folder: Path, run: Any) -> None:
    impl = f"python:{PLUGIN}:{way}"
    assert run(folder, "--impl", impl, "-j", "1").code == 0
    ran = run(folder, "--impl", impl, "-j", "1", "--repeat", "3")
    assert ran.code == 1
    assert ran.records[BAD]["status"] == "fail"
    assert ran.records[BAD]["repeats"] == 2
    assert ran.records[BAD]["reason"].startswith("repeat 2, after right ones: y: ")
    others = [record for case, record in ran.records.items() if case != BAD]
    assert {(record["status"], record["repeats"], record["bit_identical"]) for record in others} == {("pass", 3, True)}


@pytest.mark.parametrize("way", ["child_comes_back_wrong", "child_comes_back_right"])
def test_only_the_process_that_was_called_answers(way: str, folder: Path, run: Any) -> None:
    """Outputs are right as soon as either of the two has written them."""
    ran = run(folder, "--impl", f"python:{PLUGIN}:{way}", "-j", "1")
    assert "returned from the call, and was ended" in ran.records[BAD]["printed"]
    assert {record["status"] for record in ran.records.values()} == {"pass"}


def test_nothing_survives_in_a_session_of_its_own(folder: Path, run: Any) -> None:
    assert run(folder, "--impl", f"python:{PLUGIN}:own_sessions", "-j", "1").code == 0
    assert not sleeping(988, 989)


def test_nothing_survives_a_worker_that_dies_itself(folder: Path, run: Any) -> None:
    host_s_own = subprocess.Popen(["sleep", "60"])  # a child of the process that we are a guest in
    ran = run(folder, "--impl", f"python:{PLUGIN}:dies_beside_own_session", "-j", "1")
    assert host_s_own.poll() is None
    host_s_own.kill()
    host_s_own.wait()
    assert ran.records[BAD]["reason"] == "its process died of signal 11 (SIGSEGV)"
    assert not sleeping(986)


def test_nothing_survives_a_killed_supervisor(folder: Path, tmp_path: Path) -> None:
    impl = f"python:{PLUGIN}:hangs_beside_own_session"
    command = [sys.executable, "-m", "mluops_cli", "run", str(folder), "--impl", impl, "--out", str(tmp_path / "out")]
    supervisor = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: sleeping(985))
    finally:
        supervisor.kill()
        supervisor.wait()
    wait_until(lambda: not sleeping(985))


def test_closed_streams_are_not_left_to_the_next_case(folder: Path, run: Any) -> None:
    ran = run(folder, "--impl", f"python:{PLUGIN}:closes_streams", "-j", "1")
    assert (set(ran.statuses.values()), ran.code) == ({"pass"}, 0)


@pytest.mark.parametrize("way", ["stream_raises", "stream_interrupts", "stream_closes"])
def test_streams_are_ours_again_after_each_case(way: str, tmp_path: Path, run: Any) -> None:
    number = misbehaving.FIRST + list(misbehaving.WAYS).index(way)
    for name, mask in (("1", number), ("2", 3)):
        write_psamask(tmp_path / "cases", name, h_mask=mask)
    ran = run(tmp_path / "cases", "--impl", f"python:{PLUGIN}:says_its_mask", "-j", "1")
    assert ran.statuses == {f"{SUITE}/1": "pass", f"{SUITE}/2": "pass"}
    assert ran.records[f"{SUITE}/2"]["printed"] == "3\n"


def test_used_up_file_descriptors_are_not_the_next_case_s_fault(folder: Path, run: Any) -> None:
    ran = run(folder, "--impl", f"python:{PLUGIN}:leaks", "-j", "1")
    assert (set(ran.statuses.values()), ran.code) == ({"pass"}, 0)


@pytest.mark.parametrize("way", ["closes_pipe", "replaces_pipe"])
def test_a_lost_pipe_is_named(way: str, folder: Path, run: Any) -> None:
    ran = run(folder, "--impl", f"python:{PLUGIN}:{way}", "-j", "1")
    assert ran.records[BAD]["status"] == "crash"
    assert "the pipe to the supervisor is gone: the implementation closed it" in ran.records[BAD]["reason"]
    assert list(ran.statuses.values()).count("pass") == CASES - 1


@pytest.mark.parametrize(
    ("way", "status", "reason"),
    [
        ("stray_bytes", "timeout", "no answer within 2 s"),
        ("stray_bytes_then_right", "crash", "the implementation wrote into it: a message that is not JSON"),
        ("stray_length", "crash", "the implementation wrote into it: a message of 2147483647 bytes"),
        ("stray_message", "crash", "the implementation wrote into it: a message that is no result: 'ready'"),
    ],
)
def test_b1_b2_a_case_that_writes_into_the_channel_ends(
    way: str, status: str, reason: str, folder: Path, run: Any
) -> None:
    ran = run(folder, "--impl", f"python:{PLUGIN}:{way}", "-j", "1", "--timeout", "2")
    assert ran.records[BAD]["status"] == status
    assert reason in ran.records[BAD]["reason"]
    assert list(ran.statuses.values()).count("pass") == CASES - 1
    assert left_behind() == []


def test_b2_a_late_message_answers_no_other_case(folder: Path, tmp_path: Path, run: Any) -> None:
    write_psamask(tmp_path / "cases", "a", h_mask=5)
    write_psamask(tmp_path / "cases", "b", h_mask=misbehaving.FIRST + list(misbehaving.WAYS).index("writes_nothing"))
    (tmp_path / "impl.py").write_text(
        "import time\n"
        "from tests.mluops_cli.execution import misbehaving\n"
        "def f(op, inputs, outputs, params):\n"
        "    if params['h_mask'] == 5:\n"
        "        return misbehaving.stray_message_later(op, inputs, outputs, params)\n"
        "    time.sleep(1)\n"
    )
    ran = run(tmp_path / "cases", "--impl", f"python:{tmp_path}/impl.py:f", "-j", "1")
    assert ran.statuses[f"{SUITE}/a"] == "pass"
    assert ran.statuses[f"{SUITE}/b"] == "crash"
    assert "the implementation wrote into it" in ran.records[f"{SUITE}/b"]["reason"]


def test_f10_shared_memory_counts(folder: Path, run: Any) -> None:
    ran = run(folder, "--impl", f"python:{PLUGIN}:hoards_shared", "-j", "1", "--memory", "500MiB", "--timeout", "60")
    assert ran.records[BAD]["status"] == "crash"
    assert "out of memory: it held " in ran.records[BAD]["reason"]


def test_f11_a_worker_that_dies_while_it_loads_costs_no_case(folder: Path, tmp_path: Path, run: Any) -> None:
    """The second worker is killed while it loads the implementation, as by the system when memory is short."""
    (tmp_path / "impl.py").write_text(
        "import os, pathlib, signal\n"
        "started = pathlib.Path(__file__).parent / 'started'\n"
        "with started.open('a') as file:\n"
        "    file.write('x')\n"
        "if len(started.read_text()) == 2:\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "from tests.mluops_cli.execution.misbehaving import segfault as f\n"
    )
    ran = run(folder, "--impl", f"python:{tmp_path}/impl.py:f", "-j", "1")
    assert {case for case, status in ran.statuses.items() if status != "pass"} == {BAD}
    assert len((tmp_path / "started").read_text()) == 3


def test_e10_what_a_module_prints_on_import_is_kept(folder: Path, tmp_path: Path, run: Any) -> None:
    (tmp_path / "impl.py").write_text(
        "print('card 0 is too hot')\nfrom tests.mluops_cli.execution.misbehaving import right as f\n"
    )
    ran = run(folder, "--impl", f"python:{tmp_path}/impl.py:f", "-j", "1")
    assert [record["printed"] for record in ran.records.values()].count("card 0 is too hot\n") == 1


def test_a_death_while_loading(folder: Path, tmp_path: Path, run: Any) -> None:
    (tmp_path / "dead.py").write_text("import os; os._exit(0)")
    ran = run(folder, "--impl", f"python:{tmp_path}/dead.py:f", "-j", "1")
    assert ran.code == 3
    assert ran.err.endswith("dead.py:f' can't be loaded: its process ended with exit code 0\n")


def test_loading_takes_no_longer_than_a_case(
    folder: Path, tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "_START_LIMIT", 0.5)
    (tmp_path / "spins.py").write_text("while True: pass")
    ran = run(folder, "--impl", f"python:{tmp_path}/spins.py:f", "-j", "1", "--timeout", "1")
    assert ran.code == 3
    assert ran.err.endswith("spins.py:f' can't be loaded: it takes longer than 1 s\n")
    assert left_behind() == []


def test_not_supported_is_a_skip(folder: Path, run: Any) -> None:
    ran = run(folder, "--impl", f"python:{PLUGIN}:not_supported", "-j", "1")
    assert ran.code == 0
    assert ran.records[BAD]["status"] == "skip"


def test_nothing_validated_is_not_a_pass(folder: Path, run: Any) -> None:
    ran = run(folder, "--impl", f"python:{PLUGIN}:never", "-j", "1")
    assert set(ran.statuses.values()) == {"skip"}
    assert ran.code == 1
    assert "nothing was validated" in ran.out
    assert ran.summary["validated"] is False
