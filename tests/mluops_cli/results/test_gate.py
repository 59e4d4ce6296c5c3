"""Every rule of the gate, holding and broken; and policies that are wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mluops_cli.results.finished import FinishedRun, read_run
from mluops_cli.results.gate import Policy, broken_rules, load_policy
from schemas.errors import InputError
from tests.mluops_cli.reports.sample import criterion, record, write_run


def a(status: str = "pass", name: str = "a", **more: Any) -> dict[str, Any]:
    return record(f"op/general/{name}", status, **more)


def run_of(tmp_path: Path, records: list[dict[str, Any]], **summary: Any) -> FinishedRun:
    return read_run(write_run(tmp_path / "new", records, **summary))


def policy_of(tmp_path: Path, text: str) -> Policy:
    (tmp_path / "gate.yaml").write_text(text, encoding="utf-8")
    return load_policy(tmp_path / "gate.yaml")


def test_the_default_holds_for_passes(tmp_path: Path) -> None:
    records = [a(), a("empty", "b"), a("skip", "c"), a("waived", "d")]
    assert broken_rules(run_of(tmp_path, records), Policy()) == []


@pytest.mark.parametrize("status", ["fail", "error", "crash", "timeout", "xpass"])
def test_the_default_breaks_on_each_failure(tmp_path: Path, status: str) -> None:
    assert broken_rules(run_of(tmp_path, [a(), a(status, "b")]), Policy()) == ["1 case failed: op/general/b."]


def test_the_default_breaks_on_mistrusted(tmp_path: Path) -> None:
    broken = broken_rules(run_of(tmp_path, [a(), a("mistrusted", "b")]), Policy())
    assert broken == ["1 case passed without proving anything: op/general/b."]


@pytest.mark.parametrize(("records", "sentence"), [
    ([], "Nothing was run."),
    ([a("skip")], "0 cases passed, at least 1 must."),
    ([a("waived")], "0 cases passed, at least 1 must."),
    ([a("empty")], "0 cases passed, at least 1 must."),
])  # fmt: skip
def test_nothing_run_or_validated_is_broken(tmp_path: Path, records: list[dict[str, Any]], sentence: str) -> None:
    assert broken_rules(run_of(tmp_path, records), Policy()) == [sentence]


def test_an_incomplete_run_is_broken(tmp_path: Path) -> None:
    assert broken_rules(run_of(tmp_path, [a()], not_run=3), Policy()) == ["The run did not finish: 3 cases not run."]
    out = write_run(tmp_path / "killed", [a()])
    (out / "summary.json").unlink()
    assert broken_rules(read_run(out), Policy()) == ["The run did not finish, it was interrupted."]
    assert broken_rules(read_run(out), Policy(complete=False)) == []


def test_a_shard_alone_is_broken(tmp_path: Path) -> None:
    broken = ["The results are only shard 1/3: merge the shards first (mluops merge)."]
    shard = run_of(tmp_path, [a()], shard="1/3", selection={"cases": 3, "digest": "d"})
    assert broken_rules(shard, Policy()) == broken
    assert broken_rules(shard, Policy(complete=False)) == []
    assert broken_rules(run_of(tmp_path, [a("skip")], shard="1/3"), Policy())[-1:] == broken
    assert broken_rules(run_of(tmp_path, [a()], shard="1/1"), Policy()) == []
    assert broken_rules(run_of(tmp_path, [a()], shard=""), Policy()) == []  # merged


def test_a_run_that_did_not_look_at_bounds_says_nothing_of_them(tmp_path: Path) -> None:
    run = run_of(tmp_path, [a()], options={"bound": "off"})
    assert broken_rules(run, Policy(beyond_bound=0)) == [
        "No case was held against its error bound: run without --bound off."
    ]
    assert broken_rules(run, Policy()) == []


@pytest.mark.parametrize(
    ("text", "records", "sentence"),
    [
        ("no_failures: false", [a(), a("fail", "b")], None),
        ("no_failures: true", [a(), a("fail", "b")], "1 case failed: op/general/b."),
        ("no_mistrusted: false", [a(), a("mistrusted", "b")], None),
        ("no_mistrusted: true", [a(), a("mistrusted", "b")], "1 case passed without proving anything: op/general/b."),
        ("max_waived: 1", [a(), a("waived", "b")], None),
        ("max_waived: 0", [a(), a("waived", "b")], "1 case waived, at most 0 may be: op/general/b."),
        ("max_skipped: 1", [a(), a("skip", "b")], None),
        (
            "max_skipped: 1",
            [a(), a("skip", "b"), a("skip", "c")],
            "2 cases skipped, at most 1 may be: op/general/b, op/general/c.",
        ),
        ("repeat: identical", [a(outputs={"y": {"repeat": "identical"}}), a("empty", "b")], None),
        ("repeat: identical", [a()], "No case has the outputs of several calls: run with --repeat 2."),
        (
            "repeat: identical",
            [a(outputs={"y": {"repeat": "varies_within_bound"}, "z": {"repeat": "identical"}})],
            "1 case with outputs that vary between repeats, they must be identical: op/general/a.",
        ),
        ("repeat: within_bound", [a(outputs={"y": {"repeat": "varies_within_bound"}})], None),
        (
            "repeat: within_bound",
            [a(outputs={"y": {"repeat": "varies_beyond_bound"}}), a(name="b", outputs={"y": {"repeat": "identical"}})],
            "1 case with outputs that vary between repeats, they must vary within the error bound: op/general/a.",
        ),
        (
            "repeat: within_bound",
            [a(outputs={"y": {"repeat": "varies"}})],
            "1 case with outputs that vary between repeats, they must vary within the error bound: op/general/a.",
        ),
        ("beyond_bound: 1", [a(beyond_bound=True)], None),
        (
            "beyond_bound: 1",
            [a(name=name, beyond_bound=True) for name in "abc"],
            "3 cases passed beyond the error bound, at most 1 may: op/general/a, op/general/b, op/general/c.",
        ),
        ("max_skipped_fraction: 0.5", [a(), a("skip", "b")], None),
        ("max_skipped_fraction: 0.5", [a(), a("skip", "b", expected_status=["BAD_PARAM"]), a("skip", "c")], None),
        (
            "max_skipped_fraction: 0.5",
            [a(), a("skip", "b"), a("skip", "c")],
            "op: 2 of 3 valid cases skipped (66.7%), at most 50.0% may be.",
        ),
        ("min_passed: 2", [a(), a(name="b")], None),
        ("min_passed: 3", [a(), a(name="b")], "2 cases passed, at least 3 must."),
        ("min_cases: {op: 2}", [a(), a("empty", "b")], None),
        ("min_cases: {op: 2}", [a(), a("skip", "b")], "op: 1 case validated, at least 2 must be."),
        ("min_cases: {gone: 1}", [a()], "gone: 0 cases validated, at least 1 must be."),
        ("efficiency: [{case: 'op/*', io: 0.4}]", [a()], None),
        (
            "efficiency: [{case: 'op/*', io: 0.6}]",
            [a()],
            "op/general/a: io efficiency is 45.0%, at least 60.0% must be.",
        ),
        ("efficiency: [{compute: 0.2}]", [a()], None),
        ("efficiency: [{compute: 0.3}]", [a()], "op/general/a: compute efficiency is 20.0%, at least 30.0% must be."),
        ("efficiency: [{either: 0.45}]", [a()], None),
        ("efficiency: [{either: 0.5}]", [a()], "op/general/a: the better efficiency is 45.0%, at least 50.0% must be."),
        (
            "efficiency: [{case: 'op/*', io: 0.1}]",
            [a(io_efficiency=None, compute_efficiency=None)],
            "No passing case of op/* has an efficiency: run with --perf.",
        ),
        (
            "efficiency: [{io: 0.1}]",
            [a(latency_us=0.0, io_efficiency=0.9)],
            "No passing case of * has an efficiency: run with --perf.",
        ),
        (
            "efficiency: [{io: 0.1}]",
            [a(), a(name="b", io_efficiency=None, compute_efficiency=None), a(name="c", latency_us=0.0)],
            "*: 2 cases without a valid measurement: op/general/b, op/general/c.",
        ),
        (
            "efficiency: [{io: 0.1}]",
            [a(io_efficiency=None)],
            "op/general/a: io efficiency is unknown, at least 10.0% must be.",
        ),
        ("efficiency: [{io: 0.1}]", [a(), a("fail", "b", io_efficiency=None)], "1 case failed: op/general/b."),
        (
            "efficiency: [{io: 0.1}]",
            [a(), a(name="b", expected_status=["BAD_PARAM"], io_efficiency=None, compute_efficiency=None)],
            None,
        ),
        ("efficiency: [{case: 'op/general/a[1]', io: 0.1}]", [a(), a(name="a[1]")], None),
        (
            "efficiency: [{case: 'op/general/[ab]', io: 0.1}]",
            [a()],
            "No passing case of op/general/[ab] has an efficiency: run with --perf.",
        ),
    ],
)
def test_rules(tmp_path: Path, text: str, records: list[dict[str, Any]], sentence: str | None) -> None:
    broken = broken_rules(run_of(tmp_path, records), policy_of(tmp_path, text))
    assert broken == ([] if sentence is None else [sentence])


@pytest.mark.parametrize(("text", "old", "new", "sentence"), [
    ("{}", [a()], [a()], None),
    ("{}", [a(), a(name="b")], [a(), a("fail", "b")], "1 case newly failing: op/general/b."),
    ("{newly_failing: false}", [a(), a(name="b")], [a(), a("fail", "b")], None),
    ("{}", [a(), a("fail", "b")], [a(), a("crash", "b")], None),
    ("{appeared: true}", [a()], [a(), a(name="b")], "1 case not in the base run: op/general/b."),
    ("{appeared: false}", [a()], [a(), a(name="b")], None),
    ("{gone: true}", [a(), a(name="b")], [a()], "1 case gone since the base run: op/general/b."),
    ("{changed: true}", [a(), a(name="b")], [a(), a("skip", "b")],
     "1 case with another status than in the base run: op/general/b."),
    ("{slow: true}", [a(latency_interval_us=[119, 121])], [a(latency_us=180.0, latency_interval_us=[179, 181])],
     "1 case slower than in the base run: op/general/a."),
    ("{slow: true}", [a(latency_interval_us=[119, 121])], [a(latency_interval_us=[119, 121])], None),
    ("{slow: true}", [a(latency_interval_us=[119, 121])], [a(latency_us=None)],
     "1 case without the measurement that the base run has: op/general/a."),
    ("{slow: true}", [a(latency_interval_us=[119, 121])], [a(latency_us=0.0)],
     "1 case without the measurement that the base run has: op/general/a."),
    ("{slow: true}", [a(latency_us=None)], [a(latency_us=None)], None),
    ("{grown: 3}", [a()], [a(outputs={"y": {"criteria": [criterion(4e-4, 3e-3)]}})],
     "1 case with an error over 3 times the base run's: op/general/a."),
    ("{grown: 5}", [a()], [a(outputs={"y": {"criteria": [criterion(4e-4, 3e-3)]}})], None),
])  # fmt: skip
def test_rules_against_a_base_run(
    tmp_path: Path, text: str, old: list[dict[str, Any]], new: list[dict[str, Any]], sentence: str | None
) -> None:
    base = read_run(write_run(tmp_path / "old", old))
    policy = policy_of(tmp_path, f"no_failures: false\nagainst_base: {text}")
    assert broken_rules(run_of(tmp_path, new), policy, base) == ([] if sentence is None else [sentence])


def test_a_comparison_needs_a_base(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="name the run to compare with by --base"):
        broken_rules(run_of(tmp_path, [a()]), policy_of(tmp_path, "against_base: {}"))


def test_an_empty_policy_is_the_default(tmp_path: Path) -> None:
    assert policy_of(tmp_path, "# nothing\n") == Policy()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no_failure: true", "gate.yaml:1:1: no_failure: unknown key 'no_failure': did you mean 'no_failures'?"),
        ("max_waived: many", "gate.yaml:1:13: max_waived: found 'many', expected an integer of 0 or more, or null"),
        ("max_waived: -1", "gate.yaml:1:13: max_waived: found -1, expected an integer of 0 or more, or null"),
        ("min_passed: 0", "gate.yaml:1:13: min_passed: found 0, expected an integer of 1 or more"),
        (
            "efficiency:\n  - case: x\n    io: 60",
            "gate.yaml:3:9: efficiency[0].io: found 60, expected a number above 0, at most 1, or null",
        ),
        ("efficiency:\n  - ioo: 0.6", "gate.yaml:2:5: efficiency[0].ioo: unknown key 'ioo': did you mean 'io'?"),
        (
            "against_base: {slower: true}",
            "gate.yaml:1:16: against_base.slower: unknown key 'slower': did you mean 'slow'?",
        ),
        ("- a", "gate.yaml:1:1: found ['a'], expected a mapping"),
    ],
)
def test_a_wrong_policy_names_its_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        policy_of(tmp_path, text)
    assert f"{tmp_path}/{message}" in str(raised.value)
