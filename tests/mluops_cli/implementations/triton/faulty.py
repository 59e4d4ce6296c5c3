"""Callables that launch kernels of Triton, each with a pointer out of range; `right` has none.

A comment tells the tests where to find a line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

from mluops_cli.implementations.loading import load_callable
from tests.conftest import PROJECT

FIRST = 3  # h_mask of the first way; larger ones follow
EXAMPLE = load_callable("triton", f"{PROJECT}/examples/device_kernels/psamask_triton.py:psamask")


@triton.jit
def copy(source, target, count, by, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(source + at + by, mask=at < count, other=0)  # copies
    tl.store(target + at, value, mask=at < count)


@triton.jit
def store(target, count, by, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(target + at + by, at.to(tl.float32), mask=at < count)  # stores


@triton.jit
def add(target, count, by, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.atomic_add(target + at + by, at.to(tl.float32), mask=at < count)  # adds


def right(op: str, inputs: Any, outputs: Any, params: Any) -> None:
    """Goes through scratch memory of its own."""
    scratch = torch.empty_like(inputs["x"])
    copy[1,](inputs["x"], scratch, scratch.numel(), 0, 8)
    copy[1,](scratch, outputs["y"], scratch.numel(), 0, 8)


def reads_beyond(op: str, inputs: Any, outputs: Any, params: Any) -> None:
    copy[1,](inputs["x"], outputs["y"], 6, 1, 8)


def reads_before(op: str, inputs: Any, outputs: Any, params: Any) -> None:
    copy[1,](inputs["x"], outputs["y"], 6, -2, 8)


def writes_beyond(op: str, inputs: Any, outputs: Any, params: Any) -> None:
    store[1,](outputs["y"], 6, outputs["y"].numel() - 3, 8)


def adds_beyond(op: str, inputs: Any, outputs: Any, params: Any) -> None:
    add[1,](outputs["y"], 8, 0, 8)


def shifts(op: str, inputs: Any, outputs: Any, params: Any) -> None:
    """A right kernel, but for the place of its results."""
    EXAMPLE(op, inputs, outputs, params)
    outputs["y"].copy_(outputs["y"].roll(1, -1))


def leaves_zeros_out(op: str, inputs: Any, outputs: Any, params: Any) -> None:
    """Writes only what is not 0."""
    y = torch.empty_like(outputs["y"])
    EXAMPLE(op, inputs, {"y": y}, params)
    outputs["y"][y != 0] = y[y != 0]


# callable -> status, part of the reason
WAYS: dict[Callable[..., Any], tuple[str, str]] = {
    EXAMPLE: ("pass", ""),
    shifts: ("fail", "y"),
    leaves_zeros_out: ("fail", "y"),
    writes_beyond: ("fail", "writes directly behind the end of y"),
}


def everything(op: str, inputs: Any, outputs: Any, params: Any) -> Any:
    """The way that h_mask chooses, from FIRST on."""
    return list(WAYS)[params["h_mask"] - FIRST](op, inputs, outputs, params)
