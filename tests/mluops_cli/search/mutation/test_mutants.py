"""Which mutants are made for an operator, from what its cases ran."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from mluops_cli.search.mutation.mutants import find_mutants
from mluops_cli.search.mutation.sources import SourceModule
from mluops_cli.search.mutation.trial import CaseResult
from schemas.errors import InputError

SOURCE = textwrap.dedent("""
    LIMIT = 8
    OTHER = 9

    class Kernel:
        rank = 4

        def run(self, n):
            if n > LIMIT:
                return self.rank + n
            return n

    class Unused:
        rank = 5

        def run(self, n):
            return n - 1

    def helper(n):
        return OTHER * n
""").lstrip()
FILE = "/elsewhere/kernel.py"


def result(case: int, lines: list[int], classes: list[str]) -> CaseResult:
    return CaseResult(case, "pass", lines={FILE: lines}, classes={FILE: classes})


def test_lines_and_cases() -> None:
    # Case 0 runs lines 7 to 8 and 10; case 1 runs 7 to 9.
    traced = [result(0, [7, 8, 10], ["Kernel"]), result(1, [7, 8, 9], ["Kernel"])]
    found = find_mutants([SourceModule("pack.kernel", FILE, SOURCE)], traced)
    by_line = {line: [each for each in found.mutants if each.line == line] for line in range(1, 20)}
    assert {line for line, mutants in by_line.items() if mutants} == {1, 5, 8, 9}
    assert all(each.cases == {0, 1} for line in (1, 5, 8) for each in by_line[line])
    assert all(each.cases == {1} for each in by_line[9])
    assert [each.diff for each in by_line[1]] == [("-LIMIT = 8", "+LIMIT = 9"), ("-LIMIT = 8", "+LIMIT = 7")]
    assert [each.id for each in by_line[5]] == [f"pack/kernel.py:5:12:off_by_one:{n}" for n in (1, 2)]
    assert [each.partition(" ")[2] for each in found.unreached] == ["Unused.run", "helper"]


def test_a_constant_matters_through_another_one() -> None:
    source = "A = 1\nB = [A]\nC = 3\ndef f():\n    return B\n"
    found = find_mutants([SourceModule("m", FILE, source)], [result(0, [5], [])])
    assert {each.line for each in found.mutants} == {1}


def test_a_module_that_no_case_runs_is_left_out() -> None:
    assert not find_mutants([SourceModule("m", FILE, SOURCE)], [CaseResult(0, "pass")]).mutants


def test_a_source_that_is_no_python() -> None:
    with pytest.raises(InputError, match=r"elsewhere/kernel\.py:1: can't be parsed"):
        find_mutants([SourceModule("m", str(Path(FILE)), "def")], [])
