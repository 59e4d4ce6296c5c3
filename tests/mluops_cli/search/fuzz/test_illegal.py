"""Illegal calls: what they break, what is expected, and that kernels with missing checks are found."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from generators.contracts.negative_cases import broken
from generators.specs.case_builder import CaseBuilder
from generators.specs.mistakes import mistakes
from generators.specs.models import Entry
from mluops_cli.core.case_options import CaseOptions, WorkerSettings
from mluops_cli.execution.case.case_run import run_case
from mluops_cli.implementations.base import Implementation
from mluops_cli.implementations.python import Python
from mluops_cli.implementations.registry import implementation_named
from mluops_cli.search import faulty_kernels
from mluops_cli.search.case_making import make_case
from mluops_cli.search.faulty_kernels.catalogue import MODULES
from mluops_cli.search.fuzz.drawing import SUITE
from mluops_cli.search.fuzz.factors import domain_of
from mluops_cli.search.fuzz.illegal import draw_illegal
from mluops_cli.search.fuzz.supply import Search

FAULTY = Path(faulty_kernels.__file__).parent
COUNT = 72
SEED = 4  # its first calls break a rule of the workspace alone


@cache
def entries(op: str) -> list[dict[str, Any]]:
    drawn = [draw_illegal(domain_of(op), SEED, number) for number in range(COUNT)]
    return [dict(each.entry) for each in drawn if each is not None]


def results(implementation: Implementation, op: str, folder: Path) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """(entry, result) of every illegal call."""
    settings = WorkerSettings(CaseOptions("x"))
    found = []
    for entry in entries(op):
        file = make_case(op, SUITE, entry, folder).file
        found.append((entry, run_case({"file": file, "manifest_meta": None}, implementation, settings)))
    return found


@pytest.mark.parametrize("op", MODULES)
def test_an_illegal_call_breaks_one_rule_or_two_of_one_status(op: str) -> None:
    contract = domain_of(op).contract
    builder = CaseBuilder(contract, Path(), 1)
    assert len(entries(op)) >= COUNT - 2
    for entry in entries(op):
        assert list(mistakes(Entry, entry)) == []
        case = builder.case(entry, SUITE, entry["name"], "")
        found = broken(case, contract)
        assert len(found) == entry.get("breaks", 1)
        assert sorted(entry["tags"]) == sorted(f"breaks {violation.rule}" for violation in found)
        assert {violation.statuses for violation in found} == {case.expect}
    assert sum(entry.get("breaks", 1) == 2 for entry in entries(op)) > COUNT / 4
    assert len({tag for entry in entries(op) for tag in entry["tags"]}) > 10


@pytest.mark.parametrize("op", MODULES)
def test_rules_take_turns(op: str) -> None:
    """Those that are broken alone: none comes again before the others were there."""
    alone = [tuple(entry["tags"]) for entry in entries(op) if entry.get("breaks", 1) == 1]
    # A legal call that some rules can't be broken of leaves their turns to others.
    turns = alone[: 3 * len(set(alone)) // 4]
    assert len(set(turns)) >= 0.9 * len(turns)


@pytest.mark.parametrize("op", MODULES)
@pytest.mark.parametrize("name", ["tiled", "reference"])
def test_right_kernels_answer_as_expected(tmp_path: Path, op: str, name: str) -> None:
    wrong = [
        (entry, result["reason"])
        for entry, result in results(implementation_named(name), op, tmp_path)
        if result["status"] not in ("pass", "skip")
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("op", "fault"),
    [
        ("psamask_forward", "accepts_any_layout"),
        ("roi_crop_backward", "accepts_zero_elements"),
        ("voxel_pooling_forward", "accepts_strides"),
        ("masked_im2col_forward", "ignores_the_workspace"),
    ],
)
def test_a_missing_check_is_found(tmp_path: Path, op: str, fault: str) -> None:
    found = results(Python(f"{FAULTY / MODULES[op]}.py:{fault}"), op, tmp_path)
    assert any(result["status"] == "fail" and "got SUCCESS" in result["reason"] for _, result in found)


def test_every_fourth_call_is_illegal_and_the_others_are_as_without() -> None:
    op = "psamask_forward"
    with_, without = Search((op,), 1, 1 << 16, illegal=True), Search((op,), 1, 1 << 16)
    drawn = [with_.call(number)[1] for number in range(16)]
    legal = [each for number, each in enumerate(drawn) if number % 4 != 3]
    assert legal == [without.call(number)[1] for number in range(12)]
    assert all("expect" in each.entry or "expect_beyond_design" in each.entry for each in drawn[3::4] if each)
