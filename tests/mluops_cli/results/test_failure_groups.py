from __future__ import annotations

from typing import Any

import pytest

from mluops_cli.core.record import Record
from mluops_cli.core.statuses import Status
from mluops_cli.results.common_traits import Seen, add_traits, in_common
from mluops_cli.results.failure_groups import LISTED, FailureGroups


def record(name: str, status: Status = "pass", dims: tuple[int, ...] = (4, 4), word: str = "", **params: Any) -> Record:
    made = Record(f"op/general/{name}", "op", "general", "f.pb", "x", status)
    made.tensors = {"x": {"role": "input", "dtype": "float", "layout": "NHWC", "dims": [*dims]}}
    made.params = params
    if word:
        patterns = [{"word": "shifted", "text": word}]
        made.outputs = {"y": {"diagnosis": {"patterns": patterns, "regions": []}}}
    return made


def test_cases_that_fail_alike_are_one_group_with_the_smallest_first() -> None:
    shifted = "shifted by 1 along axis 2"
    crash = record("other", "crash", (2, 3), w_mask=3)
    crash.reason = "signal 11"
    groups = FailureGroups(
        [
            record("large", "fail", (9, 9), shifted, w_mask=4),
            record("small", "fail", (2, 2), shifted, w_mask=6),
            record("right", dims=(3, 3), w_mask=3),
            crash,
            record("middle", "fail", (3, 3), shifted, w_mask=2),
        ]
    ).groups()
    assert [str(group) for group in groups] == [
        "3 cases, all with even w_mask: op: y, shifted by 1 along axis 2",
        "1 case: op, crash: signal 11",
    ]
    assert groups[0].smallest.case == "op/general/small"
    assert groups[0].cases == ["op/general/small", "op/general/middle", "op/general/large"]


def test_numbers_that_differ_are_left_out_of_what_is_wrong() -> None:
    (group,) = FailureGroups(record(f"{by}", "fail", word=f"shifted by {by}") for by in (1, 2)).groups()
    assert str(group) == "2 cases: op: y, shifted"
    raised = [record(name, "error") for name in "abc"]
    for number, each in zip((7, 7, 9), raised, strict=True):
        each.reason = f"raised KeyError: 0 (kernel.py:{number})"
    assert str(FailureGroups(raised[:2]).groups()[0]) == "2 cases: op, error: raised KeyError: 0 (kernel.py:7)"
    assert str(FailureGroups(raised).groups()[0]) == "3 cases: op, error: raised KeyError: N (kernel.py:N)"


def test_what_is_kept_of_many_failures_is_bounded() -> None:
    alike = FailureGroups(record(f"{at:03}", "fail", (at + 1,), "shifted") for at in range(100))
    (group,) = alike.groups()
    assert (group.count, group.cases[0], len(group.cases), group.more) == (100, "op/general/000", LISTED, 90)
    unlike = FailureGroups()
    for at in range(700):
        each = record(f"{at}", "fail")
        each.reason = "letter " + chr(0x4E00 + at)
        unlike.add(each)
    assert (len(unlike.groups()), unlike.further) == (500, 200)


def test_invalid_calls_are_compared_with_invalid_calls() -> None:
    """Their parameters are odd on purpose: what a legal call passes says nothing of them."""
    refused = record("refused", w_mask=2)
    refused.expected_status = ["BAD_PARAM"]
    legal = [record("a", "fail", w_mask=4), record("b", "fail", w_mask=6), record("c", w_mask=3), record("d", w_mask=7)]
    (group,) = FailureGroups([*legal, refused]).groups()
    assert group.common == "even w_mask"


def test_one_exception_in_valid_and_invalid_cases_has_two_titles() -> None:
    valid, invalid, refused = (record(name, "error") for name in ("a", "b", "c"))
    invalid.expected_status = refused.expected_status = ["BAD_PARAM"]
    for each in (valid, invalid, refused):
        each.reason = "raised KeyError: 0"
    assert [str(group) for group in FailureGroups([valid, invalid, refused]).groups()] == [
        "1 valid case: op, error: raised KeyError: 0",
        "2 invalid cases: op, error: raised KeyError: 0",
    ]
    groups = FailureGroups([valid, invalid]).groups()
    told = ["op, error: raised KeyError: 0 (valid cases)", "op, error: raised KeyError: 0 (invalid cases)"]
    assert [group.title for group in groups] == told
    assert [group.title for group in FailureGroups([invalid, refused]).groups()] == ["op, error: raised KeyError: 0"]


