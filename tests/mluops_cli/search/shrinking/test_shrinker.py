"""Catalogue kernels shrink to minimal calls."""

from __future__ import annotations

import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mluops_cli.results.symptoms import Symptom
from mluops_cli.search.case_making import make_case
from mluops_cli.search.faulty_kernels.catalogue import MODULES, faults, implementation
from mluops_cli.search.fuzz.supply import Search, supplied
from mluops_cli.search.shrinking.attempts import Budget, shows
from mluops_cli.search.shrinking.candidate import candidate_of
from mluops_cli.search.shrinking.reduction import symptom_judge
from mluops_cli.search.shrinking.shrinker import Shrinker, Shrunk
from tests.mluops_cli.search.shrinking.in_process import InProcess, lower_ones

PSAMASK: dict[str, Any] = {
    "name": "large",
    "sizes": {"N": 2, "H": 3, "W": 4},
    "params": {"psa_type": "collect", "h_mask": 2, "w_mask": 3},
}
POINTS: dict[str, Any] = {
    "name": "points",
    "params": {
        "batch_size": 2,
        "num_points": 40,
        "num_channels": 3,
        "num_voxel_x": 5,
        "num_voxel_y": 6,
        "num_voxel_z": 1,
    },
}
MANY = Budget(2000, 120.0)
ROW_OR_COLUMN = """
from mluops_cli.search.faulty_kernels.psamask import right

def row_or_column(op, inputs, outputs, params, descriptors, handle):
    answer, y = right(op, inputs, outputs, params, descriptors, handle), outputs["y"]
    if y.shape[1] >= 6:
        y[:, -1] = 0
    elif y.shape[1:3] == (5, 6):
        y[:, :, -1] = 0
    return answer
"""
WANTED = Symptom("op", "y", "zero", "tail of axis 1")


def shrink(runner: InProcess, op: str, entry: dict[str, Any], budget: Budget = MANY) -> Shrunk | None:
    return Shrinker(runner, symptom_judge([op]), budget).shrink(candidate_of(op, entry), "fuzz")


@pytest.mark.parametrize(
    ("op", "fault", "entry", "most"),
    [
        ("psamask_forward", "first_mask_row_lost", PSAMASK, 1),
        ("psamask_forward", "no_zero_fill", PSAMASK, 2),
        ("voxel_pooling_forward", "zero_is_outside", POINTS, 4),
        ("voxel_pooling_forward", "duplicates_lost", POINTS, 8),
    ],
)
def test_a_finding_becomes_minimal(tmp_path: Path, op: str, fault: str, entry: dict[str, Any], most: int) -> None:
    runner = InProcess(implementation(op, fault), tmp_path)
    found = shrink(runner, op, entry)
    assert found is not None
    assert not found.ended
    assert found.elements <= most
    assert runner.symptoms[0] == symptom_judge()(found.record)
    assert lower_ones(runner, found, [op], "fuzz") == []
    assert f", {found.runs} runs" in found.line


def test_the_baseline_of_the_smallest_call_proves_something(tmp_path: Path) -> None:
    runner = InProcess(implementation("psamask_forward", "writes_nothing"), tmp_path)
    found = shrink(runner, "psamask_forward", PSAMASK)
    assert found is not None
    assert found.candidate.values["x"] == {"constant": 1}


def test_a_right_kernel_is_not_shrunk(tmp_path: Path) -> None:
    runner = InProcess(implementation("psamask_forward", "right"), tmp_path)
    assert shrink(runner, "psamask_forward", PSAMASK) is None


def test_another_symptom_is_not_what_is_wanted(tmp_path: Path) -> None:
    op = "psamask_forward"
    runner = InProcess(implementation(op, "writes_nothing"), tmp_path)
    wanted = Symptom(op, "y", "shifted")
    assert Shrinker(runner, symptom_judge(), MANY).shrink(candidate_of(op, PSAMASK), "fuzz", wanted) is None


@pytest.mark.parametrize(
    ("found", "same"),
    [
        (WANTED, True),
        (replace(WANTED, region=""), True),
        (replace(WANTED, region="head of axis 1"), False),
        (replace(WANTED, kind="shifted", region=""), False),
        (replace(WANTED, output="z", region=""), False),
        (None, False),
    ],
)
def test_a_smaller_call_may_name_no_region_but_no_other_one(found: Symptom | None, same: bool) -> None:
    assert shows(found, WANTED) is same


