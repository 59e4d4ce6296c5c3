"""indice_convolution_forward: hand values, loops, dense convolutions, bounds, pairs that are refused, drawn pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generators.operator_registry import operator_named
from schemas.errors import InputError

OPERATOR = operator_named("indice_convolution_forward")
RULEBOOK = operator_named("get_indice_pairs")
F = np.float32


def env_of(inputs: Any, **params: Any) -> Any:
    return OPERATOR.contract.bind({name: array.shape for name, array in inputs.items()}, params)


def convolved(features: Any, filters: Any, pairs: Any, **params: Any) -> Any:
    inputs = {"features": features, "filters": filters, "indice_pairs": np.asarray(pairs, np.int32)}
    return OPERATOR.reference(inputs, env_of(inputs, **params))["features_out"]


def test_hand_values() -> None:
    features, filters = np.array([[1, 2], [3, 4]], F), np.tile(np.array([[10, 1], [0, 5]], F), (1, 1, 2, 1, 1))
    pairs = [[[0, 1], [1, 0]], [[1, -1], [1, -1]]]
    got = convolved(features, filters, pairs, indice_num=(2, 1), num_active_out=2)
    np.testing.assert_array_equal(got, [[30, 23], [40, 34]])


def test_what_lies_behind_the_count_is_not_read_and_rows_without_a_pair_are_0() -> None:
    features, filters = np.array([[2], [np.nan]], F), np.full((1, 1, 1, 1, 1), 3, F)
    got = convolved(features, filters, [[[0, 1], [2, 1]]], indice_num=(1,), num_active_out=4)
    np.testing.assert_array_equal(got, [[0], [0], [6], [0]])


def drawn(seed: int) -> tuple[Any, Any]:
    """Inputs and env of a drawn call; pairs are drawn here, any rows of both sides once per offset."""
    rng = np.random.default_rng(seed)
    N, A, K = (int(rng.integers(1, high)) for high in (9, 9, 5))
    CI, CO = (int(rng.integers(1, 5)) for _ in range(2))
    counts = tuple(int(rng.integers(0, min(N, A) + 1)) for _ in range(K))
    pairs = np.full((K, 2, N), 99, np.int32)
    for k, count in enumerate(counts):
        pairs[k, 0, :count], pairs[k, 1, :count] = rng.permutation(N)[:count], rng.permutation(A)[:count]
    inputs = {
        "features": rng.uniform(-1, 1, (N, CI)).astype(F),
        "filters": rng.uniform(-1, 1, (1, K, 1, CI, CO)).astype(F),
        "indice_pairs": pairs,
    }
    return inputs, env_of(inputs, indice_num=counts, num_active_out=A)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([np.float16, F]))
def test_the_reference_equals_the_loops(seed: int, dtype: Any) -> None:
    """spconv's formula, a multiplication at a time."""
    inputs, env = drawn(seed)
    inputs |= {name: inputs[name].astype(dtype) for name in ("features", "filters")}
    OPERATOR.check_values(inputs, env)
    features, filters, pairs = inputs.values()
    expected = np.zeros((env["num_active_out"], filters.shape[4]))
    for k, count in enumerate(env["indice_num"]):
        for r in range(count):
            for ci, co in np.ndindex(*filters.shape[3:]):
                expected[pairs[k, 1, r], co] += float(features[pairs[k, 0, r], ci]) * float(filters[0, k, 0, ci, co])
    got = OPERATOR.reference(inputs, env)["features_out"]
    assert got.dtype == dtype
    np.testing.assert_allclose(got, expected, rtol=2 * np.finfo(dtype).eps, atol=1e-7)


