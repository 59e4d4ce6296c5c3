"""Faults of precision: what the thresholds let pass is beyond the error bound, or caught by the suite exact."""

from __future__ import annotations

from pathlib import Path

import pytest

from mluops_cli.search.faulty_kernels import accuracy
from mluops_cli.search.faulty_kernels.catalogue import MODULES, precision_faults
from schemas.casefiles.reading import read_case
from tests.faulty.catalogue import COMPUTED, EXACT, caught, run_all, seen_by
from tests.faulty.conftest import Cases

SEEN = {  # two cells of one channel for each item of the batch: their sums nearly cancel
    ("voxel_pooling_forward", "input_through_bfloat16"): ["general/voxels_z_num_voxel_z70000"]
}


@pytest.mark.parametrize(("op", "name"), [(op, name) for op in MODULES for name in precision_faults(op)])
def test_a_fault_of_precision_is_beyond_the_bound_or_caught_by_exact(cases: Cases, op: str, name: str) -> None:
    """Sums: by both of them. Copies and rulebooks, which have no tolerance: by their thresholds.

    Every third case of the other suites: the page of faults, a slow test, counts them all. Sums in half hide what
    these faults do to their inputs and outputs: less than the rounding of half.
    """
    valid = [file for file in cases(op) if file.parent.name in COMPUTED]
    if op not in accuracy.SUMS:
        assert seen_by(run_all(valid, op, name, until=caught)).thresholds
        return
    valid = [file for file in valid if not _in_half(file)]
    exact = [file for file in valid if file.parent.name == EXACT]
    others = [file for file in valid if file.parent.name != EXACT]
    seen = seen_by(run_all([*exact, *others[::3]], op, name))
    assert len(seen.bound) > 0.8 * seen.cases
    if "grid" in name:  # in the other exact cases half and bfloat16 hold every coordinate
        assert seen.exact == ["exact/far_columns", "exact/far_rows", "exact/wide"]
    else:
        assert len(seen.exact) == seen.exact_cases


@pytest.mark.slow
@pytest.mark.parametrize("op", accuracy.SUMS)
def test_what_the_thresholds_let_pass(cases: Cases, op: str) -> None:
    """The suites other than exact: without error bounds these faults pass nearly everywhere."""
    general = [file for file in cases(op) if file.parent.name == "general"]
    for name in ("input_through_bfloat16", "output_times_1_001", "one_element_off"):
        assert seen_by(run_all(general, op, name)).thresholds == SEEN.get((op, name), [])


def _in_half(file: Path) -> bool:
    with read_case(file) as case:
        return any(each.dtype.name == "half" for each in case.outputs)
