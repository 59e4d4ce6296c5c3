"""What is expected of bundled cases that a right implementation once could not pass (FOUND, section C)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from generators.casegen.generate import generate
from generators.casegen.write_options import WriteOptions
from generators.contracts.case import Case
from generators.specs.expansion import expand_operator
from mluops_cli.core.case_options import CaseOptions, WorkerSettings
from mluops_cli.execution.case.case_run import run_case
from mluops_cli.implementations.base import Implementation
from mluops_cli.implementations.python import Python
from mluops_cli.implementations.reference import Reference
from mluops_cli.implementations.tiled import Tiled
from schemas.errors import InputError

PLUGIN = Path(__file__).parent / "judged.py"


def status(case: Case, folder: Path, implementation: Implementation) -> tuple[str, str]:
    """Status and reason of a case in this process."""
    (name,) = generate(case, WriteOptions(folder))["files"]
    result = run_case(
        {"file": str(folder / name), "manifest_meta": None}, implementation, WorkerSettings(CaseOptions("python"))
    )
    return result["status"], result.get("reason", "")


EMPTY = [case for case in expand_operator("get_indice_pairs") if case.name.startswith("no")]


@pytest.mark.parametrize("case", EMPTY, ids=lambda case: str(case.id))
def test_c4_counts_of_an_empty_call_may_stay_unwritten(case: Case, tmp_path: Path) -> None:
    """FOUND C4: the design returns at once, and the vendor leaves indice_num as it was."""
    assert len(EMPTY) == 4
    for implementation in (Python(f"{PLUGIN}:returns_at_once"), Reference(), Tiled()):
        assert status(case, tmp_path, implementation) == ("empty", "every output has zero elements")


CAPACITY = [case for case in expand_operator("get_indice_pairs") if case.name.startswith("room_for_more_rows")]


@pytest.mark.parametrize("case", CAPACITY, ids=lambda case: str(case.id))
def test_c2_only_the_counted_rows_are_compared(case: Case, tmp_path: Path) -> None:
    """FOUND C2: frameworks pass an out_indices with more rows than there are outputs."""
    assert len(CAPACITY) == 2
    for implementation in (Reference(), Tiled(), Python(f"{PLUGIN}:rubbish_behind_the_rows")):
        assert status(case, tmp_path, implementation) == ("pass", ""), implementation
    assert status(case, tmp_path, Python(f"{PLUGIN}:last_row_missing"))[0] == "fail"
    assert status(case, tmp_path, Python(f"{PLUGIN}:counts_the_capacity"))[1].startswith(
        "num_act_out is 630, expected "
    )


def test_c2_capacity_for_too_few_rows_is_refused(tmp_path: Path) -> None:
    outputs = (replace(CAPACITY[0].outputs[0], dims=(61, 4)), *CAPACITY[0].outputs[1:])
    with pytest.raises(InputError, match=r"out_indices has capacity for 61 rows in dim 0, the baseline has \d+"):
        generate(replace(CAPACITY[0], outputs=outputs), WriteOptions(tmp_path))
