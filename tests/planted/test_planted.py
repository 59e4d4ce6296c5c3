"""Planted faults are right but for their condition, show where it holds, and pass the small suites but for one case."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from generators.contracts.case import Case
from generators.specs.expansion import expand_operator
from mluops_cli.implementations.python import Python
from mluops_cli.search.faulty_kernels import catalogue as faulty
from tests.planted.catalogue import (
    MODULES,
    PAGE,
    implementation,
    measured,
    page,
    planted_faults,
    run_one,
    spared_case,
    trigger_case,
    written,
)
from tests.planted.planted_fault import PlantedFault

FAULTS = planted_faults()
EACH = pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
PASSING = ("pass", "empty")
LIMIT = 64 << 20  # bytes of a case's tensors


def holds(fault: PlantedFault, case: Case) -> bool:
    shapes = {plan.name: plan.dims for plan in (*case.inputs, *case.outputs)}
    return fault.holds(shapes, case.params, case.inputs[0].dtype == "half")


def test_there_are_40_over_the_operators() -> None:
    assert len(FAULTS) == len({(fault.op, fault.name) for fault in FAULTS}) == 40
    assert all(number >= 5 for number in Counter(fault.op for fault in FAULTS).values())
    assert {fault.op for fault in FAULTS} == set(MODULES)


@EACH
def test_the_fault_shows_in_its_trigger(fault: PlantedFault, tmp_path: Path) -> None:
    case = trigger_case(fault)
    assert case.valid
    assert holds(fault, case)
    file = written(case, tmp_path)
    assert file.stat().st_size <= LIMIT
    result = run_one(file, implementation(fault))
    assert result["status"] == "fail", result
    right = Python(f"{faulty.kernel_file(fault.op, faulty.RIGHT)}:{faulty.RIGHT}")
    assert run_one(file, right)["status"] in PASSING


@EACH
def test_beside_its_condition_it_is_right(fault: PlantedFault, tmp_path: Path) -> None:
    case = spared_case(fault)
    assert case.valid
    assert not holds(fault, case) or fault.values
    result = run_one(written(case, tmp_path), implementation(fault))
    assert result["status"] in PASSING, result


@EACH
def test_where_its_condition_does_not_hold_it_is_right(fault: PlantedFault, tmp_path: Path) -> None:
    others = [case for case in expand_operator(fault.op, {"demo"}) if not case.valid or not holds(fault, case)]
    refused = [case for case in others if not case.valid]
    assert refused
    results = {case.id: run_one(written(case, tmp_path), implementation(fault)) for case in others}
    assert {name: result for name, result in results.items() if result["status"] not in PASSING} == {}


@pytest.mark.slow
def test_at_most_one_case_of_the_small_suites_catches_each() -> None:
    found = measured()
    assert {fault.name: cases for fault, cases in found.items() if len(cases) > 1} == {}
    assert PAGE.read_text(encoding="utf-8") == page(found)