@pytest.mark.parametrize("sub_m", [0, 1])
@pytest.mark.parametrize(("kernel", "stride", "pad"), [((3, 3, 3), 1, 1), ((3, 1, 3), 2, 1), ((2, 3, 1), 2, 0)])
def test_along_a_rulebook_of_get_indice_pairs_it_is_a_dense_convolution(
    kernel: Any, stride: int, pad: int, sub_m: int
) -> None:
    """Zeros where there is no site; the sum over each window of the padded grid, as in any text book."""
    if sub_m:
        kernel, stride, pad = (3, 3, 3), 1, 1
    rng = np.random.default_rng(3)
    grid = np.zeros((5 + 2 * pad, 6 + 2 * pad, 7 + 2 * pad, 2))
    cells = rng.permutation(5 * 6 * 7)[:40]
    sites = np.stack(np.unravel_index(cells, (5, 6, 7)), axis=1)
    features, filters = rng.integers(-9, 9, (40, 2)).astype(F), rng.integers(-9, 9, (*kernel, 2, 3)).astype(F)
    grid[tuple((sites + pad).T)] = features
    indices = {"indices": np.pad(sites, ((0, 0), (1, 0))).astype(np.int32)}
    book_env = RULEBOOK.contract.bind(
        {"indices": (40, 4)},
        {"batch": 1, "input_space": (5, 6, 7), "filter_space": kernel, "stride": (stride,) * 3, "pad": (pad,) * 3,
         "dilation": (1, 1, 1), "sub_m": sub_m},
    )  # fmt: skip
    book = RULEBOOK.reference(indices, book_env)
    given = {"features": features, "filters": filters, "indice_pairs": book["indice_pairs"]}
    env = env_of(given, indice_num=tuple(book["indice_num"].tolist()), num_active_out=len(book["out_indices"]))
    OPERATOR.check_values(given, env | {"sub_m": sub_m})
    got = OPERATOR.reference(given, env)["features_out"]
    windows = np.lib.stride_tricks.sliding_window_view(grid, kernel, (0, 1, 2))[::stride, ::stride, ::stride]
    dense = np.einsum("dhwcxyz,xyzco->dhwo", windows, filters.astype(np.float64))
    np.testing.assert_array_equal(got, dense[tuple(book["out_indices"][:, 1:].T)])
    rest = dense.copy()
    rest[tuple(book["out_indices"][:, 1:].T)] = 0
    assert sub_m or not rest.any()  # no output is missing


# ---- bounds: formulations in float32 ----


def formulations(inputs: Any, env: Any) -> list[Any]:
    """A matrix product per offset, a sum over the offsets backwards, all terms of an output at once."""
    features, filters, pairs = inputs["features"], inputs["filters"], inputs["indice_pairs"]
    weights = filters.reshape(-1, *filters.shape[3:])
    shape = (env["num_active_out"], filters.shape[4])
    forwards, backwards, at_once = (np.zeros(shape, F) for _ in range(3))
    numbers = env["indice_num"]
    for k in range(len(numbers)):
        forwards[pairs[k, 1, : numbers[k]]] += features[pairs[k, 0, : numbers[k]]] @ weights[k]
    for k in reversed(range(len(numbers))):
        for sites, row in zip(features.T[::-1], weights[k][::-1], strict=True):
            backwards[pairs[k, 1, : numbers[k]]] += sites[pairs[k, 0, : numbers[k]], None] * row
    for o, co in np.ndindex(*shape):
        terms = [
            features[pairs[k, 0, r]] * weights[k, :, co]
            for k in range(len(numbers))
            for r in range(numbers[k])
            if pairs[k, 1, r] == o
        ]
        at_once[o, co] = np.sum(np.concatenate([np.zeros(0, F), *terms]), dtype=F)
    return [forwards, backwards, at_once]


def worst(seed: int, fault: Any = lambda features: features) -> float:
    """The largest error over bound of all formulations, for one drawn call."""
    inputs, env = drawn(seed)
    if seed % 3 == 0:
        scales = F(10) ** np.random.default_rng(seed).integers(-15, 15, inputs["features"].shape).astype(F)
        inputs["features"] = inputs["features"] * scales
    baseline = OPERATOR.reference(inputs, env)["features_out"]
    bound = OPERATOR.error_bound(inputs, env)["features_out"].astype(np.float64)
    errors = [
        np.abs(each.astype(np.float64) - baseline)
        for each in formulations({**inputs, "features": fault(inputs["features"])}, env)
    ]
    with np.errstate(divide="ignore", invalid="ignore"):
        return max(float(np.where(error == 0, 0, error / bound).max(initial=0)) for error in errors)


