"""FOUND G1: an implementation that refuses every valid case of an operator has proven nothing of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from generators.contracts.binding import bind
from generators.operator_registry import operators
from mluops_cli.reports.markdown.document import step_summary
from mluops_cli.results.finished import read_run
from mluops_cli.results.gate import Policy, broken_rules
from schemas.casefiles.reading import read_case
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


@pytest.fixture
def refusing(tmp_path: Path) -> str:
    """Two cases, the larger of which is skipped: the first shard of two holds only that."""
    write_psamask(tmp_path / "cases", "large", h_mask=9)
    write_psamask(tmp_path / "cases", "small", h_mask=3)
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n"
        "def large(op, inputs, outputs, params):\n"
        "    if params['h_mask'] == 9:\n"
        "        return 'NOT_SUPPORTED'\n"
        "    outputs['y'][...] = np.load(__file__.replace('mine.py', 'y.npy'))\n"
        "def every(op, inputs, outputs, params):\n"
        "    return 'NOT_SUPPORTED'\n"
    )
    with read_case(tmp_path / "cases" / "small.pb") as file:
        bound = bind(file, operators()["psamask_forward"])
        np.save(tmp_path / "y.npy", bound.baseline(bound.input_arrays())["y"])
    return f"python:{tmp_path / 'mine.py'}"


def test_a_shard_of_skipped_cases_only_tells_so(tmp_path: Path, refusing: str, run: Any) -> None:
    first = run(tmp_path / "cases", "--impl", f"{refusing}:large", "--shard", "1/2")
    assert first.statuses == {"psamask_forward/general/large": "skip"}
    assert (first.code, first.summary["exit_code"], first.summary["shard"]) == (0, 0, "1/2")
    assert first.summary["unproven"] == ["psamask_forward"]
    assert "nothing was validated: no case passed, in this shard\n" in first.out
    finished = read_run(tmp_path / "out")
    assert (finished.verdict, finished.exit_code) == ("pass", 0)
    lines = (tmp_path / "out" / "results.jsonl").read_text()
    second = run(tmp_path / "cases", "--impl", f"{refusing}:large", "--shard", "2/2")
    assert (second.code, second.statuses) == (0, {"psamask_forward/general/small": "pass"})
    lines += (tmp_path / "out" / "results.jsonl").read_text()
    (tmp_path / "all").mkdir()
    (tmp_path / "all" / "results.jsonl").write_text(lines)
    merged = read_run(tmp_path / "all")
    assert broken_rules(merged, Policy(complete=False)) == []
    (sentence,) = broken_rules(merged, Policy(complete=False, max_skipped_fraction=0.4))
    assert sentence == "psamask_forward: 1 of 2 valid cases skipped (50.0%), at most 40.0% may be."


def test_shards_together_prove_what_they_prove(tmp_path: Path, refusing: str, run: Any) -> None:
    """Every shard exits with 0, the results of all of them don't."""
    write_psamask(tmp_path / "cases", "none", h_mask=0, suite="invalid", expect=["NOT_SUPPORTED"])
    lines = ""
    for part in ("1/2", "2/2"):
        ran = run(tmp_path / "cases", "--impl", f"{refusing}:every", "--shard", part)
        assert ran.code == 0
        assert broken_rules(read_run(tmp_path / "out"), Policy(min_passed=1, complete=False))[1:] == []
        lines += (tmp_path / "out" / "results.jsonl").read_text()
    assert f"{BOTH.replace('2 valid cases', '1 valid case').replace('2 skipped', '1 skipped')}: nothing is" in ran.out
    (tmp_path / "all").mkdir()
    (tmp_path / "all" / "results.jsonl").write_text(lines)
    assert broken_rules(read_run(tmp_path / "all"), Policy(complete=False)) == [f"{BOTH}."]
    assert read_run(tmp_path / "all").verdict == "fail"


@pytest.mark.parametrize("shard", [(), ("--shard", "1/1")])
def test_all_cases_in_one_shard_are_no_part(tmp_path: Path, refusing: str, run: Any, shard: tuple[str, ...]) -> None:
    ran = run(tmp_path / "cases", "--impl", f"{refusing}:every", *shard)
    assert ran.code == 1
    assert "so this run is not a pass" in ran.out


def test_a_failure_in_a_shard_is_one(tmp_path: Path, run: Any) -> None:
    write_psamask(tmp_path / "cases", "one")
    write_psamask(tmp_path / "cases", "two", h_mask=9)
    (tmp_path / "wrong.py").write_text("def zeros(op, inputs, outputs, params):\n    outputs['y'][...] = 0\n")
    assert run(tmp_path / "cases", "--impl", f"python:{tmp_path / 'wrong.py'}:zeros", "--shard", "1/2").code == 1
