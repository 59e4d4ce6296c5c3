"""psamask: hand-checked values, brute force, adjointness, bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generators.operator_registry import operator_named

COLLECT, DISTRIBUTE = 0, 1
FORWARD, BACKWARD = operator_named("psamask_forward"), operator_named("psamask_backward")


def forward(x: Any, **params: Any) -> Any:
    return FORWARD.reference({"x": x}, params)["y"]


def backward(dy: Any, **params: Any) -> Any:
    return BACKWARD.reference({"dy": dy}, params)["dx"]


def loops(given: Any, psa_type: Any, h_mask: Any, w_mask: Any, direction: Any) -> Any:
    """The formula of the design, one element at a time."""
    N, H, W, _ = given.shape
    computed = np.zeros((N, H, W, H * W if direction == "forward" else h_mask * w_mask), given.dtype)
    hh, hw = (h_mask - 1) // 2, (w_mask - 1) // 2
    for n, h, w, p, q in np.ndindex(N, H, W, h_mask, w_mask):
        i, j = p + h - hh, q + w - hw
        if 0 <= i < H and 0 <= j < W:
            masked = (n, h, w, p * w_mask + q)
            full = (n, h, w, i * W + j) if psa_type == COLLECT else (n, i, j, h * W + w)
            if direction == "forward":
                computed[full] = given[masked]
            else:
                computed[masked] = given[full]
    return computed


sizes = st.tuples(st.integers(1, 3), st.integers(1, 6), st.integers(1, 6))
masks = st.tuples(st.integers(1, 9), st.integers(1, 9))


@pytest.mark.parametrize(("psa_type", "expected"), [(COLLECT, [[[2, 3], [4, 5]]]), (DISTRIBUTE, [[[2, 4], [3, 5]]])])
def test_hand_checked_values(psa_type: int, expected: Any) -> None:
    x = np.array([1, 2, 3, 4, 5, 6], np.float32).reshape(1, 1, 2, 3)
    np.testing.assert_array_equal(forward(x, psa_type=psa_type, h_mask=1, w_mask=3)[0], expected)


@pytest.mark.parametrize("psa_type", [COLLECT, DISTRIBUTE])
def test_hand_checked_backward_returns_what_was_taken(psa_type: int) -> None:
    dy = np.array([[[2, 3], [4, 5]]] if psa_type == COLLECT else [[[2, 4], [3, 5]]], np.float32)[None]
    expected = [[[0, 2, 3], [4, 5, 0]]]
    np.testing.assert_array_equal(backward(dy, psa_type=psa_type, h_mask=1, w_mask=3)[0], expected)


@settings(max_examples=60, deadline=None)
@given(sizes, masks, st.sampled_from([COLLECT, DISTRIBUTE]))
def test_forward_equals_the_loops(size: Any, mask: Any, psa_type: int) -> None:
    N, H, W = size
    x = np.arange(1, 1 + N * H * W * mask[0] * mask[1], dtype=np.float32).reshape(N, H, W, -1)
    np.testing.assert_array_equal(
        forward(x, psa_type=psa_type, h_mask=mask[0], w_mask=mask[1]), loops(x, psa_type, mask[0], mask[1], "forward")
    )


@settings(max_examples=60, deadline=None)
@given(sizes, masks, st.sampled_from([COLLECT, DISTRIBUTE]))
def test_backward_equals_the_loops(size: Any, mask: Any, psa_type: int) -> None:
    N, H, W = size
    dy = np.arange(1, 1 + N * (H * W) ** 2, dtype=np.float32).reshape(N, H, W, -1)
    np.testing.assert_array_equal(
        backward(dy, psa_type=psa_type, h_mask=mask[0], w_mask=mask[1]),
        loops(dy, psa_type, mask[0], mask[1], "backward"),
    )


@settings(max_examples=60, deadline=None)
@given(sizes, masks, st.sampled_from([COLLECT, DISTRIBUTE]), st.integers(0, 2**32))
def test_backward_is_the_adjoint_of_forward(size: Any, mask: Any, psa_type: int, seed: int) -> None:
    """<dy, F x> = <F' dy, x>, exactly: integer values whose sums a double holds."""
    N, H, W = size
    params = {"psa_type": psa_type, "h_mask": mask[0], "w_mask": mask[1]}
    rng = np.random.default_rng(seed)
    x = rng.integers(-9, 10, (N, H, W, mask[0] * mask[1])).astype(np.float64)
    dy = rng.integers(-9, 10, (N, H, W, H * W)).astype(np.float64)
    assert np.vdot(dy, forward(x, **params)) == np.vdot(backward(dy, **params), x)


@pytest.mark.parametrize("psa_type", [COLLECT, DISTRIBUTE])
@pytest.mark.parametrize("operator", ["forward", "backward"])
def test_copies_keep_every_bit(psa_type: int, operator: Any) -> None:
    """Quiet and signalling NaN payloads, infinities, subnormals and -0: the loops copy integers of the same bits."""
    rng = np.random.default_rng(5)
    shape = (2, 4, 3, 15) if operator == "forward" else (2, 4, 3, 12)
    bits = rng.integers(0, 2**32, shape, dtype=np.uint32)
    bits.flat[:6] = [0x7FC00001, 0xFF800123, 0x7F800000, 0x80000000, 0x00000001, 0x7F7FFFFF]
    compute = forward if operator == "forward" else backward
    computed = compute(bits.view(np.float32), psa_type=psa_type, h_mask=3, w_mask=5)
    np.testing.assert_array_equal(computed.view(np.uint32), loops(bits, psa_type, 3, 5, operator))


@pytest.mark.parametrize("shape", [(0, 3, 4), (2, 0, 4), (2, 3, 0)])
def test_zero_elements_give_empty_outputs(shape: Any) -> None:
    N, H, W = shape
    params = {"psa_type": COLLECT, "h_mask": 3, "w_mask": 2}
    assert forward(np.empty((*shape, 6), np.float32), **params).shape == (N, H, W, H * W)
    assert backward(np.empty((*shape, H * W), np.float32), **params).shape == (N, H, W, 6)


def test_theoretical_work() -> None:
    env = {"N": 2, "H": 3, "W": 4, "h_mask": 5, "w_mask": 6}
    assert FORWARD.theory_ops(env, {}, {}) == 2 * 3 * 4 * 12  # elements of y
    assert BACKWARD.theory_ops(env, {}, {}) == 2 * 3 * 4 * 30  # elements of dx
    x, y = np.empty((2, 3, 4, 30), np.float32), np.empty((2, 3, 4, 12), np.float32)
    assert FORWARD.theory_io_bytes(env, {"x": x}, {"y": y}) == 4 * (720 + 288)
