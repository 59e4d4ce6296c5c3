"""What writes large outputs after the call is seen; threads that end within the call are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mluops_cli.execution.kernel_process.glimpse import Glimpse
from mluops_cli.search.case_making import make_case
from tests.mluops_cli.implementations.capi.conftest import build

HERE = Path(__file__).parent
PSAMASK = "psamask_forward"


@pytest.mark.parametrize("shape", [(1,), (3, 5), (64, 1 << 14)])
def test_a_write_to_the_start_to_the_end_and_to_half_of_an_output_is_seen(shape: tuple[int, ...]) -> None:
    output = np.zeros(shape, np.float32)
    for key in map(str, range(20)):
        for where in (0, -1, slice(0, None, 2), slice((output.size + 1) // 2)):
            glimpse = Glimpse({"empty": np.empty(0, np.float32), "null": None, "y": output}, key)
            glimpse.look()
            before = glimpse.hashes
            assert glimpse.changed(before) is None
            output.reshape(-1)[where] += 1
            assert glimpse.changed(before) == "y"


def test_the_pieces_are_others_for_each_key() -> None:
    output = np.zeros(1 << 22, np.uint8)
    seen = 0
    for key in map(str, range(400)):
        glimpse = Glimpse({"y": output}, key)
        glimpse.look()
        output[1 << 20 : 1 << 21] ^= 1  # a quarter: 16 pieces miss it in one of a hundred cases
        seen += glimpse.changed(glimpse.hashes) == "y"
    assert 380 <= seen <= 400


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = build(tmp_path, "threads.so", HERE / "threads.c", "-pthread", "-fopenmp")
    monkeypatch.setenv("MLUOPS_TEST_THREADS", str(found))


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    ("name", "expected"), [("with_openmp", "pass"), ("waits_for_a_thread", "pass"), ("leaves_a_thread", "fail")]
)
def test_threads_of_c_code_that_write_more_than_a_mib(name: str, expected: str, tmp_path: Path, run: Any) -> None:
    entry = {"name": "large", "sizes": {"N": 1, "H": 24, "W": 25}}
    entry |= {"params": {"psa_type": "collect", "h_mask": 3, "w_mask": 3}}
    make_case(PSAMASK, "general", entry, tmp_path / "cases")
    options = ("--perf", "--repeat", "5", "--threads", "2", "--peak-bandwidth", "1TB/s", "--peak-ops", "1T")
    (record,) = run(tmp_path / "cases", "--impl", f"python:{HERE / 'threads.py'}:{name}", *options).records.values()
    assert record["status"] == expected, record["reason"]
    if expected == "fail":
        assert record["reason"].endswith("y is still being written after the call returned")
