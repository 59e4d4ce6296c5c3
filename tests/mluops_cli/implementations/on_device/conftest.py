"""A device without hardware: memory of its own, with the clock and the errors that a test wants."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from mluops_cli.implementations.on_device.device_options import import_problem
from tests.mluops_cli.execution.conftest import run

__all__ = ["run"]


@pytest.fixture
def apart() -> Callable[..., Any]:
    """Make a Device whose tensors are copies on the host; synchronize is what its module's does."""
    if import_problem("torch", "torch"):
        pytest.skip("needs PyTorch: make test-torch")
    from mluops_cli.implementations.on_device.device import Device

    def make(synchronize: Callable[[], None] = lambda: None, device_us: float = 7.0) -> Any:
        def event(**_: Any) -> Any:
            return SimpleNamespace(
                record=lambda: None, synchronize=lambda: None, elapsed_time=lambda end: device_us / 1000
            )

        device = Device("cpu")
        device.on_host = False
        device._module = SimpleNamespace(Event=event, synchronize=synchronize, get_device_name=lambda: "none")
        return device

    return make