def test_a_region_is_not_found_in_a_smaller_call_where_none_is_wanted() -> None:
    assert not shows(WANTED, replace(WANTED, region=""))


def test_a_smaller_call_has_too_few_elements_for_the_region(tmp_path: Path) -> None:
    """Of 6 rows and more the last one is 0, of 5 the last one of 6 columns: another region, so 6 rows stay."""
    file = tmp_path / "kernels.py"
    file.write_text(ROW_OR_COLUMN, encoding="utf-8")
    op, runner = "psamask_forward", InProcess(f"python:{file}:row_or_column", tmp_path)
    params, ones = {"psa_type": 0, "h_mask": 1, "w_mask": 1}, {"x": {"dist": {"constant": 1}}}
    entry = {"name": "rows", "sizes": {"N": 1, "H": 6, "W": 6}, "params": params, "inputs": ones}
    found = shrink(runner, op, entry)
    assert found is not None
    assert found.line.startswith("1x6x6x1 -> 1x6x1x1, ")
    assert runner.symptoms[0] == Symptom(op, "y", "zero", "index of axis 1")
    assert Symptom(op, "y", "zero", "index of axis 2") in runner.symptoms
    assert symptom_judge()(found.record) == Symptom(op, "y", "zero")


def test_what_a_budget_leaves_is_the_smallest_so_far(tmp_path: Path) -> None:
    runner = InProcess(implementation("psamask_forward", "first_mask_row_lost"), tmp_path)
    found = shrink(runner, "psamask_forward", PSAMASK, Budget(10, 60.0))
    assert found is not None
    assert found.runs == 10
    assert found.line.endswith("10 runs (the budget is used up)")
    assert found.elements < 2 * 3 * 4 * 6


def test_a_signal_leaves_the_smallest_so_far(tmp_path: Path) -> None:
    op = "psamask_forward"
    runner = InProcess(implementation(op, "first_mask_row_lost"), tmp_path)
    calls = iter([False] * 5)
    shrinker = Shrinker(runner, symptom_judge(), MANY, lambda: next(calls, True))
    found = shrinker.shrink(candidate_of(op, PSAMASK), "fuzz")
    assert found is not None
    assert found.interrupted
    assert found.runs == 5


def test_an_illegal_call_keeps_the_rule_that_it_breaks(tmp_path: Path) -> None:
    op = "psamask_forward"
    entry = {
        "name": "layout",
        "params": {"psa_type": 1, "h_mask": 5, "w_mask": 4},
        "inputs": {"x": {"shape": [2, 6, 9, 20], "layout": "NCHW", "dist": {"uniform": [-1, 1]}}},
        "outputs": {"y": {"shape": [2, 6, 9, 54]}},
        "expect": "BAD_PARAM",
    }
    runner = InProcess(implementation(op, "accepts_any_layout"), tmp_path)
    found = shrink(runner, op, entry)
    assert found is not None
    small = found.candidate.entry()
    assert small["inputs"]["x"] == {"layout": "NCHW", "shape": [1, 1, 1, 1], "dist": {"constant": 0}}
    assert small["outputs"]["y"]["shape"] == [1, 1, 1, 1]
    make_case(op, "fuzz", small, tmp_path)


@pytest.mark.slow
@pytest.mark.long
def test_the_catalogue_shrinks_to_minimal_calls(tmp_path: Path) -> None:
    """Issue 14: the median has at most 24 input elements, and no symbol can be lowered by 1."""
    elements, not_minimal = [], []
    for op in MODULES:
        search = Search((op,), 1, 1 << 20)
        calls = [supplied(search, number, tmp_path / op) for number in range(100)]
        for fault in faults(op):
            runner = InProcess(implementation(op, fault), tmp_path / fault)
            found = first_finding(runner, op, calls)
            if found is not None:
                elements.append(found.elements)
                print(f"{op} {fault}: {found.line}, {found.elements} elements")
                if found.ended or lower_ones(runner, found, [op], "fuzz"):
                    not_minimal.append(f"{op}:{fault}: {found.line}")
    assert len(elements) > 100
    assert not_minimal == []
    assert statistics.median(elements) <= 24


def first_finding(runner: InProcess, op: str, calls: list[Any]) -> Shrunk | None:
    """The first of the calls that fails, shrunk."""
    for call in calls:
        found = None if call is None else shrink(runner, op, call.drawn.entry)
        if found is not None:
            return found
    return None
