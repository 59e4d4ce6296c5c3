"""`torch` where PyTorch is missing: one line, exit code 3, and the list says so."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from mluops_cli.implementations.registry import known
from mluops_cli.implementations.torch import Torch
from schemas.errors import UnavailableError


@pytest.fixture(autouse=True)
def _no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)


def test_one_line_tells_how_to_get_it() -> None:
    with pytest.raises(UnavailableError) as raised:
        Torch()
    assert "can't import torch" in str(raised.value)
    assert "mluops[torch]" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_the_list_says_why_not(cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    (torch,) = (each for each in known() if each.name == "torch")
    assert torch.problem is not None
    assert torch.operators == ()
    shown = cli("implementations")
    assert shown.code == 0
    assert "can't import torch" in " ".join(shown.out.split())
