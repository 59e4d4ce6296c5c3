"""Dynamic thresholds: ten times the error of the reference at the outputs' precision, with a least value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from generators.casegen.thresholds import dynamic_criteria
from generators.operator_registry import operator_named
from schemas.criteria import Criterion


class Fake:
    """An operator whose computation at lower precision is what the test says."""

    def __init__(self, low_precision: dict[type, Any]) -> None:
        self.low_precision = low_precision
        self.asked: list[type] = []

    def reference_in(self, dtype: type, inputs: Any, env: Any) -> Any:
        self.asked.append(dtype)
        return self.low_precision.get(dtype)


def measured(baseline: Any, low_precision: Any, names: Any, dtype: str) -> dict[str, float | None]:
    return {name: float(np.abs(baseline - low_precision).max()) if name != "diff2" else None for name in names}


def criteria(*pairs: tuple[str, float]) -> tuple[Criterion, ...]:
    return tuple(Criterion(name, threshold, "contract") for name, threshold in pairs)


def test_rate_and_floors_by_hand() -> None:
    one = np.ones(3)
    operator: Any = Fake(
        {np.float32: {"a": one + 0.5, "b": one + 1e-9}, np.float16: {"c": one + 1e-5, "d": one + 0.01}}
    )
    given = {name: criteria(("diff1", 3e-3)) for name in "abcd"}
    dtypes = {"a": "float", "b": "float", "c": "half", "d": "half"}
    found = dynamic_criteria(given, dtypes, operator, {}, {}, dict.fromkeys("abcd", one), measured)
    thresholds = {name: own[0].threshold for name, own in found.items()}
    assert thresholds == {"a": 5.0, "b": 1.2e-7, "c": 9.8e-4, "d": pytest.approx(0.1)}
    assert {own[0].source for own in found.values()} == {"dynamic"}
    assert operator.asked == [np.float32, np.float16]


def test_what_is_kept() -> None:
    one = np.ones(3)
    operator: Any = Fake({np.float32: {"mixed": one + 0.5}})
    given = {
        "exact": criteria(("diff3", 0.0)),
        "integer": criteria(("diff1", 3e-3)),
        "mixed": criteria(("diff1", 3e-3), ("diff2", 3e-3), ("diff3_2", 0.0)),
    }
    dtypes = {"exact": "float", "integer": "int32", "mixed": "float"}
    found = dynamic_criteria(given, dtypes, operator, {}, {}, dict.fromkeys(given, one), measured)
    assert found["exact"] == given["exact"]
    assert found["integer"] == given["integer"]
    assert [each.threshold for each in found["mixed"]] == [5.0, 3e-3, 0.0]  # diff2 can't be computed here
    nothing: Any = Fake({})
    assert dynamic_criteria(given, dtypes, nothing, {}, {}, dict.fromkeys(given, one), measured) == given


@pytest.mark.parametrize("op", ["voxel_pooling_forward", "roi_crop_forward", "roi_crop_backward"])
def test_the_reference_computes_in_float32_too(op: str) -> None:
    """Near its float64 self, but not the same: the intermediate values are really rounded."""
    operator = operator_named(op)
    rng = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]]
    if op == "voxel_pooling_forward":
        shapes = {"geom_xyz": (1, 3000, 3), "input_features": (1, 3000, 4)}
        inputs = {
            "geom_xyz": rng.integers(0, 2, shapes["geom_xyz"]).astype(np.int32),
            "input_features": rng.uniform(-1, 1, shapes["input_features"]).astype(np.float32),
        }
        sizes = {"batch_size": 1, "num_points": 3000, "num_channels": 4}
        params: dict[str, Any] = {**sizes, "num_voxel_x": 2, "num_voxel_y": 2, "num_voxel_z": 2}
    else:
        first = "input" if op == "roi_crop_forward" else "grad_output"
        inputs = {
            first: rng.uniform(-1, 1, (2, 7, 9, 3) if first == "input" else (4, 5, 5, 3)).astype(np.float32),
            "grid": rng.uniform(-1, 1, (4, 5, 5, 2)).astype(np.float32),
        }
        params = {}
        shapes = {name: array.shape for name, array in inputs.items()}
        shapes |= {} if first == "input" else {"grad_input": (2, 7, 9, 3)}
    env = operator.contract.bind(shapes, params)
    exact = operator.reference(inputs, env)
    low_precision = operator.reference_in(np.float32, inputs, env)
    assert low_precision is not None
    for name, array in exact.items():
        if array.dtype == np.float32:
            assert not np.array_equal(array, low_precision[name])
            assert np.allclose(array, low_precision[name], rtol=0, atol=2e-4)
        else:
            assert np.array_equal(array, low_precision[name])
