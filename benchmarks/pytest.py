"""What a case adds to a test of pytest, and what the plug-in adds to a session that doesn't use it."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.measure import Row

PROJECT: Final = Path(__file__).resolve().parent.parent
CASES: Final = 300
_CONFTEST: Final = """
import json, time
import pytest

TIMES = []

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    start = time.perf_counter(), time.process_time()
    result = yield
    TIMES.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    return result

def pytest_sessionfinish():
    with open("times.json", "w") as file:
        json.dump(TIMES, file)
"""
_SPEC: Final = f"""
op: psamask_forward
suites:
  mine:
    - name: tiny
      sizes: {{N: 1, H: 2, W: 3}}
      params: {{psa_type: collect, h_mask: 3, w_mask: 3}}
      matrix: {{seed: {list(range(CASES))}}}
"""
_TESTS: Final = {
    "cases": """
import pytest
from faulty_psamask import psamask

@pytest.mark.mluops("psamask_forward", spec="own.yaml")
def test_it(mluops_case):
    mluops_case.run(psamask)
""",
    "plain": f"""
import pytest

@pytest.fixture
def number(request):
    return request.param

@pytest.mark.parametrize("number", range({CASES}), indirect=True)
def test_it(number):
    assert number >= 0
""",
}
_IMPORT: Final = """
import time, pytest
start = time.perf_counter()
import mluops_cli.pytest_plugin
print(time.perf_counter() - start)
"""


def rows() -> Iterator[Row]:
    """The median of the tests of tiny cases against that of tests without a case; the import of the plug-in."""
    (cases, work), (plain, own_work) = _medians("cases"), _medians("plain")
    note = f"{cases:.2f} ms against {plain:.2f} ms of a test without a case; {work - own_work:.2f} ms of the processor"
    yield Row("pytest: what a tiny case adds, its kernel included", cases - plain, "ms", 5, note=note)
    imports = [float(_python("-c", _IMPORT)) for _ in range(7)]
    yield Row("pytest: what the unused plug-in adds to a session", statistics.median(imports) * 1e3, "ms")


def _medians(kind: str) -> tuple[float, float]:
    """Milliseconds of a test from its setup to its teardown: by the clock, and of the processor."""
    with tempfile.TemporaryDirectory() as folder:
        files = {"conftest.py": _CONFTEST, "own.yaml": _SPEC, "test_it.py": _TESTS[kind]}
        for name, content in files.items():
            Path(folder, name).write_text(content, encoding="utf-8")
        shutil.copy(PROJECT / "examples" / "python_kernel" / "faulty_psamask.py", folder)
        _python("-m", "pytest", "-q", "-p", "mluops_cli.pytest_plugin", "-p", "no:cacheprovider", folder=folder)
        times: list[tuple[float, float]] = json.loads(Path(folder, "times.json").read_text(encoding="utf-8"))
    assert len(times) == CASES
    elapsed, work = zip(*times, strict=True)
    return statistics.median(elapsed) * 1e3, statistics.median(work) * 1e3


def _python(*arguments: str, folder: str = ".") -> str:
    env = {**os.environ, "PYTHONPATH": str(PROJECT)}
    run = [sys.executable, *arguments]
    return subprocess.run(run, cwd=folder, env=env, check=True, capture_output=True, text=True).stdout
