from __future__ import annotations

import io
import time
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from mluops_cli.core.case_options import CaseOptions
from mluops_cli.core.events import CaseFinished, Heartbeat, RunFinished, RunStarted, WorkerLost
from mluops_cli.core.record import Record
from mluops_cli.core.statuses import Status
from mluops_cli.core.tally import Tally
from mluops_cli.reports.console import ROWS, ConsoleReport


def record(number: int, status: Status = "pass", **more: Any) -> Record:
    criterion = {"name": "diff1", "value": number * 1e-4, "threshold": 3e-3, "passed": status == "pass"}
    outputs = more.pop("outputs", {"out": {"criteria": [criterion]}})
    return Record(f"op/general/case{number:05}", "op", "general", "f.pb", "x", status, outputs=outputs, **more)


def shown(records: list[Record], *, not_run: int = 0, width: int = 60, reasons: str = "") -> str:
    out = io.StringIO()
    report = ConsoleReport(Console(file=out, width=width, force_terminal=False), reasons)
    tally = Tally()
    for each in records:
        tally.add(each.counted)
    report(RunStarted(CaseOptions("x"), len(records), 1, Path("out")))
    for each in records:
        report(CaseFinished(each))
    report(RunFinished(tally, tally.exit_code(), 1.5, not_run))
    return out.getvalue()


def test_a_row_per_case_with_its_worst_criterion() -> None:
    text = shown([record(number) for number in range(3)], width=100)
    assert "op/general/case00002  pass    out diff1 0.0002 <= 0.003" in text
    assert text.endswith("3 cases in 1.5 s: 3 pass\n")


def test_many_cases_are_summed_up_but_every_failure_is_named() -> None:
    reason = "a reason that is much longer than the sixty columns of this console, and must stay in one line"
    records = [record(number) for number in range(500)]
    records[7::100] = [
        record(number, "fail", reason=reason, repro=f"mluops run {number}.pb") for number in range(7, 500, 100)
    ]
    lines = shown(records).splitlines()
    assert len(lines) < ROWS
    assert sum("5 fail, 495 pass" in line for line in lines) == 2  # in the table and at the end
    at = lines.index(f"FAIL op/general/case00007: {reason}")
    assert lines[at - 1] == f"5 cases: op, {reason}; the smallest:"
    assert lines[at + 1] == "  repro: mluops run 7.pb"
    assert lines[at + 2 : at + 6] == [f"  alike: op/general/case{number:05}" for number in range(107, 500, 100)]


