"""FOUND G1: an implementation that refuses every valid case of an operator has proven nothing of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mluops_cli.reports.markdown.document import step_summary
from mluops_cli.results.finished import read_run
from mluops_cli.results.gate import Policy, broken_rules
from tests.mluops_cli.execution.conftest import write_psamask

REFUSING = """
def everything(op, inputs, outputs, params):
    return "BAD_PARAM" if params["h_mask"] <= 0 else "NOT_SUPPORTED"

def even_masks(op, inputs, outputs, params):
    return None if params["h_mask"] == 0 else "NOT_SUPPORTED"
"""
BOTH = "psamask_forward: of 2 valid cases none was judged, 2 skipped"


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    folder = tmp_path / "cases"
    write_psamask(folder, "one")
    write_psamask(folder, "two")
    write_psamask(folder, "none", h_mask=0, suite="invalid", expect=["BAD_PARAM"])
    (tmp_path / "mine.py").write_text(REFUSING)
    return folder


def test_g1_refusing_every_valid_case_fails(tmp_path: Path, cases: Path, run: Any) -> None:
    ran = run(cases, "--impl", f"python:{tmp_path / 'mine.py'}:everything")
    assert ran.summary["counts"] == {"pass": 1, "skip": 2}
    assert ran.code == ran.summary["exit_code"] == 1
    assert ran.summary["unproven"] == ["psamask_forward"]
    assert BOTH in ran.out
    finished = read_run(tmp_path / "out")
    assert (finished.verdict, finished.exit_code) == ("fail", 1)
    assert "Operators without a judged valid case: `psamask_forward`." in step_summary(finished, 10_000)
    assert broken_rules(finished, Policy()) == [f"{BOTH}."]


def test_g1_invalid_cases_alone_are_judged_as_before(tmp_path: Path, cases: Path, run: Any) -> None:
    ran = run(cases, "--impl", f"python:{tmp_path / 'mine.py'}:everything", "--suite", "invalid")
    assert (ran.code, ran.summary["unproven"]) == (0, [])


def test_g1_an_operator_without_a_kernel_is_unproven(tmp_path: Path, cases: Path, run: Any) -> None:
    (tmp_path / "only.py").write_text(
        "from generators.contracts.operator import Operator\n"
        "from mluops_cli import Implementation, Outcome\n"
        "class Other(Implementation):\n"
        "    name = 'other'\n"
        "    @classmethod\n"
        "    def operators(cls):\n"
        "        return ('another_operator',)\n"
        "    def call(self, call):\n"
        "        return Outcome()\n"
        "IMPLEMENTATIONS = (Other,)\n"
    )
    ran = run(cases, "--impl", "other", "--plugin", str(tmp_path / "only.py"))
    assert (ran.code, ran.summary["unproven"]) == (1, ["psamask_forward"])
    ran = run(cases, "--impl", "other", "--plugin", str(tmp_path / "only.py"), "--suite", "invalid")
    assert (ran.code, ran.summary["unproven"]) == (1, [])  # nothing passed
