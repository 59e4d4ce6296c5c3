"""What a run leaves in OUT: never in place of what is not ours, never worse for an implementation or a console."""

from __future__ import annotations

import json
import os
import resource
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mluops_cli.main import main
from tests.mluops_cli.execution.conftest import PLUGIN, write_psamask

RIGHT = f"python:{PLUGIN}:right"


@pytest.mark.parametrize("name", ["results.jsonl", "summary.json"])
@pytest.mark.parametrize("text", ["my own notes\n", '{"total": 3}\n', "[]\n"])
def test_a_foreign_file_of_our_name_is_left_alone(
    name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_text(text)
    with pytest.raises(SystemExit) as stop:
        main(["run", str(write_psamask(tmp_path, "case")), "--impl", RIGHT, "--out", str(out)])
    assert stop.value.code == 2
    assert f"{out / name} is not a result of mluops run" in capsys.readouterr().err
    assert [(path.name, path.read_text()) for path in out.iterdir()] == [(name, text)]


def test_an_implementation_that_cannot_be_loaded_costs_no_results(tmp_path: Path, run: Any) -> None:
    write_psamask(tmp_path / "cases", "case", h_mask=5)
    (tmp_path / "cases" / "bad.pb").write_bytes(b"\xff\xff\xff")
    before = run(tmp_path / "cases", "--impl", f"python:{PLUGIN}:writes_nothing")
    kept = sorted(tmp_path.glob("out/failures/**/*.pb"))
    assert len(before.records) == len(kept) == 2
    (tmp_path / "raises.py").write_text("raise OSError('no card')\n")
    for impl in ("nosuch", "python:none.py:f", f"python:{PLUGIN}:rigt", f"python:{tmp_path / 'raises.py'}:f"):
        ran = run(tmp_path / "cases", "--impl", impl)
        assert ran.code in (2, 3)
        assert (ran.records, ran.summary) == (before.records, before.summary)
    assert sorted(tmp_path.glob("out/failures/**/*.pb")) == kept


def test_an_implementation_that_cannot_be_loaded_leaves_no_empty_run(tmp_path: Path, run: Any) -> None:
    write_psamask(tmp_path / "cases", "case")
    for impl in ("nosuch", f"python:{PLUGIN}:rigt"):
        assert run(tmp_path / "cases", "--impl", impl).code in (2, 3)
        assert not (tmp_path / "out").exists()
    (tmp_path / "out").mkdir()
    assert run(tmp_path / "cases", "--impl", "nosuch").code == 2
    assert [*(tmp_path / "out").iterdir()] == []  # it was there before
    assert run(tmp_path / "cases", "--impl", RIGHT).code == 0


@pytest.mark.parametrize("below", ["", "deeper"])
def test_out_that_is_a_file(below: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(SystemExit) as stop:
        main(["run", str(write_psamask(tmp_path, "case")), "--impl", RIGHT, "--out", str(tmp_path / "file" / below)])
    assert stop.value.code == 2
    assert "can't make this folder" in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "mine"


def test_out_whose_name_is_too_long(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["run", str(write_psamask(tmp_path, "case")), "--impl", RIGHT, "--out", str(tmp_path / ("a" * 300))])
    assert stop.value.code == 2
    assert "can't make this folder: File name too long" in capsys.readouterr().err


def test_b11_results_that_can_not_be_written_are_an_error_that_names_the_file(
    tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit on the size of files stands in for a full disk; what is written so far is whole, and resumed.

    The limit would cut off compiled modules (-B) and measured coverage too.
    """
    for number in range(12):
        write_psamask(tmp_path / "cases", f"case{number}", seed=number)
    out = tmp_path / "out"
    command = [sys.executable, "-B", "-m", "mluops_cli", "run", str(tmp_path / "cases"), "--out", str(out)]
    monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]  # shared memory is a file, too: a worker asks for all it may
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))  # noqa: E731
    done = subprocess.run([*command, "--impl", RIGHT], preexec_fn=limit, capture_output=True, text=True, timeout=120)
    assert done.returncode == 3
    kept_so_far = "the results so far are kept, --resume goes on from them"
    assert done.stderr == f"{out / 'results.jsonl'}: can't write: File too large; {kept_so_far}\n"
    assert "Traceback" not in done.stdout
    lines = (out / "results.jsonl").read_text().splitlines(keepends=True)
    kept = [json.loads(line)["case"] for line in lines if line.endswith("\n")]
    assert 0 < len(kept) < 12
    ran = run(tmp_path / "cases", "--impl", RIGHT, "--resume")
    assert (ran.code, len(ran.records)) == (0, 12)
    assert f"{len(kept)} of them finished before" in ran.out


@pytest.mark.parametrize("stdout", ["closed", "full", "unread"])
def test_the_verdict_does_not_depend_on_the_console(stdout: str, tmp_path: Path) -> None:
    write_psamask(tmp_path, "case")
    out = tmp_path / "out"
    command = shlex.join([sys.executable, "-m", "mluops_cli", "run", str(tmp_path), "--out", str(out), "--impl", RIGHT])
    if stdout == "unread":
        reading, writing = os.pipe()
        os.close(reading)
        with os.fdopen(writing, "w") as pipe:
            done = subprocess.run(command, shell=True, stdout=pipe, stderr=subprocess.PIPE, timeout=60)
    else:
        where = {"closed": ">&-", "full": "> /dev/full"}[stdout]
        done = subprocess.run(f"{command} {where}", shell=True, capture_output=True, timeout=60)
    said = b"standard output: No space left on device; the run goes on\n" if stdout == "full" else b""
    assert (done.returncode, done.stderr) == (0, said)
    assert [json.loads(line)["status"] for line in (out / "results.jsonl").read_text().splitlines()] == ["pass"]
    assert json.loads((out / "summary.json").read_text())["exit_code"] == 0
