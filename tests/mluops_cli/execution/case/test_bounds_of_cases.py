"""What the error bound of a case surrounds, and that nothing is said where no element has a bound."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from generators.casegen.node import set_baseline_device
from mluops_cli import Call, Implementation, Outcome
from mluops_cli.core.case_options import CaseOptions, WorkerSettings
from mluops_cli.execution.case.case_run import run_case
from schemas.casefiles.reading import write_case
from tests.mluops_cli.execution.conftest import add_tensor, case_node

F = np.float32
# The three addends of each of two voxels. In this order and backwards their float sums differ by more than the bound.
FEATURES = np.array([[0.37499988, 1.6250002, 0.37500012], [0.5, 0.25, 0.125]], F)


class Given(Implementation):
    """Writes the given outputs."""

    name = "given"

    def __init__(self, outputs: Mapping[str, np.ndarray[Any, Any]]) -> None:
        super().__init__()
        self.given = outputs

    def call(self, call: Call) -> Outcome:
        """Copy them."""
        for name, array in self.given.items():
            output = call.outputs[name]
            assert output is not None
            output[...] = array
        return Outcome("SUCCESS")


def ran(folder: Path, features: Any, stored: Any, written: Any, *, memo_judged: bool = True) -> tuple[bool | None, Any]:
    """beyond_bound and bound_ratio of a case by others: two voxels of as many points as features has columns."""
    points = features.shape[1]
    node = case_node("voxel_pooling_forward", suite="")
    set_baseline_device(node)
    sizes = {"batch_size": 1, "num_points": 2 * points, "num_channels": 1, "num_voxel_x": 2}
    for name, value in {**sizes, "num_voxel_y": 1, "num_voxel_z": 1}.items():
        setattr(node.voxel_pooling_forward_param, name, value)
    add_tensor(node.input, "geom_xyz", (1, 2 * points, 3), "INT32", "ARRAY")
    add_tensor(node.input, "input_features", (1, 2 * points, 1), layout="ARRAY")
    add_tensor(node.output, "output_features", (1, 1, 2, 1), layout="ARRAY")
    add_tensor(node.output, "pos_memo", (1, 2 * points, 3), "INT32", "ARRAY").threshold_use = int(memo_judged)
    geom = np.zeros((1, 2 * points, 3), np.int32)
    geom[0, points:, 0] = 1
    inputs = [geom, features.reshape(1, 2 * points, 1)]
    memo = geom[..., [2, 1, 0]]
    write_case(folder / "theirs.pb", node, inputs, [np.asarray(stored, F).reshape(1, 1, 2, 1), memo])
    kernel = Given({"output_features": np.asarray(written, F).reshape(1, 1, 2, 1), "pos_memo": memo})
    result = run_case({"file": str(folder / "theirs.pb"), "manifest_meta": None}, kernel, WorkerSettings(CaseOptions()))
    assert result["status"] == "pass", result["reason"]
    return result["beyond_bound"], result["outputs"]["output_features"]["bound_ratio"]


def in_order(features: Any) -> Any:
    return np.add.accumulate(features, axis=1, dtype=F)[:, -1]


def test_a_baseline_by_others_has_rounding_errors_of_its_own(tmp_path: Path) -> None:
    theirs, mine = in_order(FEATURES), in_order(FEATURES[:, ::-1])
    apart = abs(float(theirs[0]) - float(mine[0]))
    assert apart > (2 * 2.0**-24 / (1 - 2 * 2.0**-24) + 2.0**-24) * FEATURES[0].sum()  # the bound of three addends
    beyond, ratio = ran(tmp_path, FEATURES, theirs, mine)
    assert (beyond, 0 < ratio < 1) == (False, True)


@pytest.mark.parametrize(("stored", "written", "beyond"), [(1.001, 1, False), (1.001, 1.001, True), (1, 1.001, True)])
def test_a_wrong_baseline_by_others_is_not_held_against_a_right_kernel(
    tmp_path: Path, stored: float, written: float, beyond: bool
) -> None:
    sums = in_order(FEATURES)
    assert ran(tmp_path, FEATURES, sums * F(stored), sums * F(written))[0] is beyond


def test_an_output_has_its_bound_where_another_one_is_not_judged(tmp_path: Path) -> None:
    sums = in_order(FEATURES)
    assert ran(tmp_path, FEATURES, sums, sums * F(1.001), memo_judged=False)[0] is True


def test_nothing_is_said_where_no_element_has_a_bound(tmp_path: Path) -> None:
    """A partial sum may overflow in some order: no bound."""
    features = np.full((2, 3), 3e38, F) * np.array([1, -1, 1], F)
    assert ran(tmp_path, features, in_order(features), in_order(features)) == (None, None)
