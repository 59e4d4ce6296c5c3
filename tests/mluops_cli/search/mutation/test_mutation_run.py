"""What the results of a mutant make of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mluops_cli.core.case_options import CaseOptions, WorkerSettings
from mluops_cli.core.discovery import PlannedCase
from mluops_cli.search.mutation.fork_server import TrialResult
from mluops_cli.search.mutation.mutants import Mutant
from mluops_cli.search.mutation.mutation_run import OperatorSession
from mluops_cli.search.mutation.sources import Mutation, source_modules
from mluops_cli.search.mutation.trial import CaseResult


def session() -> OperatorSession:
    cases = [PlannedCase(f"op/suite/{name}", "op", "suite", "", 0) for name in "ab"]
    anything: Any = None
    made = OperatorSession(
        "op", cases, WorkerSettings(CaseOptions()), (), 1, False, 0, anything, None, anything, anything
    )
    made._answers = {0: "right", 1: "right"}
    made._valid = {0: "pass", 1: "pass"}
    return made


@pytest.mark.parametrize(
    ("results", "status"),
    [
        ([CaseResult(0, "pass", answer="right")], "equivalent"),
        ([CaseResult(0, "pass", answer="other")], "survived"),
        ([CaseResult(0, "pass", answer="other", within_bound=True)], "allowed"),
        ([CaseResult(0, "pass", answer="other", beyond_design=True)], "allowed"),
        ([CaseResult(0, "skip", answer="other")], "allowed"),
        ([CaseResult(0, "empty", answer="other")], "allowed"),
        ([CaseResult(0, "skip", answer="other"), CaseResult(1, "pass", answer="other")], "survived"),
        ([CaseResult(0, "skip", answer="other"), CaseResult(1, "skip", answer="other")], "killed"),
        ([CaseResult(0, "pass", answer="right"), CaseResult(1, "fail", within_bound=True)], "killed"),
        ([CaseResult(0, "timeout")], "killed"),
    ],
)
def test_status(results: list[CaseResult], status: str) -> None:
    mutant = Mutant("m", "k.py", 1, "comparison", (), Mutation("k", str(Path("k.py")), ""), frozenset({0, 1}))
    assert session()._record(mutant, TrialResult(0, results)).status == status


def test_a_mutant_that_can_not_be_loaded_is_killed() -> None:
    mutant = Mutant("m", "k.py", 1, "comparison", (), Mutation("k", "k.py", ""), frozenset({0}))
    record = session()._record(mutant, TrialResult(0, problem="can't load k.py"))
    assert (record.status, record.killed_by, record.reason) == ("killed", [], "can't load k.py")


def test_a_faulty_kernel_that_no_case_shows_survives() -> None:
    mutant = Mutant("m", "k.py", 0, "faulty_kernel", (), None, frozenset({0}), "python:k.py:m")
    assert session()._record(mutant, TrialResult(0, [CaseResult(0, "pass", answer="right")])).status == "survived"


def test_the_source_of_a_callable_on_tensors_is_its_own() -> None:
    assert source_modules("torch:kernels.py:f,device=cuda") == source_modules("python:kernels.py:f")
    assert source_modules("torch:device=cuda") == source_modules("torch")
