"""Each explanation on hand-made outputs: said where it explains all elements, not by chance, and silent elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mluops_cli.judging.arithmetic import Array
from mluops_cli.judging.explanations.batch_mixture import mixed_batch
from mluops_cli.judging.explanations.evidence import Difference, Elements, fits
from mluops_cli.judging.explanations.explain import Known, explanations
from mluops_cli.judging.explanations.factor import constant_factor
from mluops_cli.judging.explanations.low_precision import low_precision
from mluops_cli.judging.explanations.missing_terms import Terms, wrong_terms
from mluops_cli.judging.explanations.recomputed import Suspect, recomputed

F = np.float32
NO_ROUNDING = np.zeros((), F)


def data(*shape: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(F)


def changed(b: Array, m: Any, bound: Array | None = NO_ROUNDING) -> Difference:
    return Difference(b, np.asarray(m, b.dtype), bound)


def no_bound(dtype: str) -> Array | None:
    return None


# Evidence


def test_an_element_counts_by_how_improbable_its_value_is() -> None:
    b = np.full(4, 1 + 2.0**-23)
    limit = np.full(4, 2.0**-20)
    m = b + np.array([2.0**-17, 2.0**-10, 2.0**-21, 0])  # 3 bits, 10 capped at 8, explained by rounding, a zero
    m[3] = 0
    assert Difference(b.astype(F), m.astype(F)).evidence(Elements(b, m, limit)) == 3 + 8


def test_coarse_values_count_less() -> None:
    b, m = np.array([3.0, 4.0]), np.array([4.0, 8.0])
    whole = Elements(b, m, np.zeros(2))
    assert Difference(b.astype(F), m.astype(F)).evidence(whole) == 1 + 3  # half a step is 1/2
    finer = Elements(b + 2.0**-10, m, np.zeros(2))
    assert Difference(b.astype(F), m.astype(F)).evidence(finer) == 2 * 8


def test_nan_and_inf_have_to_agree_and_elements_without_a_bound_fit() -> None:
    expected = np.array([np.nan, np.inf, 1.0, 2.0])
    limit = np.array([np.nan, np.nan, 0.5, np.nan])
    assert fits(expected, np.array([np.nan, np.inf, 1.25, 9.0]), limit)
    for at, value in ((0, 1.0), (1, -np.inf), (2, 2.0), (2, np.nan)):
        output = np.array([np.nan, np.inf, 1.25, 9.0])
        output[at] = value
        assert not fits(expected, output, limit)


# A constant factor


@pytest.mark.parametrize("factor", [1.01, 1.001, -1.0, 0.5, 3e4])
def test_a_factor_is_found_by_least_squares(factor: float) -> None:
    """The noise is that of rounding: the ratios of single elements scatter, most where the baseline is small."""
    b = data(1000)
    bound = np.full(b.shape, 1e-6, F)
    noise = np.random.default_rng(2).uniform(-9e-7, 9e-7, b.shape)
    (pattern,) = constant_factor(changed(b, (b + noise) * factor, bound))
    assert pattern.word == "factor"
    assert pattern.text.startswith(f"explained by the baseline times {factor:.6g} (least squares; what remains is 0.")


def test_a_factor_of_a_region_is_told_and_that_of_few_elements_is_not() -> None:
    b = data(40, 5)
    m = b.copy()
    m[7] *= F(1.5)
    assert [pattern.word for pattern in constant_factor(changed(b, m))] == ["factor"]
    m = b.copy()
    m[7, :2] *= F(1.5)
    assert list(constant_factor(changed(b, m))) == []


@pytest.mark.parametrize(
    "fault",
    [
        lambda b: b + F(0.01),
        lambda b: b * np.where(np.arange(b.size) % 2, F(1.01), F(1.02)),
        lambda b: b * F(1.01) + np.where(np.arange(b.size) == 50, F(1e-4), F(0)),
        lambda b: np.roll(b, 1),
        lambda b: b,
    ],
)
def test_what_is_no_factor(fault: Callable[[Array], Array]) -> None:
    b = data(1000)
    assert list(constant_factor(changed(b, fault(b), np.full(b.shape, 1e-7, F)))) == []


def test_a_constant_baseline_has_no_factor() -> None:
    b = np.full(100, 2, F)
    assert list(constant_factor(changed(b, b * F(1.5)))) == []


# Lower precision


def half_sums(terms: Array, dtype: Any) -> Any:
    total = np.zeros(terms.shape[1], dtype)
    for row in terms:
        total = (total + row.astype(dtype)).astype(dtype)
    return total.astype(F)


@pytest.mark.parametrize(("name", "dtype"), [("half", np.float16), ("bfloat16", ml_dtypes.bfloat16)])
def test_rounding_the_result_and_adding_in_a_lower_precision_are_told_apart(name: str, dtype: Any) -> None:
    terms = data(100, 50)
    b = terms.sum(axis=0, dtype=np.float64).astype(F)
    bound = np.full(b.shape, 1e-5, F)
    asked: list[str] = []

    def accumulated(precision: str) -> Array:
        asked.append(precision)
        unit = {"half": 2.0**-11, "bfloat16": 2.0**-8}[precision]
        return np.asarray(100 * unit * np.abs(terms).sum(axis=0), F)

    (once,) = low_precision(changed(b, b.astype(dtype).astype(F), bound), accumulated)
    assert (once.word, asked) == (f"rounded through {name}", [])
    (often,) = low_precision(changed(b, half_sums(terms, dtype), bound), accumulated)
    assert (often.word, often.text, asked) == (f"sums in {name}", f"explained by sums in {name}", [name])
    assert list(low_precision(changed(b, half_sums(terms, dtype), bound), no_bound)) == []


def test_sums_that_overflow_half_are_explained_where_their_terms_are_so_large() -> None:
    b, limit = data(100) * F(1e3), np.full(100, 64, F)
    m = b.astype(np.float16).astype(F)
    m[:60] += F(32)
    m[7], m[8] = np.inf, np.nan
    m[:60] = m[:60].astype(np.float16)
    (pattern,) = low_precision(changed(b, m), lambda _: limit)
    assert pattern.word == "sums in half"
    assert list(low_precision(changed(b, m), lambda _: np.where(np.arange(100) == 7, F(1), limit))) == []


def test_values_of_half_that_are_too_far_off_are_no_sums_in_half() -> None:
    b = data(50)
    m = data(50, seed=2).astype(np.float16)
    assert list(low_precision(changed(b, m), lambda _: np.full(b.shape, 1e-2, F))) == []
    assert list(low_precision(changed(b, b * F(1.01)), lambda _: np.full(b.shape, 1e9, F))) == []


def test_whole_numbers_that_half_holds_anyway_prove_nothing() -> None:
    b = np.random.default_rng(1).integers(0, 2048, 50).astype(F)
    assert list(low_precision(changed(b, b + 1), lambda _: np.full(b.shape, 1e9, F))) == []


# Items of a batch


def test_exchanged_items_and_sums_of_items_are_told() -> None:
    b = data(3, 40)
    (pattern,) = mixed_batch(changed(b, b[[1, 0, 2]]), 0, 3)
    assert pattern.text == "explained by mixed items of the batch: item 0 holds item 1, item 1 holds item 0"
    (pattern,) = mixed_batch(changed(b, np.stack([b.sum(axis=0), b[1] * 0, b[2]])), 0, 3)
    assert pattern.text.endswith("item 0 holds item 0 + item 1 + item 2, item 1 holds zeros")
    (pattern,) = mixed_batch(changed(b, b[[2, 2, 2]]), 0, 3)
    assert pattern.text.endswith("every item holds item 2")


def test_items_of_several_elements_along_another_axis() -> None:
    b = data(5, 4, 7)
    (pattern,) = mixed_batch(changed(b, b[:, [2, 3, 0, 1]]), 1, 2)
    assert pattern.text.endswith("item 0 holds item 1, item 1 holds item 0")


def test_equal_items_and_items_of_zeros_hide_nothing() -> None:
    b = data(4, 40)
    b[1], b[3] = b[0], 0
    (pattern,) = mixed_batch(changed(b, b[[2, 1, 0, 3]]), 0, 4)
    assert pattern.text.endswith("item 0 holds item 2, item 2 holds item 0")


@pytest.mark.parametrize(
    "fault",
    [
        lambda b: b + data(*b.shape, seed=5) * F(1e-3),
        lambda b: np.stack([b[0] + F(0.5) * b[1], *b[1:]]),
        lambda b: np.stack([b[0], b[1] * 0, *b[2:]]),
        lambda b: np.stack([b[1], *b[1:-1], data(b.shape[1], seed=6)]),
        lambda b: b,
    ],
)
def test_what_is_no_mixture(fault: Callable[[Array], Array]) -> None:
    b = data(3, 40)
    assert list(mixed_batch(changed(b, fault(b), np.full(b.shape, 1e-7, F)), 0, 3)) == []


def test_items_of_few_elements_may_fit_by_chance() -> None:
    b = data(6, 5)
    assert list(mixed_batch(changed(b, b + np.tril(np.ones((6, 6)), -1) @ b), 0, 6)) == []
    assert list(mixed_batch(changed(b[:2, :1], b[1::-1, :1]), 0, 2)) == []


# Recomputed outputs


def suspect(word: str, text: str, variant: str, output: Array | None, bound: Array | None = NO_ROUNDING) -> Suspect:
    return Suspect(word, text, variant, lambda: None if output is None else (output, lambda: bound))


def test_variants_share_a_sentence_and_a_wider_fault_is_not_told() -> None:
    b, m, other = data(20), data(20, seed=2), data(20, seed=3)
    found = recomputed(
        changed(b, m),
        [
            suspect("swapped", "y and x swapped", "", other),
            suspect("rounded", "x rounded to ", "half", m),
            suspect("rounded", "x rounded to ", "tf32", m.copy()),
            suspect("rounded", "x rounded to ", "bfloat16", other),
            suspect("rounded", "x and y rounded to ", "half", m),
            suspect("refused", "what the contract excludes", "", None),
        ],
    )
    assert [pattern.text for pattern in found] == ["explained by x rounded to half or tf32"]


def test_one_element_that_does_not_fit_refutes() -> None:
    b, expected = data(200), data(200, seed=2)
    m = expected.copy()
    bound = np.full(b.shape, 1e-6, F)
    assert list(recomputed(changed(b, m + F(9e-7)), [suspect("a", "a", "", expected, bound)]))
    m[100] += F(2e-6)
    assert not list(recomputed(changed(b, m), [suspect("a", "a", "", expected, bound)]))


def test_what_the_baseline_explains_too_needs_no_suspect() -> None:
    b = data(200)
    assert not list(recomputed(changed(b, b), [suspect("a", "a", "", b.copy())]))


def test_the_bound_is_not_computed_for_a_suspect_that_is_far_off() -> None:
    def never() -> Array:
        raise AssertionError

    b, m, other = data(20), data(20, seed=2), data(20, seed=3)
    assert not list(recomputed(changed(b, m), [Suspect("a", "a", "", lambda: (other, never))]))


# Terms of sums: two input rows make a sum, the second of them with the weight 1/2


def summed(rows: Array) -> Array:
    """[P, C] into [P/2, C]."""
    pairs = rows.reshape(-1, 2, rows.shape[1])
    total: Array = pairs[:, 0] + F(0.5) * pairs[:, 1]
    return total


def terms_of(rows: Array) -> Terms:
    def share(p: int) -> Array:
        alone = np.zeros_like(rows)
        alone[p] = rows[p]
        return summed(alone)

    return Terms("x", rows, share)


def without(rows: Array, *missing: int, times: float = 0) -> Array:
    left = rows.copy()
    left[list(missing)] *= F(times)
    return summed(left)


def test_a_missing_and_a_doubled_term_are_named() -> None:
    rows = data(40, 6)
    b, bound = summed(rows), np.full((20, 6), 1e-6, F)
    (pattern,) = wrong_terms(changed(b, without(rows, 7), bound), terms_of(rows))
    assert (pattern.word, pattern.text) == ("missing term", "explained by the term of x[7] missing")
    (pattern,) = wrong_terms(changed(b, without(rows, 8, times=2), bound), terms_of(rows))
    assert (pattern.word, pattern.text) == ("doubled term", "explained by the term of x[8] added twice")


def test_several_sums_that_lack_a_term_each() -> None:
    rows = data(40, 12)
    (pattern,) = wrong_terms(changed(summed(rows), without(rows, 7, 10, 31), NO_ROUNDING), terms_of(rows))
    assert pattern.text == "explained by one term missing in each of 3 sums, such as x[7] at [3]"


def test_equal_terms_are_not_told_apart() -> None:
    rows = data(40, 6)
    rows[6] = F(0.5) * rows[7]  # with their weights
    (pattern,) = wrong_terms(changed(summed(rows), without(rows, 7), NO_ROUNDING), terms_of(rows))
    assert pattern.text == "explained by one term missing, x[6] or an equal one"


def test_a_sum_of_one_term_without_it_is_zero() -> None:
    rows = data(40, 6)
    rows[6] = 0
    (pattern,) = wrong_terms(changed(summed(rows), without(rows, 7), NO_ROUNDING), terms_of(rows))
    assert pattern.text == "explained by the term of x[7] missing"
    rows[8] = 0
    assert not list(wrong_terms(changed(summed(rows), without(rows, 7, 9), NO_ROUNDING), terms_of(rows)))


@pytest.mark.parametrize(
    "fault",
    [
        lambda rows: without(rows, 7, times=0.5),  # a part of a term
        lambda rows: summed(rows) - np.where(np.arange(20)[:, None] == 9, rows[7], F(0)),  # the term of another sum
        lambda rows: summed(rows) - np.where(np.arange(20)[:, None] == 3, rows[7], F(0)),  # another weight
        lambda rows: summed(rows) + np.where(np.arange(20)[:, None] == 3, data(6, seed=4), F(0)),
        lambda rows: without(rows, 6, 7),  # both terms
        lambda rows: without(without(rows, 6).repeat(2, axis=0), 9),
        lambda rows: summed(rows),
    ],
)
def test_what_is_no_missing_term(fault: Callable[[Array], Array]) -> None:
    rows = data(40, 6)
    m = fault(rows)
    m = m if m.shape == (20, 6) else np.roll(summed(rows), 1)
    assert not list(wrong_terms(changed(summed(rows), m, np.full((20, 6), 1e-7, F)), terms_of(rows)))


def test_missing_and_doubled_together_have_no_word() -> None:
    rows = data(40, 12)
    changed_rows = rows.copy()
    changed_rows[7], changed_rows[12] = 0, 2 * rows[12]
    assert not list(wrong_terms(changed(summed(rows), summed(changed_rows)), terms_of(rows)))


def test_rows_of_two_elements_may_fit_by_chance() -> None:
    rows = data(40, 2)
    assert not list(wrong_terms(changed(summed(rows), without(rows, 7), NO_ROUNDING), terms_of(rows)))


# All together


def found(difference: Difference, known: Known) -> list[str]:
    return [pattern.word for pattern in chain.from_iterable(explanations(difference, known))]


def test_nothing_is_tried_where_rounding_explains_the_output() -> None:
    def never() -> Any:
        raise AssertionError

    b = data(50)
    known = Known(suspects=never, batch=(0, 5))
    assert found(changed(b, b + F(1e-7), np.full(b.shape, 1e-6, F)), known) == []


@pytest.mark.parametrize("dtype", ["?", "c8", "u8", "i8"])
def test_values_that_float64_does_not_hold_are_left_alone(dtype: str) -> None:
    b = np.arange(60).astype(dtype)
    assert found(Difference(b, np.roll(b, 20)), Known(batch=(0, 3))) == []


def test_integers_are_explained_by_suspects_alone() -> None:
    b = np.arange(100, dtype=np.int32)
    m = b * 2
    assert found(Difference(b, m), Known(suspects=lambda: [suspect("a", "a", "", m.copy(), None)])) == ["a"]
    assert found(Difference(b, m), Known()) == []


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_other_floats(dtype: Any) -> None:
    b = (data(200) * 8).astype(dtype)
    assert found(Difference(b, (b * dtype(2)).astype(dtype)), Known()) == ["factor"]


def test_a_large_output_is_thinned() -> None:
    b = data(1 << 10, 1 << 11)
    assert found(changed(b, b * F(1.01), np.full(b.shape, 1e-7, F)), Known()) == ["factor"]
    assert found(changed(b, b[::-1], np.full(b.shape, 1e-7, F)), Known(batch=(0, 2))) == []
    halves = b.reshape(2, -1)[::-1].reshape(b.shape)
    assert found(changed(b, halves, np.full(b.shape, 1e-7, F)), Known(batch=(0, 2))) == ["mixed batch"]
