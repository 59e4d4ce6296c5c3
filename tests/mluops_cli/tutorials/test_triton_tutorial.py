"""The tutorial for Triton, followed in its interpreter."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mluops_cli.conftest import Cli
from tests.mluops_cli.tutorials.page import follow

pytest.importorskip("torch", reason="needs PyTorch and Triton: make test-triton")
pytest.importorskip("triton", reason="needs PyTorch and Triton: make test-triton")
pytestmark = [pytest.mark.triton, pytest.mark.slow]  # test_tutorials.py has the quick part


def test_following_it(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _, first, _ = follow("first-kernel-triton.md", tmp_path, cli)
    assert "kernel.py:11: reads directly behind the end of geom_xyz" in first
