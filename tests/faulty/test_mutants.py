"""The mutants of `tiled` that survive the small suites are those listed as equivalent; the page tells their score."""

from __future__ import annotations

from pathlib import Path

import pytest

from mluops_cli.search.mutation.records import CasesRecord, MutantRecord, OperatorMutants
from tests.faulty.catalogue import MUTANTS, PAGE
from tests.faulty.fewer_cases import Curves
from tests.faulty.mutants import measured, reasons, section, survivors


@pytest.mark.slow
@pytest.mark.long
def test_every_survivor_is_listed_and_every_listed_mutant_survives(tmp_path_factory: pytest.TempPathFactory) -> None:
    found = measured(tmp_path_factory.mktemp("mutants"))
    alive = {op: set(changes) for op, changes in survivors(found).items()}
    assert alive == {op: set(changes) for op, changes in reasons().items()}
    _, heading, text = PAGE.read_text(encoding="utf-8").partition(MUTANTS)
    assert heading + text == section(found)


def test_survivors_are_told_by_what_they_change() -> None:
    def record(line: int, status: str) -> MutantRecord:
        diff = ["-    a", "+        b"]
        return MutantRecord("op", "s", f"k.py:{line}", "k.py", line, "x", status, diff)  # type: ignore[arg-type]

    cases = CasesRecord("op", "s", "tiled", False, {})
    found = OperatorMutants(cases, {"1": record(1, "killed"), "2": record(9, "survived"), "3": record(4, "allowed")})
    assert survivors({"op": found}) == {"op": {("k.py", "- a\n+ b"): [found.mutants["2"]]}}
    lines = section({"op": found}).splitlines()
    assert "| op | 3 | 1 | 1 | 1 | 0 | 50.0 % |" in lines
    assert "| op | k.py, x | `- a`, `+ b` | not known |" in lines


def test_the_curve_counts_the_faults_that_a_subset_catches(tmp_path: Path) -> None:
    """Nine cases of equal cost: a quarter of the time are two of them, which catch four of five faults."""
    files = [tmp_path / "suite" / f"{number}.pb" for number in range(9)]
    files[0].parent.mkdir()
    for file in files:
        file.touch()
    catches = {"a": ["suite/1", "suite/2"], "b": ["suite/1"], "c": ["suite/3"], "d": ["suite/3"], "e": ["suite/8"]}
    curves = Curves()
    curves.add("op", catches, files)
    *_, row = curves.lines()
    assert row == "| op | 0 of 5 | 0 of 5 | 2 of 5 | 4 of 5 | 3 of 9 | 33.3 % |"
