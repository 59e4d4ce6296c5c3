"""The tutorial for PyTorch, followed, and its kernel called by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.mluops_cli.conftest import Cli
from tests.mluops_cli.tutorials.page import Block, follow, steps, write

torch = pytest.importorskip("torch", reason="needs PyTorch: make test-torch")
pytestmark = pytest.mark.torch


def test_its_kernel(tmp_path: Path) -> None:
    for step in steps("first-kernel-pytorch.md"):
        if isinstance(step, Block):
            write(step, tmp_path)
    named: dict[str, Any] = {}
    exec((tmp_path / "kernel.py").read_text(encoding="utf-8"), named)
    geom = torch.tensor([[[1, 0, 0], [1, 0, 0], [2, 0, 0]]], dtype=torch.int32)  # the last one is outside
    inputs = {"geom_xyz": geom, "input_features": torch.tensor([[[1.0], [2.0], [4.0]]])}
    outputs = {
        "output_features": torch.full((1, 1, 2, 1), torch.nan),
        "pos_memo": torch.full((1, 3, 3), -1, dtype=torch.int32),
    }
    params = {"num_channels": 1, "num_voxel_x": 2, "num_voxel_y": 1, "num_voxel_z": 1}
    assert named["pool"]("voxel_pooling_forward", inputs, outputs, params) is None
    assert outputs["output_features"].flatten().tolist() == [0, 3]
    assert outputs["pos_memo"].tolist() == [[[0, 0, 1], [0, 0, 1], [-1, -1, -1]]]
    params["num_voxel_z"] = 0
    assert named["pool"]("voxel_pooling_forward", inputs, outputs, params) == "BAD_PARAM"


@pytest.mark.slow
def test_following_it(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _, first, _ = follow("first-kernel-pytorch.md", tmp_path, cli)
    assert "self (Float) and source (Half) must have the same scalar type" in first
    assert "no_points: expected BAD_PARAM, got SUCCESS" in first
    assert "3 pass" in first
