"""A message of a worker is taken for the result of a case only where it is one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mluops_cli.execution.kernel_process.frames import BrokenChannelError
from mluops_cli.execution.workers.channel import check_result


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
