"""The peak memory of a command, measured in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import PROJECT


def peak(*arguments: object, code: int = 0) -> float:
    """Megabytes that `mluops ARGUMENTS...` takes at most; it has to end with that exit code."""
    if not Path("/proc/self/status").is_file():
        pytest.skip("needs /proc")
    # Not getrusage: its peak counts what the process was before exec, which is as large as this one.
    script = (
        "import pathlib, re, sys; from mluops_cli.main import main\n"
        "try: main(sys.argv[1:])\n"
        "finally:\n"
        "    status = pathlib.Path('/proc/self/status').read_text()\n"
        "    print(re.search(r'VmHWM:\\s*(\\d+)', status)[1], file=sys.stderr)"
    )
    command = [sys.executable, "-c", script, *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=PROJECT)
    assert ran.returncode == code, ran.stderr
    return int(ran.stderr.split()[-1]) / 1024
