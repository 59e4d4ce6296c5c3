"""All reports of 100,000 results together within 1 GB; `make test` takes 20,000. Their time is in `make bench`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import PROJECT
from tests.mluops_cli.reports.sample import record

MEASURE = """
import re, sys
from pathlib import Path
out = Path(sys.argv[1])
from mluops_cli.commands.outcomes import read
from mluops_cli.reports.ci import report_to_server
from mluops_cli.reports.dispatch import ReportFiles
run = read(out)
ReportFiles(out, out / "j.xml", out / "r.html", out / "r.md", out / "r.csv").write(run)
report_to_server(run, "plain", {})
print(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
"""


def large_run(out: Path, cases: int) -> None:
    """A run with a failure in every hundred cases."""
    lines = {status: json.dumps(record("op_0/suite_0/name", status)) for status in ("pass", "fail")}
    with (out / "results.jsonl").open("w", encoding="utf-8") as file:
        for n in range(cases):
            line = (
                lines["pass" if n % 100 else "fail"].replace("op_0", f"op_{n % 7}").replace("suite_0", f"suite_{n % 5}")
            )
            file.write(line.replace("/name", f"/h{n % 97}_{n:06}") + "\n")
    (out / "summary.json").write_text("{}", encoding="utf-8")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to read the peak memory")
@pytest.mark.parametrize(
    ("cases", "megabytes"), [(20_000, 350), pytest.param(100_000, 1000, marks=pytest.mark.slow)], ids=["20k", "100k"]
)
def test_memory(tmp_path: Path, cases: int, megabytes: int) -> None:
    large_run(tmp_path, cases)
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, tmp_path], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert int(done.stdout.splitlines()[-1]) / 1024 < megabytes
    assert os.path.getsize(tmp_path / "j.xml") < 30_000_000
