"""indice_convolution_forward on the device: machines of any memory, and a workspace whose old content doesn't show."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.mluops_cli.implementations.tiled.trial import MACHINES, Trial, unwritten


def trial(size: tuple[int, int, int, int, int], dtype: Any) -> tuple[Trial, Any]:
    """A call with integers, whose sums no order rounds, and what a loop over pairs makes of it.

    size: sites, outputs, offsets, channels of both.
    """
    N, A, K, CI, CO = size
    rng = np.random.default_rng(N)
    counts = [int(rng.integers(0, min(N, A) + 1)) for _ in range(K)]
    pairs = np.zeros((K, 2, N), np.int32)
    features, filters = rng.integers(-3, 4, (N, CI)), rng.integers(-3, 4, (K, CI, CO))
    expected = np.zeros((A, CO))
    for k, count in enumerate(counts):
        pairs[k, 0, :count], pairs[k, 1, :count] = rng.permutation(N)[:count], rng.permutation(A)[:count]
        for site, row in pairs[k, :, :count].T:
            expected[row] += features[site] @ filters[k]
    inputs = {
        "features": features.astype(dtype),
        "filters": filters.reshape(1, K, 1, CI, CO).astype(dtype),
        "indice_pairs": pairs,
    }
    params = {"indice_num": counts, "num_active_out": A, "inverse": 0, "sub_m": 0}
    return Trial("indice_convolution_forward", inputs, {"features_out": unwritten((A, CO), dtype)}, params), expected


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(
    "size", [(1, 1, 1, 1, 1), (9, 12, 3, 5, 4), (40, 30, 4, 70, 90), (0, 5, 2, 3, 4), (300, 200, 2, 3, 2)]
)
def test_any_machine_gives_the_sums(machine: Any, size: Any, dtype: Any) -> None:
    """The larger ones have several tiles of outputs, and of both kinds of channels."""
    case, expected = trial(size, dtype)
    assert case.run(machine) == "SUCCESS"
    np.testing.assert_array_equal(case.outputs["features_out"], expected)


def test_a_wrong_call_is_refused() -> None:
    case, _ = trial((9, 7, 3, 5, 4), np.float32)
    assert case.run(workspace=None) == "BAD_PARAM"
    assert case.run(workspace=-1) == "BAD_PARAM"
    assert case.run(null=("features_out",)) == "BAD_PARAM"
    assert case.run(describe={"filters": None}) == "BAD_PARAM"
