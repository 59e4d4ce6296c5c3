"""What the self-test says must be seen is what the formulas of docs/judging.md say, in exact fractions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mluops_cli.judging.arithmetic import Array
from mluops_cli.judging.fault_injection.detectability import CHUNK, Detectability, Expectation, Ranges
from schemas.criteria import Criterion
from tests.mluops_cli.judging.naive import FLOORS, exact, naive

SUMS = ("diff1", "diff2", "diff3", "diff3_1", "diff3_2")


def expect(
    b: Array,
    m: Array,
    name: str,
    threshold: float,
    touched: Ranges | None = None,
    dtype: str = "float",
    **options: Any,
) -> Expectation:
    detectability = Detectability(b, [Criterion(name, threshold)], dtype, **options)
    return detectability.expect(m, touched or [(0, b.size)])


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize(("dtype", "storage"), [("float", "f4"), ("half", "f2"), ("double", "f8"), ("int32", "i4")])
@pytest.mark.parametrize("seed", range(3))
def test_must_be_seen_is_what_the_formula_says(name: str, dtype: str, storage: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    b = (rng.normal(0, 10, 300)).astype(storage)
    b[::7] = 0
    m = b.copy()
    places = rng.permutation(300)[:5]
    m[places] += rng.integers(1, 9, 5).astype(storage)
    value = naive(exact(b), exact(m), FLOORS.get(dtype, 0))[name]
    touched = [(int(place), int(place) + 1) for place in places]
    assert expect(b, m, name, value * 0.999, touched, dtype).must_fail
    below = expect(b, m, name, value * 1.001, touched, dtype)
    assert (below.changed, below.must_fail) == (True, False)
    assert f"{name} = {value:.3g} <= {value * 1.001:g}" in below.reason
    assert expect(b, m, name, 0.0, touched, dtype).must_fail


def test_nothing_changed_in_value() -> None:
    b = np.array([0.0, np.nan, 1, np.inf], np.float32)
    m = np.array([-0.0, -np.nan, 1, np.inf], np.float32)
    assert expect(b, m, "diff3", 0.0).changed is False


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_inf_are_seen_at_any_threshold(bad: float) -> None:
    b = np.ones(10, np.float32)
    m = b.copy()
    m[3] = bad
    assert expect(b, m, "diff1", 1e30).must_fail
    assert expect(m, b, "diff1", 1e30).must_fail


def test_only_what_is_touched_and_counts_is_looked_at() -> None:
    b = np.arange(10, dtype=np.int32)
    m = b.copy()
    m[[2, 8]] = 0
    assert expect(b, m, "diff3", 0.0, [(8, 9)], "int32").must_fail
    assert not expect(b, m, "diff3", 0.0, [(3, 8)], "int32").changed
    first_half = lambda start, stop: np.arange(start, stop) < 5  # noqa: E731
    assert not expect(b, m, "diff3", 0.0, [(8, 9)], "int32", defined=first_half).changed
    assert expect(b, m, "diff3", 0.0, [(2, 3)], "int32", defined=first_half).must_fail


def test_ranges_over_many_chunks_add_up() -> None:
    size = 3 * CHUNK + 1
    b = np.ones(size, np.float32)
    m = b * np.float32(1.01)
    value = float(np.abs(m.astype("f8") - 1).sum() / size)
    assert expect(b, m, "diff1", value * 0.9999).must_fail
    assert not expect(b, m, "diff1", value * 1.0001).must_fail


@pytest.mark.parametrize("part", [0, 1])
def test_parts_of_complex_outputs_are_looked_at_apart(part: int) -> None:
    pairs = np.ones((50, 2), np.float32)
    wrong = pairs.copy()
    wrong[7, part] = 2
    value = 1 / 50
    for b, m, dtype in (
        (pairs.view(np.complex64)[:, 0], wrong.view(np.complex64)[:, 0], "complex_float"),
        (pairs.astype("f2"), wrong.astype("f2"), "complex_half"),
    ):
        at = 7 if dtype == "complex_float" else 14 + part
        assert expect(b, m, "diff1", value * 0.99, [(at, at + 1)], dtype).must_fail
        assert not expect(b, m, "diff1", value * 1.01, [(at, at + 1)], dtype).must_fail


def test_one_sided_and_divergence() -> None:
    rng = np.random.default_rng(0)
    b = rng.uniform(1, 2, 2000).astype(np.float32)
    assert expect(b, b + np.float32(0.1), "diff4", 0.9).must_fail
    assert not expect(b, b + rng.normal(0, 0.1, 2000).astype(np.float32), "diff4", 0.9).must_fail
    m = b.copy()
    m[:500] *= 3
    p, q = b.astype("f8") / b.sum(dtype="f8"), m.astype("f8") / m.sum(dtype="f8")
    kl = float(((p - q) * np.log(p / q)).sum())
    assert expect(b, m, "diff_kl", kl * 0.999).must_fail
    assert not expect(b, m, "diff_kl", kl * 1.001).must_fail