@pytest.mark.parametrize("seed", [*range(30), *(pytest.param(s, marks=pytest.mark.slow) for s in range(30, 400))])
def test_no_right_kernel_is_beyond_its_bound(seed: int) -> None:
    assert worst(seed) <= 1


def test_a_faulty_one_is_beyond_it() -> None:
    assert max(worst(seed, lambda features: features * F(1.001)) for seed in (1, 2, 4)) > 20


# ---- values ----


@pytest.mark.parametrize(
    ("pairs", "params", "told"),
    [
        ([[[0, 1, 2], [0, 1, 2]]], {"indice_num": (4,)}, "indice_num[0] is 4, indice_pairs holds at most 3 pairs"),
        ([[[0, 3, 2], [0, 1, 2]]], {"indice_num": (3,)}, "indice_pairs[0, 0, 1] is 3, expected 0 to 2"),
        ([[[0, 1, 2], [0, -1, 2]]], {"indice_num": (3,)}, "indice_pairs[0, 1, 1] is -1, expected 0 to 2"),
        ([[[0, 1, 0], [0, 1, 2]]], {"indice_num": (3,)}, "indice_pairs[0, 0] names a row twice among the first 3"),
        ([[[0, 1, 2], [1, 1, 2]]], {"indice_num": (2,)}, "indice_pairs[0, 1] names a row twice among the first 2"),
        ([[[0, 1, 2], [0, 2, 1]]], {"indice_num": (3,), "sub_m": 1}, "subm needs the pairs (j, j) of all 3 sites"),
        ([[[0, 1, 2], [0, 1, 2]]], {"indice_num": (2,), "sub_m": 1}, "subm needs the pairs (j, j) of all 3 sites"),
    ],
)
def test_pairs_that_mean_nothing_are_refused(pairs: Any, params: dict[str, Any], told: str) -> None:
    inputs = {
        "features": np.ones((3, 1), F),
        "filters": np.ones((1, 1, 1, 1, 1), F),
        "indice_pairs": np.array(pairs, np.int32),
    }
    shapes = {name: array.shape for name, array in inputs.items()}
    with pytest.raises(InputError) as raised:
        OPERATOR.check_inputs(inputs, shapes, params)
    assert told in str(raised.value)
    inputs["indice_pairs"] = np.array([[[0, 1, 2], [0, 1, 2]]], np.int32)
    OPERATOR.check_inputs(inputs, shapes, {**params, "indice_num": (3,)})


@pytest.mark.parametrize(
    ("N", "A", "kernel", "sub_m"),
    [(0, 0, (3, 3, 3), 0), (0, 5, (3, 3, 3), 0), (1, 1, (1, 1, 1), 1), (1, 1, (3, 3, 3), 0), (50, 50, (3, 3, 3), 1),
     (50, 20, (3, 3, 3), 0), (50, 900, (2, 1, 2), 0), (50, 50, (33, 1, 1), 0), (50, 0, (3, 1, 1), 0)],
)  # fmt: skip
def test_drawn_pairs_are_legal(N: int, A: int, kernel: Any, sub_m: int) -> None:
    env = {"N": N, "num_active_out": A, "sub_m": sub_m, **dict(zip(("FD", "FH", "FW"), kernel, strict=True))}
    pairs = OPERATOR.draw("indice_pairs", "rulebook", env, np.random.default_rng(1), {})
    assert pairs is not None
    inputs = {"features": np.ones((N, 1), F), "indice_pairs": pairs}
    env["indice_num"] = OPERATOR.computed_parameter("indice_num", inputs, env)
    OPERATOR.check_values(inputs, env)
    counted = [int(np.count_nonzero(own[0] >= 0)) for own in pairs]
    assert env["indice_num"] == tuple(counted)
    assert (sum(counted) > 0) == (min(N, A) > 0)
    assert (pairs[:, 0] >= 0).tolist() == (pairs[:, 1] >= 0).tolist()
    assert OPERATOR.draw("indice_pairs", "alien", env, np.random.default_rng(1), {}) is None
