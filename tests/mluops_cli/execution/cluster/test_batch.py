"""Cases come in batches: tiny ones together, large ones alone, and enough batches for all workers."""

from __future__ import annotations

from mluops_cli.core.discovery import PlannedCase
from mluops_cli.execution.cluster.batch import batches_of


def cases_of(*sizes: int) -> list[PlannedCase]:
    return [PlannedCase(f"op/suite/{number}", "op", "suite", "f.pb", size) for number, size in enumerate(sizes)]


def test_each_case_is_in_one_batch_in_order() -> None:
    cases = cases_of(*[100] * 1000)
    batches = list(batches_of(cases, 2))
    assert [case for batch in batches for case in batch.cases] == cases
    assert len(batches) == 32  # of at most 32 cases
    assert max(len(batch.cases) for batch in batches) == 32


def test_few_cases_are_spread_over_all_workers() -> None:
    assert [len(batch.cases) for batch in batches_of(cases_of(*[100] * 40), 8)] == [1] * 40
    assert list(batches_of([], 8)) == []


def test_a_large_case_goes_alone() -> None:
    mib = 1 << 20
    batches = batches_of(cases_of(2 * mib, mib, mib // 2, mib // 2, *[1] * 60), 1)
    assert [len(batch.cases) for batch in batches][:4] == [1, 1, 2, 8]
