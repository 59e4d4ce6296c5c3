"""`mluops subset`: the list, what it gives up, and a run of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mluops_cli.search.mutation.records import CasesRecord, MutantRecord, mutant_file
from tests.mluops_cli.conftest import Cli
from tests.mluops_cli.execution.conftest import SUITE, write_psamask

OP = "psamask_forward"
# Case -> its seconds and the mutants that it kills: large kills all, small and middle all but "c".
KILLS = {"large": (9.0, "abcd"), "middle": (2.0, "bd"), "small": (1.0, "a"), "idle": (0.5, "")}


def write_results(folder: Path, *, matrix: bool = True) -> None:
    folder.mkdir()
    with mutant_file(folder, resume=False) as file:
        seconds = {f"{SUITE}/{name}": cost for name, (cost, _) in KILLS.items()}
        file.add(CasesRecord(OP, "x", "tiled", matrix, seconds))
        for number, mutant in enumerate("abcd", 1):
            killed = [f"{SUITE}/{name}" for name, (_, mutants) in KILLS.items() if mutant in mutants]
            kind = "zero_fill" if mutant == "c" else "comparison"
            file.add(
                MutantRecord(
                    OP, "x", f"k.py:{number}:1:{kind}:1", "k.py", number, kind, "killed", ["-  a", "+  b"], killed
                )
            )


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    for name in (*KILLS, "unknown"):
        write_psamask(tmp_path / "cases", name)
    write_results(tmp_path / "mutants")
    return tmp_path / "cases"


def subset(cli: Cli, cases: Path, *more: object) -> tuple[set[str], list[str], str]:
    """The names in the list, its remarks, and what stands on stderr."""
    ran = cli("subset", cases, "--by", "mutants", "--mutants", cases.parent / "mutants", *more)
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    names = {line.removeprefix(f"{SUITE}/") for line in lines if not line.startswith("#")}
    return names, [line[2:] for line in lines if line.startswith("#")], ran.err


def test_without_a_budget_all_kills_are_kept(cases: Path, cli: Cli) -> None:
    names, remarks, told = subset(cli, cases)
    assert names == {"large"}
    assert remarks == ["1 of 5 cases, about 9.0 s of 12.5 s", "keeps 4 of the 4 mutants of all cases"]
    assert told.splitlines() == remarks


def test_a_budget_gives_up_the_least_per_second(cases: Path, cli: Cli) -> None:
    names, remarks, _ = subset(cli, cases, "--budget", "4s")
    assert names == {"small", "middle"}
    assert remarks == [
        "2 of 5 cases, about 3.0 s of 12.5 s",
        "keeps 3 of the 4 mutants of all cases",
        "gives up 1 of psamask_forward: zero_fill 1",
        "  k.py:3:1:zero_fill:1: -  a +  b",
    ]


def test_run_takes_the_list(cases: Path, cli: Cli) -> None:
    cli("subset", cases, "--by", "mutants", "--mutants", cases.parent / "mutants", "--budget", "4", "--out", "-")
    path = cases.parent / "quick.txt"
    path.write_text("".join(f"{SUITE}/{name}\n" for name in subset(cli, cases, "--budget", "4s")[0]))
    ran = cli("run", cases, "--select", path, "--out", cases.parent / "out", "-j", 1)
    assert ran.code == 0
    assert "2 cases in" in ran.out


@pytest.mark.parametrize("matrix", [True, False])
def test_results_that_do_not_do(tmp_path: Path, cli: Cli, matrix: bool) -> None:
    write_psamask(tmp_path / "cases", "small" if not matrix else "strange")
    arguments = ["subset", tmp_path / "cases", "--by", "mutants", "--mutants", tmp_path / "mutants"]
    ran = cli(*arguments)
    assert (ran.code, "run mluops mutate --matrix" in ran.err) == (2, True)
    write_results(tmp_path / "mutants", matrix=matrix)
    ran = cli(*arguments)
    assert ran.code == 2
    assert ("none of the cases was run there" if matrix else "was run without --matrix") in ran.err


def test_nothing_selected(cases: Path, cli: Cli) -> None:
    assert cli("subset", cases, "--by", "mutants", "-k", "nothing").code == 5


def test_by_pairs(tmp_path: Path, cli: Cli) -> None:
    # Two cases of one class each way, and one whose height is of another class: one of the equal two is enough.
    for name, h_mask in (("three", 3), ("again", 3), ("twenty", 20)):
        write_psamask(tmp_path / "cases", name, h_mask=h_mask)
    ran = cli("subset", tmp_path / "cases", "--by", "pairs")
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    names = [line for line in lines if not line.startswith("#")]
    assert len(names) == 2
    assert f"{SUITE}/twenty" in names
    counted = next(line for line in lines if "pairs of classes" in line)
    kept, whole = (int(word) for word in counted.replace("the", "").split() if word.isdigit())
    assert kept == whole
    ran = cli("subset", tmp_path / "cases", "--by", "pairs", "--budget", "0.006")
    assert len([line for line in ran.out.splitlines() if not line.startswith("#")]) == 1
    assert "h_mask = " in ran.err.split("gives up")[1]
