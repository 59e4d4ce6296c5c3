"""Two runs compared: which list each change ends up in, and the verdicts on speed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mluops_cli.reports.markdown.changes import changes_markdown, changes_text
from mluops_cli.results.compare import Comparison, compare_runs
from mluops_cli.results.finished import read_run
from tests.mluops_cli.reports.sample import criterion, hostile_records, of_outputs, record, write_run


def compared(tmp_path: Path, old: list[dict[str, Any]], new: list[dict[str, Any]], **environment: Any) -> Comparison:
    before = read_run(write_run(tmp_path / "old", old))
    after = read_run(write_run(tmp_path / "new", new, **environment))
    return compare_runs(before, after)


LISTS = ("newly_failing", "fixed", "appeared", "gone", "changed", "case_changed")


@pytest.mark.parametrize(
    ("before", "after", "lists"),
    [
        ("pass", "pass", []),
        ("fail", "crash", ["changed"]),
        ("pass", "fail", ["newly_failing"]),
        ("skip", "timeout", ["newly_failing"]),
        ("waived", "fail", ["newly_failing"]),
        ("mistrusted", "error", ["newly_failing"]),
        ("pass", "xpass", ["newly_failing"]),
        ("fail", "pass", ["fixed"]),
        ("crash", "empty", ["fixed"]),
        ("fail", "waived", ["changed"]),
        ("fail", "skip", ["changed"]),
        ("pass", "skip", ["changed"]),
        ("pass", "mistrusted", ["changed"]),
        (None, "pass", ["appeared"]),
        (None, "fail", ["newly_failing", "appeared"]),
        ("pass", None, ["gone"]),
        ("fail", None, ["gone"]),
    ],
)
def test_where_a_change_is_told(tmp_path: Path, before: str | None, after: str | None, lists: list[str]) -> None:
    old = [record("op/s/a", before)] if before else []
    new = [record("op/s/a", after)] if after else []
    found = compared(tmp_path, old, new)
    assert [name for name in LISTS if getattr(found, name)] == lists
    for name in lists:
        (change,) = getattr(found, name)
        assert (change.case, change.before, change.after) == ("op/s/a", before or "", after or "")


def with_error(value: float | None, threshold: float = 3e-3, **more: Any) -> list[dict[str, Any]]:
    return [record("op/s/a", outputs={"y": {"criteria": [criterion(value, threshold, **more)]}})]


@pytest.mark.parametrize(
    ("before", "after", "factor"),
    [
        (1e-4, 1.9e-4, None),
        (1e-4, 4e-4, 4.0),
        (1e-4, 1e-5, None),
        (0.0, 1e-5, 0.0),
        (0.0, 0.0, None),
        (1e-4, 5e-3, None),
        (None, 1e-4, None),
    ],
)
def test_errors_that_grow_within_their_threshold(
    tmp_path: Path, before: float | None, after: float, factor: float | None
) -> None:
    found = compared(tmp_path, with_error(before), with_error(after)).grown
    if factor is None:
        assert found == []
    else:
        assert (found[0].factor or 0.0) == pytest.approx(factor)
        assert (found[0].output, found[0].criterion, found[0].threshold) == ("y", "diff1", 3e-3)


def test_parts_of_complex_outputs_are_not_mixed_up(tmp_path: Path) -> None:
    assert compared(tmp_path, with_error(1e-5, part="real"), with_error(1e-3, part="imag")).grown == []


def timed(latency: float | None, low: float | None = None, high: float | None = None) -> list[dict[str, Any]]:
    interval = None if low is None else [low, high]
    return [record("op/s/a", latency_us=latency, latency_interval_us=interval)]


@pytest.mark.parametrize(("before", "after", "verdict", "reason"), [
    (timed(100.0, 99.0, 101.0), timed(100.5, 99.5, 101.5), "SAME", "+0.5%, the intervals overlap"),
    (timed(100.0, 99.9, 100.1), timed(102.0, 101.9, 102.1), "SAME", "+2.0% is less than 3%"),
    (timed(100.0, 99.0, 101.0), timed(150.0, 149.0, 151.0), "SLOW", "+50.0%, the intervals are apart"),
    (timed(100.0, 99.0, 101.0), timed(80.0, 79.0, 81.0), "FAST", "-20.0%, the intervals are apart"),
    (timed(100.0, 90.0, 110.0), timed(108.0, 100.0, 116.0), "AMBG", "+8.0%, but the intervals overlap"),
    (timed(100.0, 50.0, 150.0), timed(300.0, 299.0, 301.0), "AMBG", "too noisy before: between 50 µs and 150 µs"),
    (timed(100.0, 99.0, 101.0), timed(300.0, 100.0, 500.0), "AMBG", "too noisy now: between 100 µs and 500 µs"),
    (timed(100.0), timed(100.0, 99.0, 101.0), "AMBG", "measured without an interval (run --perf)"),
])  # fmt: skip
def test_speed(tmp_path: Path, before: Any, after: Any, verdict: str, reason: str) -> None:
    (timing,) = compared(tmp_path, before, after).timings
    assert (timing.verdict, timing.reason) == (verdict, reason)


def test_untimed_cases_have_no_speed(tmp_path: Path) -> None:
    assert compared(tmp_path, timed(None), timed(100.0, 99.0, 101.0)).timings == []


@pytest.mark.parametrize(("before", "after", "reason"), [
    (timed(0.0, 0.0, 0.0), timed(1e5, 99e3, 101e3), "0 µs before is an error of measurement"),
    (timed(100.0, 99.0, 101.0), timed(0.0, 0.0, 0.0), "0 µs now is an error of measurement"),
    (timed(0.0), timed(0.0), "0 µs before and now is an error of measurement"),
    (timed(100.0, 99.0, 101.0), timed(None), "measured before, not measured now"),
])  # fmt: skip
def test_d23_a_latency_of_0_and_a_missing_one_are_told(tmp_path: Path, before: Any, after: Any, reason: str) -> None:
    found = compared(tmp_path, before, after)
    (timing,) = found.timings
    assert (timing.verdict, timing.reason) == ("AMBG", reason)
    assert bool(found.unmeasured) == (before[0]["latency_us"] > 0)
    assert reason in changes_text(found)
    json.dumps(found.as_json(), allow_nan=False)


def test_another_machine_is_ambiguous(tmp_path: Path) -> None:
    slow = timed(300.0, 299.0, 301.0)
    found = compared(tmp_path, timed(100.0, 99.0, 101.0), slow, environment={"platform": "linux-aarch64"})
    assert found.timings[0].reason == "measured on another platform: linux-x86_64, then linux-aarch64"


def test_a15_runs_on_different_devices_are_incomparable(tmp_path: Path) -> None:
    """The device is in every record; the platform of the client is the same."""
    before, after = timed(100.0, 99.0, 101.0), timed(300.0, 299.0, 301.0)
    before[0]["device"], after[0]["device"] = "MLU370-X8", "MLU590"
    (timing,) = compared(tmp_path, before, after).timings
    assert (timing.verdict, timing.reason) == ("AMBG", "measured on another device: MLU370-X8, then MLU590")
    after[0]["device"] = "MLU370-X8"
    (timing,) = compared(tmp_path, before, after).timings
    assert timing.verdict == "SLOW"


@pytest.mark.parametrize(("hashes", "changed"), [
    (("a", "a"), False), (("a", "b"), True), (("", "b"), None), (("a", ""), None),
])  # fmt: skip
def test_a15_a_changed_case_is_told_from_a_changed_implementation(
    tmp_path: Path, hashes: tuple[str, str], changed: bool | None
) -> None:
    was = record("op/s/a", outputs=with_error(1e-4)[0]["outputs"], latency_interval_us=[120, 121], case_hash=hashes[0])
    now = record("op/s/a", outputs=with_error(4e-4)[0]["outputs"], latency_interval_us=[120, 121], case_hash=hashes[1])
    found = compared(tmp_path / "pass", [was], [now])
    assert [each.case for each in found.case_changed] == (["op/s/a"] if changed else [])
    assert bool(found.grown) is not bool(changed)
    assert [each.reason for each in found.timings] == (
        ["the case file changed"] if changed else ["+0.0%, the intervals overlap"]
    )
    failing = compared(tmp_path / "fail", [was], [record("op/s/a", "fail", case_hash=hashes[1])])
    (change,) = failing.newly_failing
    assert change.case_changed is changed
    assert ("[case file changed] the reason of a fail" in changes_text(failing)) is bool(changed)


@pytest.mark.parametrize(("before", "after", "list_of"), [
    (False, True, "newly_beyond"), (True, False, "within_again"), (False, False, ""), (True, True, ""),
    (None, True, ""), (True, None, ""), (None, False, ""), (False, None, ""), (None, None, ""),
])  # fmt: skip
def test_crossing_the_error_bound_is_told_where_both_runs_know(
    tmp_path: Path, before: bool | None, after: bool | None, list_of: str
) -> None:
    def outputs(beyond: bool | None) -> dict[str, Any]:
        return of_outputs("op/s/a", beyond=beyond, y={"bound_sentence": "[1]: 3 x"} if beyond else {})

    found = compared(tmp_path, [outputs(before)], [outputs(after)])
    told = {name: [each.case for each in getattr(found, name)] for name in ("newly_beyond", "within_again")}
    assert told == {name: ["op/s/a"] if name == list_of else [] for name in told}
    assert found.changed == []
    text = changes_text(found)
    line = "newly beyond the error bound (1)\n  op/s/a  within -> beyond  y: [1]: 3 x\n"
    assert (line in text) is (list_of == "newly_beyond")
    assert ("within the error bound again (1)\n  op/s/a  beyond -> within\n" in text) is (list_of == "within_again")


def test_a_failure_says_more_than_the_error_bound(tmp_path: Path) -> None:
    within, wrong = of_outputs("op/s/a", beyond=False), of_outputs("op/s/a", "fail", beyond=True)
    failed, fixed = compared(tmp_path / "a", [within], [wrong]), compared(tmp_path / "b", [wrong], [within])
    assert (len(failed.newly_failing), failed.newly_beyond) == (1, [])
    assert (len(fixed.fixed), fixed.within_again) == (1, [])


def test_repeats_that_vary_otherwise_are_told_per_output(tmp_path: Path) -> None:
    def repeats(**verdicts: str | None) -> list[dict[str, Any]]:
        return [record("op/s/a", outputs={name: {"repeat": verdict} for name, verdict in verdicts.items()})]

    was = repeats(same="identical", worse="identical", better="varies_beyond_bound", unknown=None, lost="identical")
    now = repeats(
        same="identical", worse="varies_within_bound", better="identical", unknown="varies_beyond_bound", lost=None
    )
    found = compared(tmp_path, was, now)
    assert [(each.before, each.after, each.reason) for each in found.repeats] == [
        ("identical", "varies_within_bound", "output worse"),
        ("varies_beyond_bound", "identical", "output better"),
    ]
    assert "changed repeats (2)\n  op/s/a  identical -> varies_within_bound  output worse\n" in changes_text(found)
    assert "## Changed repeats (2)" in changes_markdown(found)


def test_it_is_told_as_table_markdown_and_json(tmp_path: Path) -> None:
    old = [record("op/s/a"), record("op/s/b", "fail"), *({**record(f"op/s/t{n}")} for n in range(5))]
    new = [record("op/s/a", "fail", reason="a | pipe"), record("op/s/b"), *({**record(f"op/s/t{n}")} for n in range(5))]
    found = compared(tmp_path, old, new)
    text = changes_text(found)
    assert "newly failing (1)\n  op/s/a  pass -> fail  a | pipe\n" in text
    assert "fixed (1)\n  op/s/b  fail -> pass" in text
    assert "7 cases  unclear  measured without an interval" in text
    assert text.splitlines()[-1].startswith("7 cases compared: 1 newly failing, 1 fixed, 0 changed, 0 appeared, 0 gone")
    assert "| `op/s/a` | pass -&gt; fail | a \\| pipe |" in changes_markdown(found)
    read = json.loads(json.dumps(found.as_json(), allow_nan=False))
    assert read["newly_failing"] == [
        {"case": "op/s/a", "before": "pass", "after": "fail", "reason": "a | pipe", "case_changed": None}
    ]


def test_hostile_texts_stay_in_their_lines(tmp_path: Path) -> None:
    found = compared(tmp_path, [], hostile_records())
    text = changes_text(found)
    assert len(text.splitlines()) == 1 + 7 + 1 + len(hostile_records()) + 1
    assert "\x1b" not in text
    assert len(changes_markdown(found).splitlines()) == len(changes_markdown(found).split("\n")) - 1 + (
        0 if changes_markdown(found).endswith("\n") else 1
    )
