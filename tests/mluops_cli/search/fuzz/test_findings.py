from __future__ import annotations

import math
from typing import Any

import pytest

from mluops_cli.core.record import Record
from mluops_cli.judging.bounds import BoundResult
from mluops_cli.results.symptoms import symptom_of
from mluops_cli.search.fuzz.findings import excuse_slowness, is_doubtful, is_finding, set_right


def record(status: Any, reason: str = "", **keys: Any) -> Record:
    return Record("op/fuzz/x", "op", "fuzz", "x.pb", "impl", status, reason, **keys)


def diagnosed(patterns: list[str], axis: int | None = None, first: int = 0) -> dict[str, Any]:
    regions = [] if axis is None else [{"kind": "tail", "axis": axis, "first": first, "last": 9}]
    return {"diagnosis": {"patterns": [{"word": word} for word in patterns], "regions": regions}}


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (record("fail", outputs={"y": diagnosed(["shifted"], 1)}), "op: y, shifted, tail of axis 1"),
        (record("fail", outputs={"x": {}, "y": diagnosed([])}), "op: y, wrong values"),
        (record("fail", "expected SUCCESS, got BAD_PARAM"), "op, expected SUCCESS, got BAD_PARAM"),
        (record("fail", outputs={"y": {"bound_sentence": "[0]: 3 x"}}), "op: y, beyond the error bound"),
        (record("fail", relations={"batch": "holds", "zero": "broken: y"}), "op, relation zero"),
        (
            record("crash", "its process died of signal 11 (SIGSEGV)"),
            "op, crash: its process died of signal N (SIGSEGV)",
        ),
    ],
)
def test_a_symptom(found: Record, text: str) -> None:
    assert is_finding(found)
    assert str(symptom_of(found)) == text


def test_numbers_of_one_call_are_no_part_of_a_symptom() -> None:
    first, second = (record("fail", outputs={"y": diagnosed(["zero"], 2, first)}) for first in (3, 5))
    assert symptom_of(first) == symptom_of(second)
    raised = [
        record("error", f"raised IndexError: index {n} is out of bounds", blame="implementation") for n in (3, 17)
    ]
    assert symptom_of(raised[0]) == symptom_of(raised[1])


def test_errors_of_others_are_no_findings() -> None:
    assert not is_finding(record("error", blame="tool"))
    assert not is_finding(record("skip"))
    assert is_finding(record("error", blame="implementation"))


def test_what_other_processes_may_cause_is_doubtful() -> None:
    assert is_doubtful(record("timeout", "no answer within 30 s"))
    assert is_doubtful(record("crash", "out of memory: it held 9 MiB, the limit is 8 MiB (--memory)"))
    assert not is_doubtful(record("crash", "its process died of signal 11 (SIGSEGV)"))
    assert not is_doubtful(record("fail"))


@pytest.mark.parametrize(
    ("ops", "relations", "status"),
    [
        (["psamask_forward"], {"adjoint": "broken: raised KeyError"}, "pass"),
        (["psamask_forward", "psamask_backward"], {"adjoint": "broken: raised KeyError"}, "fail"),
        (["psamask_forward"], {"adjoint": "broken: x", "batch": "broken: y"}, "fail"),
        (["psamask_forward"], {"zero": "broken: y"}, "fail"),
        (["psamask_forward"], {}, "fail"),
    ],
)
def test_an_adjoint_operator_that_is_not_searched_says_nothing(
    ops: list[str], relations: dict[str, str], status: str
) -> None:
    found = Record("psamask_forward/fuzz/x", "psamask_forward", "fuzz", "x.pb", "impl", "fail", relations=relations)
    set_right(found, ops)
    assert found.status == status


def bounded(ratio: float | None) -> dict[str, Any]:
    """The keys of an output whose largest error is so many times its bound; None: it has none."""
    if ratio is None:
        return {"bound_ratio": None}
    result = BoundResult(ratio, (0,))
    return result.as_record() | ({"bound_sentence": result.sentence("float")} if result.beyond else {})


@pytest.mark.parametrize(
    ("ratios", "status"),
    [((0.4,), "pass"), ((0.4, 1.2), "fail"), ((math.inf,), "fail"), ((None,), "fail")],
)
def test_outputs_beyond_thresholds_and_within_their_error_bounds_prove_nothing(ratios: Any, status: str) -> None:
    outputs = {f"y{number}": diagnosed([]) | bounded(ratio) for number, ratio in enumerate(ratios)}
    found = Record("roi_crop_forward/fuzz/x", "roi_crop_forward", "fuzz", "x.pb", "impl", "fail", "", outputs=outputs)
    set_right(found, ("roi_crop_forward",))
    assert found.status == status


@pytest.mark.parametrize(
    ("status", "seconds", "then"), [("timeout", 0.01, "timeout"), ("timeout", 0.2, "skip"), ("crash", 0.2, "crash")]
)
def test_a_time_out_says_nothing_where_the_baseline_is_slow_too(status: str, seconds: float, then: str) -> None:
    found = record(status, "no answer within 2 s")
    excuse_slowness(found, seconds, 2.0)
    assert found.status == then
    assert is_finding(found) == (then != "skip")
