"""masked_im2col: hand-checked values, brute force, indices at the ends of int32, bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generators.operator_registry import operator_named

OPERATOR = operator_named("masked_im2col_forward")


def im2col(feature: Any, rows: Any, columns: Any, kernel: Any, pad: Any) -> Any:
    inputs = {
        "feature": feature,
        "mask_h_idx": np.asarray(rows, np.int32),
        "mask_w_idx": np.asarray(columns, np.int32),
    }
    params = {"kernel_h": kernel[0], "kernel_w": kernel[1], "pad_h": pad[0], "pad_w": pad[1]}
    return OPERATOR.reference(inputs, params)["data_col"]


def loops(feature: Any, rows: Any, columns: Any, kernel: Any, pad: Any) -> Any:
    """The formula of the design, one element at a time, in Python's unbounded integers."""
    _, C, H, W = feature.shape
    data_col = np.zeros((C * kernel[0] * kernel[1], len(rows)), feature.dtype)
    for c, i, j, m in np.ndindex(C, *kernel, len(rows)):
        y, x = int(rows[m]) - pad[0] + i, int(columns[m]) - pad[1] + j
        if 0 <= y < H and 0 <= x < W:
            data_col[(c * kernel[0] + i) * kernel[1] + j, m] = feature[0, c, y, x]
    return data_col


def numbered(C: Any, H: Any, W: Any, dtype: Any = np.float32) -> Any:
    return np.arange(1, 1 + C * H * W).astype(dtype).reshape(1, C, H, W)


def test_hand_checked_values() -> None:
    data_col = im2col(numbered(1, 3, 3), [-1, 1], [-1, 1], (2, 2), (1, 1))
    np.testing.assert_array_equal(data_col, [[0, 1], [0, 2], [0, 4], [0, 5]])


def test_a_mask_at_the_far_corner_without_pad_has_one_tap_inside() -> None:
    data_col = im2col(np.ones((1, 1, 5, 5), np.float32), [4], [4], (3, 3), (0, 0))
    np.testing.assert_array_equal(data_col[:, 0], [1, 0, 0, 0, 0, 0, 0, 0, 0])


@settings(max_examples=80, deadline=None)
@given(
    st.tuples(st.integers(1, 4), st.integers(1, 6), st.integers(1, 6)),
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.tuples(st.integers(-3, 5), st.integers(-3, 5)),
    st.lists(st.tuples(st.integers(-9, 12), st.integers(-9, 12)), max_size=12),
    st.sampled_from([np.float16, np.float32]),
)
def test_reference_equals_the_loops(size: Any, kernel: Any, pad: Any, masks: Any, dtype: str) -> None:
    feature = numbered(size[0], size[1], size[2], dtype)
    rows, columns = [mask[0] for mask in masks], [mask[1] for mask in masks]
    data_col = im2col(feature, rows, columns, kernel, pad)
    assert data_col.dtype == dtype
    np.testing.assert_array_equal(data_col, loops(feature, rows, columns, kernel, pad))


@pytest.mark.parametrize("pad", [-3, 0, 2**31 - 1, -(2**31)])
def test_indices_at_the_ends_of_int32(pad: Any) -> None:
    """Every difference is computed beyond 32 bits: no wrapped coordinate falls back into the feature."""
    rows = [2**31 - 1, 2**31 - 2, -(2**31), -(2**31) + 1, 0, pad] if pad != 2**31 - 1 else [2**31 - 1, -(2**31), 0]
    feature = numbered(2, 3, 4)
    columns = [1] * len(rows)
    np.testing.assert_array_equal(
        im2col(feature, rows, columns, (4, 3), (pad, 1)), loops(feature, rows, columns, (4, 3), (pad, 1))
    )


@pytest.mark.parametrize(("floats", "integers"), [(np.float16, np.uint16), (np.float32, np.uint32)])
def test_copies_keep_every_bit(floats: Any, integers: Any) -> None:
    """Quiet and signalling NaN payloads, infinities, subnormals and -0: the loops copy integers of the same bits."""
    rng = np.random.default_rng(6)
    bits = rng.integers(0, np.iinfo(integers).max, (1, 3, 5, 6), dtype=integers)
    bits[0, 0, 0] = [0x7E01, 0xFD23, 0x7C00, 0x8000, 0x0001, 0x7BFF] if floats is np.float16 else [
        0x7FC00001, 0xFF800123, 0x7F800000, 0x80000000, 0x00000001, 0x7F7FFFFF,
    ]  # fmt: skip
    rows, columns = rng.integers(-2, 8, (2, 40))
    computed = im2col(bits.view(floats), rows, columns, (3, 2), (1, 1))
    np.testing.assert_array_equal(computed.view(integers), loops(bits, rows, columns, (3, 2), (1, 1)))


def test_no_masks_give_an_empty_output() -> None:
    assert im2col(numbered(2, 3, 4), [], [], (3, 3), (1, 1)).shape == (18, 0)


def test_theoretical_work() -> None:
    env = {"C": 2, "kernel_h": 3, "kernel_w": 4, "M": 5}
    assert OPERATOR.theory_ops(env, {}, {}) == 2 * 3 * 4 * 5  # elements of data_col
