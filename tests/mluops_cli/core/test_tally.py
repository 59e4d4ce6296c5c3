from __future__ import annotations

import pytest

from mluops_cli.core.record import Record
from mluops_cli.core.tally import Counted, Tally


@pytest.mark.parametrize(
    ("records", "strict", "interrupted", "code"),
    [
        ([("pass", None)], False, False, 0),
        ([("empty", None)], False, False, 0),
        ([("pass", None), ("skip", None), ("mistrusted", None), ("waived", None)], False, False, 0),
        ([("pass", None), ("mistrusted", None)], True, False, 1),
        ([("pass", None), ("fail", None)], False, False, 1),
        ([("pass", None), ("crash", None)], False, False, 1),
        ([("pass", None), ("timeout", None)], False, False, 1),
        ([("pass", None), ("xpass", None)], False, False, 1),
        ([("pass", None), ("error", "implementation")], False, False, 1),
        ([("pass", None), ("error", "case"), ("fail", None)], False, False, 2),
        ([("pass", None), ("error", "tool"), ("error", "case")], False, False, 3),
        ([("pass", None), ("error", "tool")], False, True, 130),
        ([("skip", None)], False, False, 1),
        ([("mistrusted", None)], False, False, 1),
        ([], False, False, 1),
    ],
)
def test_exit_codes(records: list[tuple[str, str | None]], strict: bool, interrupted: bool, code: int) -> None:
    tally = Tally()
    for status, blame in records:
        tally.add(Counted(status, blame))
    assert tally.exit_code(strict=strict, interrupted=interrupted) == code


@pytest.mark.parametrize(("got", "code"), [("BAD_PARAM", 0), ("SUCCESS", 1), (None, 0)])
def test_c3_strict_wants_what_is_expected_beyond_the_design(got: str | None, code: int) -> None:
    tally = Tally()
    expected = ["BAD_PARAM"]
    record = Record(
        "a/b/c", "a", "b", "f", "x", "pass", operator_status=got, expected_status=expected, beyond_design=True
    )
    tally.add(record.counted)
    assert tally.exit_code() == 0
    assert tally.exit_code(strict=True) == code


def test_a_number_of_equal_records_counts_like_each_of_them() -> None:
    found = [
        Counted("pass", op="a", valid=True, beyond=True, repeat="identical"),
        Counted("pass", op="a", unexpected=True),
        Counted("skip", op="b", valid=True),
        Counted("error", "case", op="b"),
    ]
    one_by_one, together = Tally(), Tally()
    for counted in found:
        together.add(counted, 3)
        for _ in range(3):
            one_by_one.add(counted)
    assert together == one_by_one
    assert together.total == 12
