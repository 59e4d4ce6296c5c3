"""roialign_forward on the device: machines of any memory give the same means, up to rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from generators.operator_registry import operator_named
from tests.mluops_cli.implementations.tiled.trial import MACHINES, Trial, unwritten


def trial(channels: int, *, ratio: int, aligned: bool) -> Trial:
    """A call with boxes in the image, beyond its borders, empty ones and ones outside."""
    rng = np.random.default_rng(channels)
    image = rng.normal(size=(2, 5, 6, channels)).astype(np.float32)
    boxes = np.array(
        [(0, 0, 0, 5, 4), (1, -1.5, -1, 7, 6), (1, 2, 3, 2, 3), (0, 20, 20, 30, 30), (0, 1.3, 0.7, 4.9, 2.1)],
        np.float32,
    )
    params = {
        "pooled_height": 2, "pooled_width": 3, "sampling_ratio": ratio, "spatial_scale": 1.0, "aligned": aligned,
        "pool_mode": 1, "version": 0,
    }  # fmt: skip
    inputs, outputs = {"input": image, "boxes": boxes}, {"output": unwritten((5, 2, 3, channels))}
    return Trial("roialign_forward", inputs, outputs, params, {"input": "NHWC", "output": "NHWC"})


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("channels", "ratio", "aligned"), [(1, 2, False), (65, 0, True), (301, 1, False)])
def test_any_machine_gives_the_means(machine: Any, channels: int, ratio: int, aligned: bool) -> None:
    """301 channels are more than a core of 2048 bytes holds of one box at a time."""
    case = trial(channels, ratio=ratio, aligned=aligned)
    assert case.run(machine) == "SUCCESS"
    operator = operator_named(case.op)
    shapes = {name: array.shape for name, array in {**case.inputs, **case.outputs}.items()}
    expected = operator.reference(case.inputs, operator.contract.bind(shapes, case.params))["output"]
    np.testing.assert_allclose(case.outputs["output"], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("machine", MACHINES)
def test_more_bins_and_rows_than_memory_are_looped_over(machine: Any) -> None:
    image = np.arange(2 * 90 * 3, dtype=np.float32).reshape(1, 90, 3, 2)
    params = {**trial(1, ratio=1, aligned=True).params, "pooled_height": 90, "pooled_width": 60}
    inputs = {"input": image, "boxes": np.array([(0, 0, 0, 3, 90)], np.float32)}
    case = Trial("roialign_forward", inputs, {"output": unwritten((1, 90, 60, 2))}, params,
                 {"input": "NHWC", "output": "NHWC"})  # fmt: skip
    assert case.run(machine) == "SUCCESS"
    got = case.outputs["output"][0]
    expected = image[0, :, 1] * 0.975 + image[0, :, 2] * 0.025  # x = 1.025
    np.testing.assert_allclose(got[:, 30], expected, rtol=1e-6)


def test_a_wrong_call_is_refused() -> None:
    case = trial(3, ratio=2, aligned=False)
    for params in ({"pooled_height": 0}, {"pooled_width": 4}, {"spatial_scale": 0.0}):
        assert case.run(params=params) == "BAD_PARAM"
    assert case.run(null=("boxes",)) == "BAD_PARAM"
    assert case.run(handle=None) == "BAD_PARAM"
