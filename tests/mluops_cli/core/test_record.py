from __future__ import annotations

import json

import pytest

from mluops_cli.core.record import Record, read_record, record_schema

STATUSES = ["pass", "fail", "error", "crash", "timeout", "skip", "empty", "mistrusted", "waived", "xpass"]


def test_nan_and_inf_are_null_and_half_surrogates_escaped() -> None:
    outputs = {"y": {"criteria": [{"value": float("nan"), "threshold": float("inf")}]}}
    record = Record("a/b/c", "a", "b", "f", "x", "fail", reason="\ud800 é", outputs=outputs)
    line = json.dumps(record.as_json(), allow_nan=False, ensure_ascii=False).encode()
    read = read_record(json.loads(line) | {"of_a_newer_version": 1})
    assert read.outputs == {"y": {"criteria": [{"value": None, "threshold": None}]}}
    assert read.reason == "\\ud800 é"


def test_schema_names_the_status_words() -> None:
    schema = record_schema()
    assert sorted(schema["properties"]["status"]["enum"]) == sorted(STATUSES)
    assert {"case", "op", "suite", "file", "impl", "status"} == set(schema["required"])


@pytest.mark.parametrize(("ratios", "expected"), [
    ([], None), ([None], None), ([0.5, None, 0.25], 0.5), ([3, 0.5], 3.0), ([0.5, "inf"], float("inf")),
    (["nonsense", True, 0.0], 0.0),
])  # fmt: skip
def test_the_bound_ratio_of_a_record_is_the_worst_of_its_outputs(ratios: list[object], expected: float | None) -> None:
    outputs = {f"y{number}": {"bound_ratio": ratio} for number, ratio in enumerate(ratios)}
    assert Record("a/b/c", "a", "b", "f", "x", "pass", outputs=outputs | {"none": {}}).bound_ratio == expected
