"""A message of a worker is taken for the result of a case only where it is one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mluops_cli.execution.kernel_process.frames import BrokenChannelError
from mluops_cli.execution.workers.channel import check_facts, check_result


@pytest.mark.parametrize(
    "result",
    [
        {"ready": True},
        {"status": "well done"},
        {"status": "pass", "case": "another/one"},
        {"status": "pass", "unheard of": 1},
        {"status": "pass", "outputs": [1]},
        {"status": "pass", "latency_us": "fast"},
        {"status": "pass", "retire": 1},
    ],
)
def test_b2_what_is_no_result(result: dict[str, Any]) -> None:
    with pytest.raises(BrokenChannelError):
        check_result(result)


def test_results_of_all_kinds() -> None:
    check_result({"status": "crash", "reason": "gone", "retire": True, "again": False, "traceback": ""})
    full = {"status": "pass", "latency_us": 1, "outputs": {"y": {}}, "perf": None, "blame": None, "repeats": 3}
    check_result(json.loads(json.dumps(full | {"latency_interval_us": [0.5, 1.5], "io_efficiency": 0.25})))


@pytest.mark.parametrize("facts", [[], {"status": "pass"}, {"params": {}, "unheard of": 1}, {"params": [3]}])
def test_what_is_no_description_of_a_case(facts: Any) -> None:
    with pytest.raises(BrokenChannelError):
        check_facts(facts)


def test_descriptions_of_a_case() -> None:
    check_facts({"params": {"h_mask": 3}, "tensors": {"x": {"dims": [1]}}, "tags": [], "place": ""})
