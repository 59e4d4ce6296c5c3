"""masked_col2im_forward on the device: machines of any memory, and a workspace whose old content doesn't show."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.mluops_cli.implementations.tiled.trial import MACHINES, Trial, unwritten


def trial(C: int, H: int, W: int, M: int, dtype: Any) -> tuple[Trial, Any]:
    """A call, and the image that a loop over masks makes."""
    rng = np.random.default_rng(C)
    rows, columns = np.divmod(rng.permutation(H * W)[:M], W)
    col = rng.normal(size=(C, M)).astype(dtype)
    expected = np.zeros((1, C, H, W), dtype)
    for m in range(M):
        expected[0, :, rows[m], columns[m]] = col[:, m]
    inputs = {"col": col, "mask_h_idx": rows.astype(np.int32), "mask_w_idx": columns.astype(np.int32)}
    outputs = {"im": unwritten((1, C, H, W), dtype)}
    return Trial("masked_col2im_forward", inputs, outputs, {}, {"im": "NCHW"}), expected


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("size", [(1, 1, 1, 1), (3, 7, 5, 20), (130, 9, 11, 99), (5, 3, 4, 0), (2, 150, 130, 17)])
def test_any_machine_gives_the_image(machine: Any, size: tuple[int, int, int, int], dtype: Any) -> None:
    """The larger ones are transposed in several parts."""
    case, expected = trial(*size, dtype)
    assert case.run(machine) == "SUCCESS"
    np.testing.assert_array_equal(case.outputs["im"], expected)


def test_a_wrong_call_is_refused() -> None:
    case, _ = trial(3, 4, 5, 6, np.float32)
    assert case.run(workspace=None) == "BAD_PARAM"
    assert case.run(workspace=-1) == "BAD_PARAM"
    assert case.run(null=("im",)) == "BAD_PARAM"
    assert case.run(describe={"col": None}) == "BAD_PARAM"
