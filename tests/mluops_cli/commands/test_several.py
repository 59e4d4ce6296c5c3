"""`mluops run --impl A --impl B` and `mluops report OUT1 OUT2`."""

from __future__ import annotations

from pathlib import Path

import pytest

from mluops_cli.commands.several import result_folders
from schemas.errors import InputError
from tests.mluops_cli.conftest import Cli
from tests.mluops_cli.execution import misbehaving
from tests.mluops_cli.execution.conftest import PLUGIN, write_psamask

RIGHT, WRONG = f"python:{PLUGIN}:right", f"python:{PLUGIN}:writes_nothing"


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    write_psamask(tmp_path / "cases", "one")
    write_psamask(tmp_path / "cases", "two", h_mask=misbehaving.TRIGGER)
    return tmp_path / "cases"


def test_a_folder_s_name_fits_into_a_file_system(tmp_path: Path) -> None:
    """Most file systems take 255 bytes, and a character may have three of them."""
    one, two = (f"python:/{'核函数' * 60}.py:{name}" for name in ("one", "two"))
    folders = result_folders(tmp_path, (one, two))
    for folder in folders.values():
        folder.mkdir()
    assert len(set(folders.values())) == 2


@pytest.mark.slow
def test_two_implementations_run_into_folders_of_their_own_and_one_matrix(
    cases: Path, tmp_path: Path, cli: Cli
) -> None:
    out, md = tmp_path / "out", tmp_path / "m.md"
    arguments = ("run", cases, "--impl", RIGHT, "--impl", WRONG, "--out", out)
    ran = cli(*arguments, "--md", md)
    assert ran.code == 1
    folders = result_folders(out, (RIGHT, WRONG))
    assert sorted(out.iterdir()) == sorted(folders.values())
    assert all((folder / "results.jsonl").is_file() for folder in folders.values())
    text = md.read_text(encoding="utf-8")
    assert f"| operator | `{RIGHT}` | `{WRONG}` |" in text
    assert "| `psamask_forward/general/two` | pass | fail |" in text
    again = cli("report", *folders.values(), "--md", "-")
    assert (again.code, again.out) == (0, text)
    assert cli("report", *folders.values()).out == text
    page = tmp_path / "m.html"
    assert cli("report", *folders.values(), "--html", page, "--csv", tmp_path / "m.csv").code == 0
    assert "Implementations side by side" in page.read_text(encoding="utf-8")


def test_what_there_is_of_one_implementation_only_is_refused_before_anything_runs(
    cases: Path, tmp_path: Path, cli: Cli
) -> None:
    out = tmp_path / "out"
    for arguments, words in (
        (("--impl", WRONG, "--junit", tmp_path / "j.xml"), "--junit takes one implementation"),
        (("--impl", RIGHT), "is given twice"),
    ):
        refused = cli("run", cases, "--impl", RIGHT, *arguments, "--out", out)
        assert refused.code == 2
        assert words in refused.err
    assert not out.exists()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("tild", "unknown implementation 'tild': did you mean 'tiled'?"),
        ("./kernel {dir}", "unknown implementation './kernel {dir}': a program is exec:PROGRAM"),
        ("python:none.py:f", "none.py"),
        (f"python:{PLUGIN}:rigt", "rigt"),
    ],
)
def test_all_implementations_are_loaded_before_the_first_runs(
    wrong: str, words: str, cases: Path, tmp_path: Path, cli: Cli
) -> None:
    out = tmp_path / "out"
    refused = cli("run", cases, "--impl", RIGHT, "--impl", wrong, "--out", out)
    assert refused.code == 2
    assert words in refused.err
    assert not out.exists()


@pytest.mark.slow
def test_what_failed_last_time_is_a_matter_of_each_implementation(cases: Path, tmp_path: Path, cli: Cli) -> None:
    arguments = ("run", cases, "--impl", RIGHT, "--impl", WRONG, "--out", tmp_path / "out")
    assert cli(*arguments).code == 1
    again = cli(*arguments, "--last-failed")
    assert again.code == 1
    assert "| `psamask_forward` | 2/2" in again.out  # of before: nothing failed
    assert "| 1/2, 1 fail" in again.out
    listed = cli(*arguments, "--last-failed", "--collect-only")
    assert (listed.code, listed.out) == (0, "psamask_forward/general/two\n")
    assert len(cli(*arguments, "--collect-only").out.splitlines()) == 2
    assert cli(*arguments, "-k", "nothing").code == 5


def test_a_folder_of_several_runs_is_told_from_none(cases: Path, tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "out"
    assert cli("run", cases, "--impl", RIGHT, "--impl", WRONG, "--out", out).code == 1
    names = ", ".join(sorted(map(str, result_folders(out, (RIGHT, WRONG)).values())))
    for words in (("report", out), ("gate", out), ("replay", out)):
        refused = cli(*words)
        assert refused.code == 2
        assert f"{out} holds the runs of several implementations: name one of {names}" in refused.err


def test_results_are_not_written_over(cases: Path, tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "out"
    assert cli("run", cases, "--impl", RIGHT, "--impl", WRONG, "--out", out).code == 1
    one, two = result_folders(out, (RIGHT, WRONG)).values()
    refused = cli("report", one, two, "--md", two / "results.jsonl")
    assert refused.code == 2
    assert "this command reads that file" in refused.err


def test_names_of_folders() -> None:
    folders = result_folders(
        Path("o"), ("tiled", "python:a/b.py:f", "python:a:b.py:f", "Tiled", "../..", "exec:./k {dir}")
    )
    assert [path.name for path in folders.values()] == [
        "tiled",
        "python_a_b.py_f",
        "python_a_b.py_f~2",
        "Tiled~2",
        "implementation",
        "exec_._k_dir",
    ]
    with pytest.raises(InputError, match="tiled is given twice"):
        result_folders(Path("o"), ("tiled", "tiled"))
