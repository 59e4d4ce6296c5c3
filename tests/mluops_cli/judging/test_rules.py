"""Rulebooks: what is undefined is ignored, order may be free, and no inconsistent permutation passes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mluops_cli.judging.arithmetic import Array
from mluops_cli.judging.rules import OUTPUTS, rulebook
from mluops_cli.judging.verdict import OutputUnderTest, judge_case
from schemas.criteria import Criterion

K, L, ROWS = 3, 6, 5


def baseline() -> dict[str, Array]:
    """Five active sites, three offsets with 4, 0 and 6 pairs."""
    rows = np.array([[0, 0, 0, 1], [0, 0, 1, 0], [0, 2, 0, 0], [1, 0, 0, 1], [1, 0, 0, 2]], np.int32)
    pairs = np.full((K, 2, L), -1, np.int32)
    pairs[0, :, :4] = [[0, 1, 3, 5], [2, 0, 1, 4]]
    pairs[2, :, :6] = [[0, 1, 2, 3, 4, 5], [4, 3, 2, 1, 0, 4]]
    return {"out_indices": rows, "indice_pairs": pairs, "indice_num": np.array([4, 0, 6], np.int32)}


def copy() -> dict[str, Array]:
    return {name: array.copy() for name, array in baseline().items()}


def permuted(found: dict[str, Array], order: Any) -> dict[str, Array]:
    """Rows in another order with the pairs renumbered: new row i is old row order[i]."""
    number = np.empty(ROWS, np.int32)
    number[order] = np.arange(ROWS)
    found["out_indices"] = found["out_indices"][order]
    for k, count in enumerate(found["indice_num"]):
        found["indice_pairs"][k, 1, :count] = number[found["indice_pairs"][k, 1, :count]]
    return found


def status(found: dict[str, Array], **options: Any) -> str:
    before = {name: array.copy() for name, array in found.items()}
    expected, output = rulebook(baseline(), found, **options)
    for name in OUTPUTS:
        assert np.array_equal(found[name], before[name]), "the output itself was changed"
    exact = (Criterion("diff3", 0, "contract"),)
    verdict = judge_case([OutputUnderTest(name, expected[name], output[name], exact, "int32") for name in OUTPUTS])
    return verdict.status


@pytest.mark.parametrize("canonical", [False, True])
def test_the_same_rulebook_passes(canonical: Any) -> None:
    assert status(copy(), canonical=canonical) == "pass"
    assert status(copy(), canonical=canonical, strict_tail=True) == "pass"


@pytest.mark.parametrize("canonical", [False, True])
def test_what_lies_behind_the_counts_is_undefined_unless_demanded(canonical: Any) -> None:
    found = copy()
    found["indice_pairs"][0, :, 4:] = 77
    found["indice_pairs"][1] = 0
    assert status(found, canonical=canonical) == "pass"
    assert status(found, canonical=canonical, strict_tail=True) == "fail"


@pytest.mark.parametrize("canonical", [False, True])
@pytest.mark.parametrize("fault", ["count", "last pair", "row", "swapped pairs of two offsets", "count past L"])
def test_faults_fail(fault: str, canonical: Any) -> None:
    found = copy()
    if fault == "count":
        found["indice_num"][:2] = 3, 1
    elif fault == "count past L":
        found["indice_num"][0] = 1000
    elif fault == "last pair":
        found["indice_pairs"][2, 1, 5] = 3
    elif fault == "row":
        found["out_indices"][4, 3] += 1
    else:  # PITFALLS B03
        pairs = found["indice_pairs"]
        pairs[0, :, 0], pairs[2, :, 0] = pairs[2, :, 0].copy(), pairs[0, :, 0].copy()
    assert status(found, canonical=canonical) == "fail"


def test_pairs_in_any_order_pass_in_canonical_form_only() -> None:
    """PITFALLS B03."""
    found = copy()
    found["indice_pairs"][2] = found["indice_pairs"][2][:, [5, 2, 0, 1, 4, 3]]
    found["indice_pairs"][0, :, :4] = found["indice_pairs"][0, :, 3::-1]
    assert status(found, canonical=True) == "pass"
    assert status(found) == "fail"


@pytest.mark.parametrize("seed", range(5))
def test_rows_permuted_throughout_pass_in_canonical_form_only(seed: int) -> None:
    """PITFALLS B04."""
    order = np.random.default_rng(seed).permutation(ROWS)
    assert status(permuted(copy(), order), canonical=True) == "pass"
    if (order != np.arange(ROWS)).any():
        assert status(permuted(copy(), order)) == "fail"


def test_a_permutation_that_is_not_carried_through_fails() -> None:
    order = np.array([1, 0, 2, 3, 4])
    rows_only = copy()
    rows_only["out_indices"] = rows_only["out_indices"][order]
    assert status(rows_only, canonical=True) == "fail"
    pairs_only = permuted(copy(), order)
    pairs_only["out_indices"] = baseline()["out_indices"]
    assert status(pairs_only, canonical=True) == "fail"
    one_offset = permuted(copy(), order)
    one_offset["indice_pairs"][0] = baseline()["indice_pairs"][0]
    assert status(one_offset, canonical=True) == "fail"


def test_a_duplicate_row_does_not_stand_in_for_a_missing_one() -> None:
    found = copy()
    found["out_indices"][3] = found["out_indices"][1]
    assert status(found, canonical=True) == "fail"


@pytest.mark.parametrize("row", [-1, ROWS, 2**31 - 1, -(2**31)])
def test_rows_that_are_none_fail(row: Any) -> None:
    for pair in range(4):
        found = copy()
        found["indice_pairs"][0, 1, pair] = row
        assert status(found, canonical=True) == "fail"
    found = copy()
    found["indice_pairs"][0, 0, 2] = row
    assert status(found, canonical=True) == "fail"


def test_shapes_that_differ_fail() -> None:
    found = copy()
    found["out_indices"] = found["out_indices"][:4]
    assert status(found, canonical=True) == "fail"


def test_nothing_reached() -> None:
    empty = {
        "out_indices": np.zeros((0, 4), np.int32),
        "indice_pairs": np.full((K, 2, L), -1, np.int32),
        "indice_num": np.zeros(K, np.int32),
    }
    found = {name: array.copy() for name, array in empty.items()}
    found["indice_pairs"][...] = 5
    _, output = rulebook(empty, found, canonical=True)
    assert (output["indice_pairs"] == -1).all()


def test_a_large_rulebook_against_sorting_in_python() -> None:
    rng = np.random.default_rng(0)
    rows = np.unique(rng.integers(0, 50, (400, 4)).astype(np.int32), axis=0)
    count = rng.integers(0, 300, 27).astype(np.int32)
    pairs = np.full((27, 2, 300), -1, np.int32)
    for k, n in enumerate(count):
        pairs[k, :, :n] = np.sort(rng.permutation(300)[:n]), rng.integers(0, len(rows), n)
    book = {"out_indices": rows, "indice_pairs": pairs, "indice_num": count}
    order = rng.permutation(len(rows))
    number = np.argsort(order)
    found = {
        "out_indices": rows[order],
        "indice_pairs": rng.integers(-9, 9, pairs.shape).astype(np.int32),
        "indice_num": count,
    }
    for k, n in enumerate(count):
        mixed = rng.permutation(n)
        found["indice_pairs"][k, :, :n] = pairs[k, 0, mixed], number[pairs[k, 1, mixed]]
    expected, output = rulebook(book, found, canonical=True)
    assert np.array_equal(output["out_indices"], rows)
    for k, n in enumerate(count):
        want = sorted(zip(pairs[k, 0, :n].tolist(), pairs[k, 1, :n].tolist(), strict=True))
        for side in (expected, output):
            assert list(zip(*side["indice_pairs"][k, :, :n].tolist(), strict=True)) == want
    assert np.array_equal(expected["indice_pairs"], output["indice_pairs"])
