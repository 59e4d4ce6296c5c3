"""Status precedence: pass, fail, empty, mistrusted, skip."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from mluops_cli.judging.arithmetic import BLOCK, Array
from mluops_cli.judging.verdict import OutputUnderTest, judge_case, judge_status
from schemas.criteria import Criterion

EXACT = (Criterion("diff3", 0, "contract"),)
ROUGH = (Criterion("diff1", 3e-3, "psamask.yaml:12"), Criterion("diff2", 3e-3, "psamask.yaml:13"))


def output(
    name: str, baseline: Array, found: Array, criteria: Sequence[Criterion] = EXACT, **options: Any
) -> OutputUnderTest:
    return OutputUnderTest(name, baseline, found, criteria, "float", **options)


def right(name: str = "y", size: int = 20, **options: Any) -> OutputUnderTest:
    values = np.arange(1, size + 1, dtype=np.float32)
    return output(name, values, values.copy(), **options)


def nothing(name: str = "z", shape: tuple[int, ...] = (0, 4)) -> OutputUnderTest:
    return output(name, np.zeros(shape, "f4"), np.zeros(shape, "f4"))


def test_right_outputs_pass() -> None:
    verdict = judge_case([right("y"), right("z")])
    assert (verdict.status, verdict.reason, list(verdict.outputs)) == ("pass", "", ["y", "z"])


def test_a_failure_names_output_criterion_value_threshold_and_source() -> None:
    b = np.ones((4, 8), np.float32)
    b[0, 0] = 2
    m = b.copy()
    m[3, 7] = 34
    verdict = judge_case([right("x"), output("y", b, m, ROUGH)])
    assert verdict.status == "fail"
    assert verdict.reason == (
        "y: diff1 = 1 > 0.003 (threshold from psamask.yaml:12) and diff2 = 5.57802 > 0.003 (threshold from "
        "psamask.yaml:13); 1 of 32 elements differ, the first at [3, 7], by at most 33"
    )


def test_every_output_is_judged_each_for_itself() -> None:
    """PITFALLS C03: NaN matched in the first output doesn't end the judging of the second."""
    b = np.array([np.nan, 1, 2], np.float32)
    wrong = output("second", np.array([1, 2, 3], "f4"), np.array([1, 2, 4], "f4"), ROUGH)
    verdict = judge_case([output("first", b, b.copy(), ROUGH), wrong])
    assert verdict.status == "fail"
    assert verdict.reason.startswith("second: diff1")
    both = judge_case([output("first", b, np.array([np.nan, 1, 99], "f4"), ROUGH), wrong])
    assert "first: diff1" in both.reason
    assert "second: diff1" in both.reason


def test_a_case_is_empty_only_if_every_output_is() -> None:
    assert judge_case([nothing(), nothing("y", (3, 0))]).status == "empty"
    assert judge_case([nothing(), right()]).status == "pass"
    wrong = output("y", np.arange(3, dtype="f4"), np.zeros(3, "f4"))
    assert judge_case([nothing(), wrong]).status == "fail"
    assert judge_case([output("z", np.zeros((0, 4), "f4"), np.zeros((0, 3), "f4"))]).status == "fail"
    no_rows = np.zeros(27, "i4")  # PITFALLS B11: the counts beside empty rows are still compared
    assert judge_case([nothing(), OutputUnderTest("num", no_rows, no_rows + 1, EXACT, "int32")]).status == "fail"


def test_no_criterion_fails() -> None:
    assert judge_case([right(criteria=())]).reason == "y: there is no criterion to judge it by"


def test_no_output_at_all_is_mistrusted() -> None:
    assert judge_case([]).reason == "nothing was compared"


def test_a_criterion_that_judged_nothing_is_no_pass() -> None:
    verdict = judge_case([right(criteria=(Criterion("diff4", 0, "x"), Criterion("diff_kl", 0, "x")))])
    assert (verdict.status, verdict.reason) == ("mistrusted", "y: nothing was compared")


def test_an_output_that_nothing_judged_is_no_pass_beside_one_that_is_judged() -> None:
    wrong = output("x", np.arange(50, dtype="f4"), np.zeros(50, "f4"))
    unjudged = OutputUnderTest(wrong.name, wrong.baseline, wrong.output, (Criterion("diff4", 0, "x"),), "float")
    for exempt in (False, True):
        verdict = judge_case([unjudged, right()], exempt=exempt)
        assert (verdict.status, verdict.reason) == ("mistrusted", "x: nothing was compared")


@pytest.mark.parametrize("value", [[1, 2], [3, 3]])
def test_a_constant_baseline_of_complex_halves(value: float) -> None:
    b = np.array([value] * 16, np.float16)
    doubted = OutputUnderTest("y", b, b.copy(), EXACT, "complex_half")
    assert judge_case([doubted]).reason == "y: all 16 values of the baseline are the same"
    b[7, 1] = 9
    assert judge_case([OutputUnderTest("y", b, b.copy(), EXACT, "complex_half")]).status == "pass"


