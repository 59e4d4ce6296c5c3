"""Callables that launch kernels of Triton, each with a pointer out of range; `right` has none.

A comment tells the tests where to find a line.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl


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
    store[1,](outputs["y"], 6, 3, 8)


def adds_beyond(op: str, inputs: Any, outputs: Any, params: Any) -> None:
    add[1,](outputs["y"], 8, 0, 8)
