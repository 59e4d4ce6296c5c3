"""Output files: no command writes over what it reads (A3), nor two outputs into one file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mluops_cli.core.output_files import STDOUT, refuse_inputs
from schemas.errors import InputError
from tests.mluops_cli.conftest import Cli
from tests.mluops_cli.execution.conftest import write_psamask
from tests.mluops_cli.reports.sample import record, write_run


def test_a3_an_output_that_is_an_input_by_any_path_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("mine")
    os.link(tmp_path / "in", tmp_path / "hard")
    (tmp_path / "soft").symlink_to("in")
    for name in ("in", "hard", "soft", "folder/../in"):
        (tmp_path / "folder").mkdir(exist_ok=True)
        with pytest.raises(InputError, match=r"--md .*: this command reads that file: give it another one"):
            refuse_inputs({"--html": None, "--md": tmp_path / name}, [None, str(tmp_path / "in")])
    with pytest.raises(InputError, match=r"--csv .*new: --md writes this file too"):
        refuse_inputs({"--md": tmp_path / "new", "--csv": tmp_path / "folder/../new"}, [])
    for path in (STDOUT, Path("/dev/null")):
        refuse_inputs({"--md": path, "--csv": path, "--html": tmp_path / "out"}, [tmp_path / "in", "/dev/null"])


@pytest.mark.parametrize(
    "words",
    ["report o --html o/results.jsonl", "report o --md o/summary.json", "report o --csv b/results.jsonl --base b",
     "report o --junit w.yaml --waivers w.yaml", "report o --junit x --md x", "compare o b --json b/summary.json",
     "compare o b --md w.yaml --waivers w.yaml", "subset case.pb --by pairs --out case.pb",
     "run case.pb --junit case.pb --out new", "run case.pb --html new/results.jsonl --out new"],
)  # fmt: skip
def test_a3_no_command_writes_over_what_it_reads(
    words: str, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("o", "b"):
        write_run(tmp_path / name, [record("op/s/a")])
    write_psamask(tmp_path, "case")
    (tmp_path / "w.yaml").write_text("waivers: []\n")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    ran = cli(*words.split())
    assert (ran.code, len(ran.err.splitlines())) == (2, 1), ran
    assert "reads that file" in ran.err or "writes this file too" in ran.err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