def test_d15_the_smallest_failing_case_is_first_and_others_of_its_kind_are_only_named() -> None:
    tensors = [{"x": {"dims": [size, 2]}} for size in (50, 3, 40)]
    kinds = ("another reason", "a reason", "a reason")
    records = [
        record(
            number,
            "fail",
            reason=kinds[number],
            tensors=tensors[number],
            params={"w": 2 + number // 2},
            repro="mluops run x",
        )
        for number in range(3)
    ]
    lines = shown([*records, record(3, tensors=tensors[0], params={"w": 9})]).splitlines()
    at = lines.index("2 cases, both with w of 3 or less: op, a reason; the smallest:")
    assert lines[at + 1].startswith("FAIL op/general/case00001: a reason")
    assert lines[at + 3 : at + 5] == ["  alike: op/general/case00002", "FAIL op/general/case00000: another reason"]
    many = shown([record(number, "fail", reason="a reason") for number in range(30)]).splitlines()
    assert sum(line.startswith("  alike: ") for line in many) == 9
    assert "  20 more are alike: --html and --csv list them" in many


def test_a_failing_criterion_goes_before_every_passing_one() -> None:
    assert "case00001  fail    out diff1 0.0001 > 0.003" in shown([record(1, "fail")], width=100)


def test_hostile_texts_cannot_act_on_the_terminal() -> None:
    text = shown([record(1, "fail", reason="\x1b[31m[bold]red\nFAIL forged\r\x07\ud800")])
    (line,) = (line for line in text.splitlines() if line.startswith("FAIL"))
    assert line.endswith(r"\x1b[31m[bold]red\nFAIL forged\r\x07\ud800")


def test_hostile_names_cannot_act_on_the_terminal_either() -> None:
    name = "op/external/\x1b[2Jgone\r\n"
    hostile = Record(
        name, "o\x07p", "s\x1bt", "f.pb", "x", "fail", outputs={"y\x1b": {"criteria": [{"name": "diff1"}]}}
    )
    for count in (1, ROWS + 1):  # the table of cases, and that of suites
        text = shown([hostile] * count, width=200)
        assert not set(text) & set("\x1b\x07\r")
        assert r"\x1b[2Jgone\r\n" in text


def test_the_table_says_what_decided() -> None:
    status = record(1, "fail", operator_status="SUCCESS", reason="expected BAD_PARAM, got SUCCESS")
    status.outputs = {}
    assert "case00001  fail    expected BAD_PARAM, got SUCCESS" in shown([status], width=200)
    nothing = record(2, "mistrusted", operator_status="SUCCESS", reason="nothing was compared")
    nothing.outputs = {}
    assert "case00002  mistrusted  nothing was compared" in shown([nothing], width=200)
    refused = record(3, operator_status="BAD_PARAM")
    refused.outputs = {}
    assert "case00003  pass    BAD_PARAM" in shown([refused], width=200)


def test_d3_what_an_implementation_printed_last_stands_under_its_failure() -> None:
    report = "==1==ERROR: AddressSanitizer: heap-buffer-overflow kernel.c:12"
    printed = "".join(f"line {n}\n" for n in range(100)) + f"{report}\n\x1b[31m\n"
    crashed = record(1, "crash", reason="ended with exit code 1", printed=printed, repro="mluops run x.pb")
    lines = shown([crashed]).splitlines()
    at = lines.index("  printed (the last 20 of 102 lines; all are in results.jsonl):")
    assert lines[at - 1].startswith("CRASH op/general/case00001: ended with exit code 1")
    assert lines[at + 1 : at + 21] == [*(f"    line {n}" for n in range(82, 100)), f"    {report}", r"    \x1b[31m"]
    assert lines[at + 21] == "  repro: mluops run x.pb"
    short = shown([record(1, "fail", printed="only this"), record(2, printed="of a pass")])
    assert "  printed:\n    only this\n" in short
    assert "of a pass" not in short
    legend = "Shadow bytes around the buggy address:\n" + "  0x1: fa\n" * 30
    under_asan = shown([record(1, "crash", printed=f"{report}\n    #0 main kernel.c:12\n{legend}")])
    assert f"  printed:\n    {report}\n        #0 main kernel.c:12\n" in under_asan
    assert "0x1: fa" not in under_asan


def test_c3_unexpected_answers_beyond_the_design_are_told() -> None:
    answered = record(1, operator_status="SUCCESS", expected_status=["BAD_PARAM"], beyond_design=True)
    answered.reason = "answered SUCCESS, not BAD_PARAM: no design demands that"
    text = shown([answered, record(2, operator_status="SUCCESS")])
    assert f"op/general/case00001: {answered.reason}\n" in text
    assert "1 unexpected answer where no design demands a status: --strict fails on them\n" in text
    assert "unexpected" not in shown([record(2)])


def test_outputs_that_vary_beyond_rounding_are_told() -> None:
    outputs = {"y": {"repeat": "varies_beyond_bound"}, "z": {"repeat": "varies_within_bound"}}
    line = "VARIES op/general/case00001: y: repeats differ by more than rounding explains\n"
    assert line in shown([record(1, outputs=outputs), record(2)])
    assert "VARIES" not in shown([record(1, outputs={"z": outputs["z"]})])


@pytest.mark.parametrize(("number", "words"), [(1, "1 case in 1.5 s"), (2, "2 cases in 1.5 s")])
def test_d19_one_case_is_no_plural(number: int, words: str) -> None:
    text = shown([record(n) for n in range(number)], not_run=number)
    assert words in text
    assert f"running {words[:-9]} on x" in text
    assert ("1 case was not run" if number == 1 else "2 cases were not run") in text


def test_cases_that_were_not_run_are_said() -> None:
    assert "4 cases were not run" in shown([record(1)], not_run=4)


def test_a_line_now_and_then_shows_that_it_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    out = io.StringIO()
    report = ConsoleReport(Console(file=out, width=60, force_terminal=False))
    report(RunStarted(CaseOptions("x"), 9, 1, Path("out")))
    for _ in range(100):
        now += 1.0
        report(Heartbeat((("op/general/slow", now - 100),), 2))
    lines = out.getvalue().splitlines()[1:]
    assert lines == [f"2 of 9 cases finished; running: op/general/slow ({seconds} s)" for seconds in (30, 60, 90)]


def test_ids_are_never_folded_where_there_is_no_terminal() -> None:
    long = "psamask_forward/general/" + "a_name_of_a_case_that_is_longer_than_any_console_" * 5
    each = record(1)
    each.case = long
    text = shown([each, record(2)], width=40)
    assert f"{long}  pass    out diff1 0.0001 <= 0.003" in text
    assert len(text.splitlines()) == 5


def test_d17_speed_is_shown_in_units_that_keep_digits() -> None:
    timed = record(1, latency_us=1500.0, io_efficiency=0.42, compute_efficiency=0.01)
    timed.perf = {"relative_error": 0.013, "bottleneck": "io"}
    timed.perf |= {"peak_bandwidth": 6.0087e9, "peak_ops": 44.84e9, "peaks": "measured on this machine"}
    tiny = record(4, latency_us=4.2134, io_efficiency=0.00031)
    tiny.perf = {"relative_error": None, "bottleneck": "io"}
    wrong = record(2, latency_us=1.0)
    wrong.perf = {"relative_error": None, "bottleneck": "io", "problem": "error of measurement: io efficiency 250.0%"}
    text = shown([timed, wrong, record(3), tiny])
    assert "1.5 ms ±1%  42.0% of bandwidth" in text
    assert "4.21 µs     0.031% of bandwidth" in text
    assert "efficiencies are fractions of these peaks: 6.01 GB/s and 44.8 Gop/s (measured on this machine)\n" in text
    assert "op/general/case00002: error of measurement: io efficiency 250.0%" in text
    assert "efficiency" not in shown([record(3)])


def test_a_fleet_says_who_did_what_and_who_was_lost() -> None:
    out = io.StringIO()
    report = ConsoleReport(Console(file=out, width=60, force_terminal=False))
    report(RunStarted(CaseOptions("x"), 9, 2, Path("out")))
    report(WorkerLost("gpu-1", "gone", "op/general/slow", 3))
    report(Heartbeat((), 4, (("gpu-0", 3), ("gpu-1", 1))))
    report(RunFinished(Tally(Counter({"crash": 1, "pass": 8})), 1, 1.5))
    lines = out.getvalue().splitlines()
    assert "worker gpu-1 is lost: gone, it was running op/general/slow, 3 cases go to other workers" in lines
    assert "finished by worker: gpu-0 3, gpu-1 1" in lines


@pytest.mark.slow
def test_f14_memory_does_not_grow_with_failing_cases() -> None:
    report = ConsoleReport(Console(file=io.StringIO(), width=60, force_terminal=False))
    report(RunStarted(CaseOptions("x"), 5000, 1, Path("out")))

    def fail(numbers: range) -> None:
        for number in numbers:
            report(CaseFinished(record(number, "fail", reason="no" * 500, printed=f"{number}\n" * 1500)))

    fail(range(1000))  # the table's rows, and the first texts
    tracemalloc.start()
    fail(range(1000, 5000))
    grown = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert grown < 4000 * 100
    report(RunFinished(Tally(), 1, 1.0))


def test_d15_reasons_of_what_does_not_fail_are_listed_where_they_are_asked_for() -> None:
    records = [record(number, "skip", reason=f"no kernel {number % 2}") for number in range(3)]
    records += [record(3, "mistrusted", reason="zeros pass too"), record(4)]
    lines = shown(records, reasons="s").splitlines()
    at = lines.index("SKIP 2 cases: no kernel 0")
    assert lines[at + 1 : at + 5] == [
        "  op/general/case00000",
        "  op/general/case00002",
        "SKIP 1 case: no kernel 1",
        "  op/general/case00001",
    ]
    assert not any(line.startswith("MISTRUSTED") for line in lines)
    assert "MISTRUSTED 1 case: zeros pass too" in shown(records, reasons="sm").splitlines()
    assert "SKIP" not in shown(records)


def test_ids_stay_whole_on_a_narrow_terminal() -> None:
    out = io.StringIO()
    report = ConsoleReport(Console(file=out, width=50, force_terminal=True, color_system=None))
    report(RunStarted(CaseOptions("x"), 2, 1, Path("out")))
    for number in (1, 2):
        report(CaseFinished(record(number)))
    report.close()
    report(RunFinished(Tally(), 0, 1.0))
    lines = [line.rstrip() for line in out.getvalue().split("\n")]
    at = next(number for number, line in enumerate(lines) if line.endswith("op/general/case00001"))
    assert lines[at + 1] == "  pass  out diff1 0.0001 <= 0.003"
    assert lines[at + 2 : at + 4] == ["op/general/case00002", "  pass  out diff1 0.0002 <= 0.003"]
