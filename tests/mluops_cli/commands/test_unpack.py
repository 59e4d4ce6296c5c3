"""`mluops unpack CASE DIR`: the folder that exec: gives a program, with the baselines beside it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from schemas.casefiles.reading import read_case
from tests.conftest import PROJECT
from tests.mluops_cli.conftest import Cli
from tests.mluops_cli.execution.conftest import write_psamask


@pytest.fixture
def case(tmp_path: Path) -> Path:
    write_psamask(tmp_path / "cases", "one")
    return tmp_path / "cases" / "one.pb"


def test_d20_a_program_runs_on_the_folder_and_its_outputs_equal_the_baselines(
    case: Path, tmp_path: Path, cli: Cli
) -> None:
    raw = tmp_path / "new" / "raw"
    made = cli("unpack", case, raw)
    names = ["case.txt", "expected0.bin", "in0.bin", "out0.bin", "tensors.txt"]
    assert (made.code, made.out.split()) == (0, [str(raw / name) for name in names])
    assert sorted(path.name for path in raw.parent.iterdir()) == ["raw"]
    with read_case(case) as file:
        np.testing.assert_array_equal(np.fromfile(raw / "in0.bin", np.float32), file.inputs[0].array().ravel())
    assert (raw / "out0.bin").read_bytes() != (raw / "expected0.bin").read_bytes()
    program = PROJECT / "examples" / "exec_python" / "psamask.py"
    subprocess.run([sys.executable, program, raw], check=True)
    found, expected = (np.fromfile(raw / name, np.float32) for name in ("out0.bin", "expected0.bin"))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_folder_with_files_is_left_as_it_is(case: Path, tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "raw").mkdir()
    assert cli("unpack", case, tmp_path / "raw").code == 0  # an empty one is taken
    before = sorted(tmp_path.rglob("*"))
    again = cli("unpack", case, tmp_path / "raw")
    assert again.code == 2
    assert "raw isn't empty, expected a new folder" in again.err
    assert sorted(tmp_path.rglob("*")) == before


def test_the_current_folder_is_taken(case: Path, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    monkeypatch.chdir(raw)
    made = cli("unpack", case, ".")
    assert (made.code, made.err) == (0, "")
    assert made.out.split() == sorted(path.name for path in raw.iterdir())
    assert len(made.out.split()) == 5


def test_a_call_that_no_files_show_writes_nothing(tmp_path: Path, cli: Cli) -> None:
    write_psamask(tmp_path / "cases", "null", suite="invalid", expect=["BAD_PARAM"], faults=["null_handle"])
    refused = cli("unpack", tmp_path / "cases" / "null.pb", tmp_path / "raw")
    assert refused.code == 2
    assert "a program can't be shown the fault null_handle" in refused.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cases"]


def test_a_place_that_can_not_be_written_is_told(case: Path, tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "file").write_text("")
    refused = cli("unpack", case, tmp_path / "file" / "raw")
    assert refused.code == 3
    assert "can't write" in refused.err
