"""The small suites catch every faulty implementation, for the right reason, and let the right ones pass."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from generators.operator_registry import operators
from mluops_cli.search.faulty_kernels.catalogue import (
    MODULES,
    beyond_design,
    faults,
    kernel_file,
    plugin,
)
from tests.faulty.catalogue import MUTANTS, PAGE, caught, page, run_all
from tests.faulty.conftest import Cases, mluops


def not_right(results: dict[str, Any]) -> dict[str, Any]:
    """The results that blame a right kernel, or that leave out what a Python callable can be asked."""
    return {
        case: each
        for case, each in results.items()
        if each["status"] not in ("pass", "empty") and "a Python callable can't be shown" not in each["reason"]
    }


def test_every_operator_has_faults() -> None:
    assert set(MODULES) == set(operators())
    assert all(len(faults(op)) >= 12 for op in MODULES)


@pytest.mark.parametrize("op", MODULES)
def test_the_right_one_passes_everything(cases: Cases, op: str) -> None:
    assert not_right(run_all(cases(op), op, "right")) == {}


@pytest.mark.parametrize(("op", "name"), [(op, name) for op in MODULES for name in faults(op)])
def test_a_fault_is_caught_for_the_right_reason(cases: Cases, op: str, name: str) -> None:
    word = plugin(op).FAULTS[name][1]
    refusing = ("invalid", "zero_element")
    likely_first = sorted(cases(op), key=lambda file: (file.parent.name in refusing) != (word == "got"))
    results = run_all(likely_first, op, name, until=lambda each: each["status"] == "fail" and word in each["reason"])
    *_, last = results.values()
    assert last["status"] == "fail", f"{name} is not caught by {len(results)} cases"
    assert word in last["reason"]


@pytest.mark.parametrize(("op", "name"), [(op, name) for op in MODULES for name in beyond_design(op)])
def test_c3_what_no_design_demands_passes(cases: Cases, op: str, name: str) -> None:
    results = run_all(cases(op), op, name)
    assert not_right(results) == {}
    answered = {each["operator_status"] for each in results.values() if each.get("beyond_design")}
    assert ("SUCCESS" in answered) == name.startswith("accepts")


@pytest.mark.parametrize("op", MODULES)
def test_one_that_writes_nothing_fails_every_non_empty_case(cases: Cases, op: str) -> None:
    results = run_all(cases(op), op, "writes_nothing")
    missed = {case for case, result in results.items() if not caught(result)}
    empty = ("invalid", "zero_element", "boundary/nothing_reached")
    assert {case for case in missed if not case.startswith(empty)} == set()


@pytest.mark.parametrize("op", MODULES)
def test_every_boundary_case_catches_a_fault(cases: Cases, op: str) -> None:
    """A case that catches nothing would be ballast."""
    idle = [file for file in cases(op) if file.parent.name == "boundary"]
    for name in [name for name in faults(op) if name != "writes_nothing"]:
        seen = {case for case, result in run_all(idle, op, name).items() if caught(result)}
        idle = [file for file in idle if f"boundary/{file.stem}" not in seen]
        if not idle:
            return
    assert idle == []


@pytest.mark.parametrize(
    ("op", "name"),
    [
        ("psamask_forward", "modes_swapped"),
        pytest.param("masked_im2col_forward", "nan_dropped", marks=pytest.mark.slow),
        pytest.param("get_indice_pairs", "batch_lost", marks=pytest.mark.slow),
    ],
)
def test_end_to_end(cases: Cases, tmp_path: Path, op: str, name: str) -> None:
    """Through the command line: the right one ends with 0, a faulty one with 1 and a line that reproduces it."""
    folder, file = cases(op)[0].parent.parent, kernel_file(op, name)
    suites = ("--suite", "boundary,nan_inf", "-j", 1)
    right = mluops("run", folder, "--impl", f"python:{file}:right", "--out", tmp_path / "right", *suites)
    assert right.returncode == 0, right.stdout + right.stderr
    faulty = mluops("run", folder, "--impl", f"python:{file}:{name}", "--out", tmp_path / "faulty", *suites)
    assert faulty.returncode == 1, faulty.stdout + faulty.stderr
    records = [json.loads(line) for line in (tmp_path / "faulty" / "results.jsonl").read_text().splitlines()]
    word = plugin(op).FAULTS[name][1]
    assert any(record["status"] == "fail" and word in record["reason"] for record in records)
    failed = next(record for record in records if record["status"] == "fail")
    assert re.search(r"mluops run", failed["repro"])


@pytest.mark.slow
@pytest.mark.long
def test_the_page_of_faults_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8").partition(MUTANTS)[0].rstrip() == page().rstrip()


def test_a_quarter_of_the_time_keeps_all_kills() -> None:
    """By the page, which another test holds against a new run."""
    row = r"^\| (\w+) \|.*\| (\d+) of (\d+) \| \d+ of \d+ \| [\d.]+ % \|$"
    rows = re.findall(row, PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert {op for op, *_ in rows} == set(MODULES)
    assert {op for op, kept, whole in rows if kept != whole} == set()