def test_a_case_alone_has_nothing_in_common_and_neither_has_an_operator_that_never_passes() -> None:
    (alone,) = FailureGroups([record("a", "fail", w_mask=4), record("b", w_mask=3)]).groups()
    (never,) = FailureGroups([record("a", "fail", w_mask=4), record("b", "fail", w_mask=4)]).groups()
    assert (alone.common, never.common) == ("", "")


@pytest.mark.parametrize(
    ("failing", "passing", "text"),
    [
        ((2, 4, 10), (1, 3, 7), "even w"),
        ((3, 5), (2, 8), "odd w"),
        ((17, 40), (1, 16), "w of 17 or more"),
        ((1, 2), (3, 9), "w of 2 or less"),
        ((64, 192), (1, 70, 200), "w a multiple of 64"),
        ((65, 130, 7), (64, 128), "w no multiple of 64"),
        ((5, 5), (4, 6), "w = 5"),
        ((2, 3, 9), (4, 8, 1), ""),
        ((2, 4), (2, 7), ""),
        (("half",), ("float", "bfloat16"), "w = half"),
        ((0.5, 2.5), (1.5,), ""),
    ],
)
def test_what_tells_failing_values_from_passing_ones(failing: Any, passing: Any, text: str) -> None:
    found: list[Seen] = []
    for values in (failing, passing):
        seen: Seen = {}
        for value in values:
            add_traits(seen, record("x", w=value))
        found.append(seen)
    assert in_common(*found) == text


@pytest.mark.parametrize("last", [3, 4, 5])
def test_of_many_passing_cases_only_those_that_may_decide_are_counted(last: int) -> None:
    """The last of 3000 passing cases decides whether the failing ones have an even w in common; h never decides."""
    failing = [record(f"f{w}", "fail", word="shifted", w=w, h=w % 3) for w in (2, 4, 6)]
    passing = [record(f"p{at}", w=1 + 2 * (at % 7), h=at % 3) for at in range(3000)]
    passing[-1].params["w"] = last
    groups = FailureGroups(failing)
    groups.add_passing([*failing, *passing])
    (found,) = groups.groups()
    (all_counted,) = FailureGroups([*failing, *passing]).groups()
    assert found.common == all_counted.common == ("even w" if last % 2 else "")
    assert found.count == 3


def test_passing_cases_that_decide_nothing_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []

    def counting(seen: Seen, one: Record) -> None:
        looked.append(one.case)
        add_traits(seen, one)

    monkeypatch.setattr("mluops_cli.results.failure_groups.add_traits", counting)
    groups = FailureGroups(record(f"f{w}", "fail", word="shifted", w=w) for w in (2, 3))
    groups.add_passing(record(f"p{at}", w=at % 5) for at in range(10_000))
    assert len(looked) == 2 + 1000


def test_a_parameter_goes_before_the_sizes_that_follow_from_it() -> None:
    failing, passing = (
        FailureGroups(record(f"{w}", "fail", (w * w, 3), w=w) for w in (2, 4, 6)),
        [record(f"{w}", dims=(w * w, 3), w=w) for w in (1, 3, 5)],
    )
    for each in passing:
        failing.add(each)
    assert failing.groups()[0].common == "even w"
    sizes = FailureGroups([record("a", "fail", (2,)), record("b", "fail", (8,)), record("c", dims=(3,))])
    assert sizes.groups()[0].common == "even dim 0 of x"
    dtypes = [record(f"{at}", "fail", (3,)) for at in range(2)]
    for each in dtypes:
        each.tensors["x"]["dtype"] = "half"
    assert FailureGroups([*dtypes, record("f", dims=(3,))]).groups()[0].common == "dtype of x = half"