@pytest.mark.parametrize(("size", "status"), [(15, "pass"), (16, "mistrusted"), (2 * BLOCK + 1, "mistrusted")])
def test_a_constant_baseline_of_16_or_more(size: int, status: str) -> None:
    b = np.full(size, 7, np.float32)
    assert judge_case([output("y", b, b.copy())]).status == status
    b[-1] = 8
    assert judge_case([output("y", b, b.copy())]).status == "pass"


def test_constant_means_bits() -> None:
    b = np.full(20, np.nan, np.float32)
    assert judge_case([output("y", b, b.copy())]).status == "mistrusted"
    b.view(np.uint32)[3] ^= 1
    assert judge_case([output("y", b, b.copy())]).status == "pass"


def test_a_baseline_of_zeros() -> None:
    b = np.zeros(3 * BLOCK, np.float32)
    assert judge_case([output("y", b, b.copy())]).reason == (
        "y: all of the baseline is 0, an output left at 0 would pass or nearly so"
    )
    b[5] = 1
    assert "99.999" in judge_case([output("y", b, b.copy())]).reason
    b[::50] = 1  # 2 %
    assert judge_case([output("y", b, b.copy())]).status == "pass"


def test_zeros_the_contract_calls_natural_are_no_doubt() -> None:
    b = np.zeros(1000, np.float32)
    b[0] = 1
    assert judge_case([output("y", b, b.copy(), expected_zero_fraction=0.9995)]).status == "pass"
    assert judge_case([output("y", b, b.copy(), expected_zero_fraction=0.998)]).status == "mistrusted"
    b[0] = 0
    assert judge_case([output("y", b, b.copy(), expected_zero_fraction=1.0)]).status == "pass"
    assert judge_case([output("y", b, b.copy(), expected_zero_fraction=1 - 2.0**-31)]).status == "mistrusted"


def test_exempt_suites_may_be_constant_but_not_share_memory() -> None:
    b = np.zeros(100, np.float32)
    assert judge_case([output("y", b, b.copy())], exempt=True).status == "pass"
    shared = judge_case([right(shares_baseline=True)], exempt=True)
    assert shared.status == "mistrusted"
    assert "own memory" in shared.reason


def test_a_wrong_output_fails_even_where_a_pass_would_be_mistrusted() -> None:
    b = np.zeros(100, np.float32)
    m = b.copy()
    m[99] = 1
    assert judge_case([output("y", b, m)]).status == "fail"


@pytest.mark.parametrize(
    ("expected", "got", "status", "reason"),
    [
        (("BAD_PARAM",), "BAD_PARAM", "pass", ""),
        (("BAD_PARAM", "NOT_SUPPORTED"), "NOT_SUPPORTED", "pass", ""),
        (("BAD_PARAM",), "SUCCESS", "fail", "expected BAD_PARAM, got SUCCESS"),
        (("BAD_PARAM", "NOT_SUPPORTED"), "SUCCESS", "fail", "expected BAD_PARAM or NOT_SUPPORTED, got SUCCESS"),
        (("BAD_PARAM",), "NOT_SUPPORTED", "fail", "expected BAD_PARAM, got NOT_SUPPORTED"),
        (("SUCCESS",), "BAD_PARAM", "fail", "expected SUCCESS, got BAD_PARAM"),
        (("SUCCESS",), "NOT_SUPPORTED", "skip", "the implementation says NOT_SUPPORTED"),
        (("SUCCESS", "NOT_SUPPORTED"), "NOT_SUPPORTED", "pass", ""),
    ],
)
def test_statuses(expected: tuple[str, ...], got: str, status: str, reason: str) -> None:
    verdict = judge_status(expected, got)
    assert verdict is not None
    assert (verdict.status, verdict.reason) == (status, reason)


@pytest.mark.parametrize(
    ("got", "reason"),
    [
        ("BAD_PARAM", ""),
        ("SUCCESS", "answered SUCCESS, not BAD_PARAM: no design demands that"),
        ("NOT_SUPPORTED", "answered NOT_SUPPORTED, not BAD_PARAM: no design demands that"),
    ],
)
def test_c3_beyond_the_design_any_answer_passes(got: str, reason: str) -> None:
    verdict = judge_status(("BAD_PARAM",), got, beyond_design=True)
    assert verdict is not None
    assert (verdict.status, verdict.reason) == ("pass", reason)


def test_success_as_expected_leaves_it_to_the_outputs() -> None:
    assert judge_status(("SUCCESS",), "SUCCESS") is None


def test_the_record_is_json() -> None:
    record = judge_case([output("y", np.ones(3, "f4"), np.full(3, np.inf, "f4"))]).as_record()
    assert json.loads(json.dumps(record, allow_nan=False))["outputs"]["y"]["criteria"][0]["passed"] is False
