"""Kept cases are hard links; on another file system they are copies, which are bounded."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mluops_cli.core.case_options import CaseOptions
from mluops_cli.core.events import CaseFinished, Event, Loaded, RunFinished, RunStarted
from mluops_cli.core.record import read_record
from mluops_cli.core.tally import Tally
from mluops_cli.results import kept_cases
from mluops_cli.results.kept_cases import KeepFailures, kept_file
from schemas.casefiles.reading import read_case, write_case
from tests.mluops_cli.conftest import Cli
from tests.mluops_cli.execution.conftest import PLUGIN, add_tensor, case_node, write_psamask
from tests.mluops_cli.execution.misbehaving import TRIGGER
from tests.mluops_cli.reports.sample import record

WRONG = f"python:{PLUGIN}:writes_nothing"  # wrong where h_mask is TRIGGER


def write_external(folder: Path, name: str, elements: int) -> Path:
    """A case whose input stands in a file beside it."""
    node = case_node("alien_op", name=name)
    add_tensor(node.input, "x", (elements,), layout="ARRAY")
    add_tensor(node.output, "y", (elements,), layout="ARRAY")
    path = folder / f"{name}.pb"
    folder.mkdir(parents=True, exist_ok=True)
    values = np.arange(elements, dtype=np.float32)
    write_case(path, node, [values], [values], inline_limit=64)
    assert len(list(folder.glob(f"{name}*.bin"))) > 0
    return path


@pytest.fixture
def other_file_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hard links are refused, as from one file system to another."""

    def refuse(*arguments: Any, **options: Any) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(os, "link", refuse)


def kept(out: Path, *paths: Path) -> tuple[list[str], list[str]]:
    """The files in OUT/failures after a run in which these cases fail, and what is said of it."""
    told: list[str] = []
    listener = KeepFailures(out, told.append)
    records = [read_record(record(f"alien_op/general/{path.stem}", "fail", file=str(path))) for path in paths]
    events: list[Event] = [RunStarted(CaseOptions(), 1, 1, out), Loaded(), *map(CaseFinished, records)]
    for event in (*events, RunFinished(Tally(), 1, 1.0)):
        listener(event)
    return sorted(path.name for path in (out / "failures").rglob("*") if path.is_file()), told


def test_links_take_no_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_cases, "COPIES", 0)
    path = write_external(tmp_path / "cases", "a", 1000)
    files, told = kept(tmp_path / "out", path)
    assert (len(files), told) == (3, [])
    (found,) = (tmp_path / "out" / "failures").rglob("a.pb")
    assert found.samefile(path)


@pytest.mark.usefixtures("other_file_system")
def test_copies_end_where_they_would_take_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each case takes 8,000 bytes of external data and a header: two of them fit."""
    monkeypatch.setattr(kept_cases, "COPIES", 20_000)
    cases = [write_external(tmp_path / "cases", name, 1000) for name in "abc"]
    files, told = kept(tmp_path / "out", *cases)
    assert [name for name in files if name.endswith(".pb")] == ["a.pb", "b.pb"]
    assert len(files) == 6
    assert told == [
        f"1 failing case is not kept in {tmp_path / 'out' / 'failures'}: the case files are on another file system, "
        "and copies may take 19.5 KiB in all; replay reads them where they are"
    ]
    with read_case(next((tmp_path / "out" / "failures").rglob("a.pb"))) as file:
        assert file.inputs[0].array()[999] == 999.0


@pytest.mark.usefixtures("other_file_system")
def test_a_smaller_case_still_fits_after_one_that_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_cases, "COPIES", 5_000)
    large, small = (write_external(tmp_path / "cases", name, size) for name, size in (("large", 9000), ("small", 100)))
    files, told = kept(tmp_path / "out", large, small)
    assert "small.pb" in files
    assert not [name for name in files if name.startswith("large")]
    assert len(told) == 1


@pytest.mark.usefixtures("other_file_system")
def test_an_earlier_copy_of_a_case_that_is_not_kept_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replay would run a case that is not the one that failed."""
    path = write_external(tmp_path / "cases", "a", 1000)
    kept(tmp_path / "out", path)
    of_a = read_record(record("alien_op/general/a", "fail", file=str(path)))
    assert kept_file(tmp_path / "out", of_a).is_file()
    monkeypatch.setattr(kept_cases, "COPIES", 10)
    assert kept(tmp_path / "out", path)[0] == []
    assert not kept_file(tmp_path / "out", of_a).is_file()


@pytest.mark.usefixtures("other_file_system")
def test_replay_reads_a_case_that_is_not_kept_where_it_is(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_cases, "COPIES", 10)
    write_psamask(tmp_path / "cases", "one", h_mask=TRIGGER)
    out = tmp_path / "out"
    ran = cli("run", tmp_path / "cases", "--impl", WRONG, "--out", out)
    assert (ran.code, ran.err.count("1 failing case is not kept in ")) == (1, 1)
    assert not list((out / "failures").rglob("*.pb"))
    assert cli("replay", out, "--impl", "reference").out.endswith("1 fixed, 0 still failing\n")
