"""masked_col2im: hand-checked values, brute force, the way back of masked_im2col, positions that are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generators.operator_registry import operator_named
from schemas.errors import InputError

OPERATOR = operator_named("masked_col2im_forward")
IM2COL = operator_named("masked_im2col_forward")


def inputs_of(col: Any, rows: Any, columns: Any) -> dict[str, Any]:
    return {"col": col, "mask_h_idx": np.asarray(rows, np.int32), "mask_w_idx": np.asarray(columns, np.int32)}


def col2im(col: Any, rows: Any, columns: Any, H: int, W: int) -> Any:
    return OPERATOR.reference(inputs_of(col, rows, columns), {"H": H, "W": W})["im"]


def test_hand_checked_values() -> None:
    col = np.array([[5, 6], [7, 8]], np.float32)
    expected = [[[[0, 0, 6], [5, 0, 0]], [[0, 0, 8], [7, 0, 0]]]]
    np.testing.assert_array_equal(col2im(col, [1, 0], [0, 2], 2, 3), expected)


@st.composite
def calls(draw: Any) -> Any:
    H, W, C = (draw(st.integers(1, 5)) for _ in range(3))
    places = draw(st.permutations(range(H * W)))[: draw(st.integers(0, H * W))]
    return H, W, C, [place // W for place in places], [place % W for place in places]


@settings(max_examples=80, deadline=None)
@given(calls(), st.sampled_from([np.float16, np.float32]))
def test_reference_equals_the_loops(call: Any, dtype: Any) -> None:
    """mmcv's kernel, a write per channel and mask."""
    H, W, C, rows, columns = call
    col = np.arange(1, 1 + C * len(rows)).astype(dtype).reshape(C, len(rows))
    data_im = np.zeros(C * H * W, dtype)
    for index in range(C * len(rows)):
        m, c = index % len(rows), index // len(rows)
        data_im[(c * H + rows[m]) * W + columns[m]] = col.reshape(-1)[index]
    im = col2im(col, rows, columns, H, W)
    assert im.dtype == dtype
    np.testing.assert_array_equal(im, data_im.reshape(1, C, H, W))


def test_it_takes_back_what_im2col_with_one_tap_took() -> None:
    feature = np.random.default_rng(1).random((1, 3, 4, 5), np.float32)
    rows, columns = np.divmod(np.random.default_rng(2).permutation(20), 5)
    given = {"feature": feature, "mask_h_idx": rows.astype(np.int32), "mask_w_idx": columns.astype(np.int32)}
    params = {"kernel_h": 1, "kernel_w": 1, "pad_h": 0, "pad_w": 0}
    col = IM2COL.reference(given, params)["data_col"]
    np.testing.assert_array_equal(col2im(col, rows, columns, 4, 5), feature)


def test_bits_are_copied() -> None:
    bits = np.array([[0x7FC00001, 0x80000000, 0x00000001]], np.uint32)
    im = col2im(bits.view(np.float32), [0, 0, 0], [2, 0, 1], 1, 3)
    assert im.view(np.uint32).reshape(-1).tolist() == [0x80000000, 0x00000001, 0x7FC00001]


@pytest.mark.parametrize(
    ("rows", "columns", "told"),
    [
        ([0, 2], [0, 0], "mask_h_idx[1] is 2, expected 0 to 1"),
        ([0, -1], [0, 0], "mask_h_idx[1] is -1, expected 0 to 1"),
        ([0, 1], [3, 0], "mask_w_idx[0] is 3, expected 0 to 2"),
        ([1, 1], [2, 2], "masks hold the position (1, 2) 2 times, expected each once at most"),
    ],
)
def test_positions_that_mean_nothing_are_refused(rows: Any, columns: Any, told: str) -> None:
    inputs = inputs_of(np.ones((1, 2), np.float32), rows, columns)
    shapes = {name: array.shape for name, array in inputs.items()} | {"im": (1, 1, 2, 3)}
    with pytest.raises(InputError) as raised:
        OPERATOR.check_inputs(inputs, shapes, {})
    assert told in str(raised.value)


@pytest.mark.parametrize(("M", "H", "W"), [(0, 0, 0), (1, 1, 1), (35, 5, 7), (20, 7, 5), (3, 1, 9), (3, 9, 1)])
def test_drawn_positions_are_legal(M: int, H: int, W: int) -> None:
    env = {"C": 1, "M": M, "H": H, "W": W}
    inputs: dict[str, Any] = {"col": np.ones((1, M), np.float32)}
    for number, name in enumerate(("mask_h_idx", "mask_w_idx")):
        inputs[name] = OPERATOR.draw(name, "positions", env, np.random.default_rng(number), inputs)
    OPERATOR.check_values(inputs, env)
    assert OPERATOR.reference(inputs, env)["im"].sum() == M


def test_more_positions_than_there_are_cannot_be_drawn() -> None:
    with pytest.raises(InputError, match="7 different positions can't be drawn, the image has 6"):
        OPERATOR.draw("mask_h_idx", "positions", {"M": 7, "H": 2, "W": 3}, np.random.default_rng(1), {})
    rows = {"mask_h_idx": np.array([1, 1, 0, 1, 1], np.int32)}
    with pytest.raises(InputError, match="4 masks lie in row 1, which has 3 positions"):
        OPERATOR.draw("mask_w_idx", "positions", {"M": 5, "H": 2, "W": 3}, np.random.default_rng(1), rows)
