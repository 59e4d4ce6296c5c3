"""Callables on torch tensors for psamask_forward: WAYS are faulty, each in its own way; h_mask chooses among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mluops_cli.implementations.loading import load_callable
from tests.conftest import PROJECT

FIRST = 3  # h_mask of the first way; larger ones follow
_right = load_callable("torch", f"{PROJECT}/examples/device_kernels/psamask_torch.py:psamask")


def right(inputs: Any, outputs: Any, params: Any) -> Any:
    return _right("psamask_forward", inputs, outputs, params)


def writes_nothing(inputs: Any, outputs: Any, params: Any) -> None:
    """Hands over a tensor of its own instead of writing the output."""
    y = outputs["y"].clone()
    right(inputs, {"y": y}, params)
    outputs["y"] = y


def adds(inputs: Any, outputs: Any, params: Any) -> None:
    """Adds to what the output holds."""
    y = outputs["y"].clone()
    right(inputs, {"y": y}, params)
    outputs["y"] += y


def shifts(inputs: Any, outputs: Any, params: Any) -> None:
    right(inputs, outputs, params)
    outputs["y"].copy_(outputs["y"].roll(1, -1))


def narrow(inputs: Any, outputs: Any, params: Any) -> None:
    """Computes in half."""
    right(inputs, outputs, params)
    outputs["y"].copy_(outputs["y"].half())


def raises(inputs: Any, outputs: Any, params: Any) -> None:
    outputs["y"].view(7, 7, 7)


def writes_the_input(inputs: Any, outputs: Any, params: Any) -> None:
    inputs["x"].zero_()
    right(inputs, outputs, params)


# name -> status, part of the reason
WAYS: dict[Callable[..., Any], tuple[str, str]] = {
    right: ("pass", ""),
    writes_nothing: ("fail", "never written"),
    adds: ("fail", "y"),
    shifts: ("fail", "y"),
    narrow: ("fail", "y"),
    raises: ("error", "RuntimeError"),
    writes_the_input: ("fail", "input 'x' was changed"),
}


def everything(op: str, inputs: Any, outputs: Any, params: Any) -> Any:
    return list(WAYS)[params["h_mask"] - FIRST](inputs, outputs, params)
