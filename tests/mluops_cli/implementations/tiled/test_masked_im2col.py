"""masked_im2col_forward on the device against loops over every element."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mluops_cli.implementations.tiled import kernels
from mluops_cli.implementations.tiled.base import WorkspaceKernel
from mluops_cli.implementations.tiled.onchip import Machine, OnChipLimitError
from schemas.tensor_descriptor import Descriptor
from tests.mluops_cli.implementations.tiled.trial import MACHINES, Trial, unwritten

OP = "masked_im2col_forward"
Array = np.ndarray[Any, Any]


def trial(
    C: int,
    H: int,
    W: int,
    kernel: tuple[int, int],
    pad: tuple[int, int],
    rows: list[int],
    columns: list[int],
    dtype: Any = np.float32,
) -> Trial:
    """A call on a feature of distinct values."""
    feature = (np.arange(C * H * W) + 1).astype(dtype).reshape(1, C, H, W)
    inputs = {"feature": feature, "mask_h_idx": np.array(rows, np.int32), "mask_w_idx": np.array(columns, np.int32)}
    outputs = {"data_col": unwritten((C * kernel[0] * kernel[1], len(rows)), dtype)}
    params = {"kernel_h": kernel[0], "kernel_w": kernel[1], "pad_h": pad[0], "pad_w": pad[1]}
    return Trial(OP, inputs, outputs, params, {"feature": "NCHW"})


def right(case: Trial) -> Array:
    """The answer by the formula, element by element."""
    feature = case.inputs["feature"]
    _, C, H, W = feature.shape
    kh, kw, ph, pw = (case.params[name] for name in ("kernel_h", "kernel_w", "pad_h", "pad_w"))
    rows, columns = case.inputs["mask_h_idx"].tolist(), case.inputs["mask_w_idx"].tolist()
    answer = np.zeros((C * kh * kw, len(rows)), feature.dtype)
    for c in range(C):
        for i in range(kh):
            for j in range(kw):
                for m, (row, column) in enumerate(zip(rows, columns, strict=True)):
                    y, x = row - ph + i, column - pw + j
                    if 0 <= y < H and 0 <= x < W:
                        answer[(c * kh + i) * kw + j, m] = feature[0, c, y, x]
    return answer


def random_masks(count: int, size: int, reach: int, seed: int) -> list[int]:
    """Indices from well before the feature to well behind it, with repeats."""
    return [int(each) for each in np.random.default_rng(seed).integers(-reach, size + reach, count)]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(
    ("C", "H", "W", "kernel", "pad", "masks"),
    [
        (1, 1, 1, (1, 1), (0, 0), 1),
        (3, 5, 4, (3, 3), (1, 1), 23),
        (2, 4, 7, (1, 4), (0, 3), 17),
        (5, 7, 3, (4, 2), (-2, 1), 30),
        (2, 2, 2, (7, 5), (3, 2), 9),
        (33, 3, 3, (1, 1), (1, 1), 40),
    ],
)
def test_against_loops(
    C: int, H: int, W: int, kernel: tuple[int, int], pad: tuple[int, int], masks: int, dtype: Any, machine: Machine
) -> None:
    rows, columns = random_masks(masks, H, 4, seed=1), random_masks(masks, W, 4, seed=2)
    case = trial(C, H, W, kernel, pad, rows, columns, dtype)
    assert case.run(machine) == "SUCCESS"
    np.testing.assert_array_equal(case.outputs["data_col"], right(case))


def test_hand_checked() -> None:
    case = trial(1, 3, 3, (2, 2), (1, 1), [-1, 1], [-1, 1])
    assert case.run() == "SUCCESS"
    assert case.outputs["data_col"].tolist() == [[0, 1], [0, 2], [0, 4], [0, 5]]


def test_indices_at_the_ends_of_32_bits() -> None:
    least, most = -(2**31), 2**31 - 1
    for pad in (0, 5, -5, least, most):
        case = trial(1, 3, 3, (3, 3), (pad, pad), [least, most, 0, most], [most, least, most, 1])
        assert case.run() == "SUCCESS"
        np.testing.assert_array_equal(case.outputs["data_col"], right(case))
    assert right(trial(1, 3, 3, (3, 3), (most, 0), [most], [0])).any()


@pytest.mark.parametrize(("dtype", "as_int"), [(np.float32, np.uint32), (np.float16, np.uint16)])
def test_special_values_are_copied_bit_for_bit(dtype: Any, as_int: Any) -> None:
    bits = np.array([0xFFC01234, 0x7F800000, 0x80000000, 1], np.uint32)
    if dtype == np.float16:
        bits = np.array([0xFE12, 0x7C00, 0x8000, 1], np.uint16)
    case = trial(1, 1, 4, (1, 1), (0, 0), [0] * 4, [0, 1, 2, 3], dtype)
    case.inputs["feature"] = bits.view(dtype).reshape(1, 1, 1, 4)
    assert case.run() == "SUCCESS"
    assert case.outputs["data_col"].view(as_int).ravel().tolist() == bits.tolist()


def test_zero_elements() -> None:
    assert trial(2, 3, 4, (3, 3), (1, 1), [], []).run(workspace=None) == "SUCCESS"
    for C, H, W in ((0, 3, 4), (2, 0, 4), (2, 3, 0)):
        assert trial(C, H, W, (3, 3), (1, 1), [1], [1]).run() == "BAD_PARAM"
        assert trial(C, H, W, (3, 3), (1, 1), [], []).run() == "BAD_PARAM"


@pytest.mark.parametrize(
    ("name", "change", "status"),
    [
        ("feature", {"dtype": "double"}, "BAD_PARAM"),
        ("feature", {"dtype": "half"}, "BAD_PARAM"),  # data_col is float
        ("data_col", {"dtype": "half"}, "BAD_PARAM"),
        ("mask_h_idx", {"dtype": "int64"}, "BAD_PARAM"),
        ("mask_w_idx", {"dtype": "float"}, "BAD_PARAM"),
        ("feature", {"layout": "NHWC"}, "BAD_PARAM"),
        ("feature", {"dims": (2, 3, 4)}, "BAD_PARAM"),
        ("feature", {"dims": (2, 2, 3, 4)}, "BAD_PARAM"),
        ("feature", {"dims": (1, 3, 3, 4)}, "BAD_PARAM"),
        ("mask_h_idx", {"dims": (4,)}, "BAD_PARAM"),
        ("mask_w_idx", {"dims": (4,)}, "BAD_PARAM"),
        ("mask_w_idx", {"dims": (3, 1)}, "BAD_PARAM"),
        ("data_col", {"dims": (18, 4)}, "BAD_PARAM"),
        ("data_col", {"dims": (17, 3)}, "BAD_PARAM"),
        ("data_col", {"dims": (54,)}, "BAD_PARAM"),
        ("data_col", {"layout": "NCHW"}, "SUCCESS"),  # ARRAY carries no layout rule
        ("feature", {"strides": (24, 1, 8, 2)}, "NOT_SUPPORTED"),
        ("mask_h_idx", {"strides": (2,)}, "NOT_SUPPORTED"),
        ("data_col", {"strides": (1, 18)}, "NOT_SUPPORTED"),
        ("feature", None, "BAD_PARAM"),
        ("mask_h_idx", None, "BAD_PARAM"),
        ("mask_w_idx", None, "BAD_PARAM"),
        ("data_col", None, "BAD_PARAM"),
    ],
)
def test_descriptors(name: str, change: dict[str, Any] | None, status: str) -> None:
    case = trial(2, 3, 4, (3, 3), (1, 1), [0, 1, 2], [0, 1, 2])
    described = case.descriptors()[name]
    assert described is not None
    assert case.run(describe={name: None if change is None else replace(described, **change)}) == status


def test_parameters_handle_and_pointers() -> None:
    case = trial(2, 3, 4, (3, 3), (1, 1), [0, 1, 2], [0, 1, 2])
    for wrong in ({"kernel_h": 0}, {"kernel_w": 0}, {"kernel_h": -3, "kernel_w": -3}, {"kernel_h": 4}):
        assert case.run(params=wrong) == "BAD_PARAM"
    assert case.run(handle=None) == "BAD_PARAM"
    for name in (*case.inputs, *case.outputs):
        assert case.run(null=(name,)) == "BAD_PARAM"


def test_large_tensors() -> None:
    case = trial(2, 3, 4, (1, 1), (0, 0), [0], [0])
    large = Descriptor("NCHW", "float", (1, 2, 32768, 32768))
    assert case.run(describe={"feature": large}, null=("feature",)) == "NOT_SUPPORTED"


def test_workspace_protocol() -> None:
    case = trial(2, 3, 4, (3, 3), (1, 1), [0, 1, 2], [0, 1, 2])
    assert case.run(workspace=None) == "BAD_PARAM"
    assert case.run(workspace=-1) == "BAD_PARAM"
    assert case.run(workspace=0) == "SUCCESS"
    assert case.run(workspace=100) == "SUCCESS"
    kernel = kernels()[OP]()
    assert isinstance(kernel, WorkspaceKernel)
    size = np.zeros(1, np.uint64)
    assert kernel.workspace_size(OP, case.inputs, case.outputs, case.params, size) == "SUCCESS"
    assert size[0] == (2 * 3 * 4 + 18 * 3) * 4  # feature and data_col
    assert kernel.workspace_size(OP, case.inputs, case.outputs, case.params, None) == "BAD_PARAM"
    assert kernel.workspace_size(OP, {**case.inputs, "feature": None}, case.outputs, case.params, size) == "BAD_PARAM"


def test_a_memory_that_holds_no_element_is_an_error() -> None:
    case = trial(2, 3, 4, (3, 3), (1, 1), [0, 1, 2], [0, 1, 2])
    with pytest.raises(OnChipLimitError):
        case.run(Machine(nram=7))
    assert case.run(Machine(nram=8)) == "SUCCESS"
    np.testing.assert_array_equal(case.outputs["data_col"], right(case))
