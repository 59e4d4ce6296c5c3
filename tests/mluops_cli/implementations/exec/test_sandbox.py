"""examples/sandbox: a right program passes in it, and one that looks around finds nothing but its call."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from tests.conftest import PROJECT
from tests.mluops_cli.execution.conftest import write_psamask

SANDBOX: Final = PROJECT / "examples" / "sandbox" / "sandbox.sh"
LOOKS: Final = """\
import os, pathlib, socket, sys
own = pathlib.Path(sys.argv[1])
seen = sorted(each.name for each in own.iterdir())
print("case", seen)
print("processes", sum(name.isdigit() for name in os.listdir("/proc")))
print("folders", sorted(os.listdir("/")))
print("secret", pathlib.Path(sys.argv[2]).exists())
print("capabilities", [line.split()[1] for line in open("/proc/self/status") if line.startswith("CapEff")])
for what in (lambda: socket.create_connection(("192.0.2.1", 9), 1), lambda: open("/usr/planted", "w")):
    try:
        what()
        print("possible")
    except OSError as error:
        print("refused", type(error).__name__)
"""


def works() -> bool:
    """Whether this machine has what the sandbox needs."""
    if not all(map(shutil.which, ("unshare", "setpriv"))) or not Path("/usr/bin/python3").exists():
        return False
    return subprocess.run([SANDBOX, "/tmp", "/bin/true"], capture_output=True, check=False).returncode == 0


def _program(folder: Path, name: str, source: str) -> Path:
    path = folder / name / "program.py"
    path.parent.mkdir()
    path.write_text(f"#!/usr/bin/python3\n{source}", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.mark.slow
@pytest.mark.checkout
def test_a_right_program_passes_and_a_curious_one_finds_nothing(tmp_path: Path, run: Any) -> None:
    if not works():
        pytest.skip("the sandbox needs unshare, setpriv, /usr/bin/python3 and namespaces for users")
    case = write_psamask(tmp_path / "cases", "case")
    source = (PROJECT / "examples" / "exec_python" / "psamask.py").read_text(encoding="utf-8")
    ran = run(case, "--impl", f"exec:{SANDBOX} {{dir}} {_program(tmp_path, 'right', source)} /case")
    assert ran.statuses == {"psamask_forward/general/case": "pass"}
    ran = run(case, "--impl", f"exec:{SANDBOX} {{dir}} {_program(tmp_path, 'looks', LOOKS)} /case {case}")
    (record,) = ran.records.values()
    assert record["status"] == "fail"
    assert "never written" in record["reason"]
    told = record["printed"].splitlines()
    assert told[0] == "case ['.lock', 'case.txt', 'in0.bin', 'out0.bin', 'tensors.txt']"
    assert int(told[1].split()[1]) <= 4  # the program and the shell that started it
    assert "'home'" not in told[2]
    assert "'root'" not in told[2]
    assert told[3:] == ["secret False", "capabilities ['0000000000000000']", "refused OSError", "refused OSError"]
