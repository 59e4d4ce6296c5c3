"""A callable on torch tensors as one on the runner's arrays: tensors to the device, the call, its time, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import Any

import torch

from mluops_cli.core.exceptions import describe
from mluops_cli.implementations.base import Array, OutOfBounds
from mluops_cli.implementations.on_device.device import Device
from mluops_cli.implementations.on_device.device_memory import DeviceMemory

_Arrays = Mapping[str, Array | None]
Around = Callable[[Mapping[str, torch.Tensor]], AbstractContextManager[None]]


class DeviceCallable:
    """f(op, inputs, outputs, params[, descriptors][, handle]) of tensors, called as a `python:` callable is.

    latency_us is the device's time of the last call, without copies. f.workspace_size gets tensors of the device
    "meta", which have shapes, dtypes and strides but no memory. around: a context for each call, given all tensors.
    """

    def __init__(self, target: Callable[..., Any], device: Device, around: Around | None = None) -> None:
        self.device = device
        self._around = around or (lambda _: nullcontext())
        self.target = target
        self.__wrapped__ = target  # whose signature tells which keywords it takes
        self.latency_us: float | None = None
        self._finish: Callable[[], Any] | None = getattr(target, "synchronize", None)
        if (size := getattr(target, "workspace_size", None)) is not None:
            self.workspace_size = _on_meta(size)

    def __call__(self, op: str, inputs: _Arrays, outputs: _Arrays, params: dict[str, Any], **keywords: Any) -> Any:
        """Call it once; OutOfBounds for writes beside or to what is no output, and where the device is lost."""
        try:
            return self._call(op, inputs, outputs, params, keywords)
        except OutOfBounds:
            raise
        except Exception as error:
            if self.device.lost():
                raise OutOfBounds(f"the device can't be used any more: {describe(error)}") from error
            raise

    def _call(
        self, op: str, inputs: _Arrays, outputs: _Arrays, params: dict[str, Any], keywords: dict[str, Any]
    ) -> Any:
        given, wanted = self._placed(inputs), self._placed(outputs)
        workspace = self._placed({"workspace": params.get("workspace")})
        if (held := workspace["workspace"]) is not None:
            params = {**params, "workspace": held.tensor}
        placed = [*given.items(), *wanted.items(), *workspace.items()]
        tensors = {name: memory.tensor for name, memory in placed if memory is not None}
        with self._around(tensors), self.device.timed() as taken:
            answer = self.target(op, _tensors(given), _tensors(wanted), params, **keywords)
            if self._finish is not None:
                self._finish()
        self.latency_us = taken[0]
        for name, memory in placed:
            if memory is not None and (damage := memory.damage()):
                raise OutOfBounds(f"{name}: {damage}")
        for name, memory in given.items():
            if memory is not None and memory.changed:
                raise OutOfBounds(f"input {name!r} was changed")
        for memory in wanted.values():
            if memory is not None:
                memory.store()
        return answer

    def _placed(self, arrays: _Arrays) -> dict[str, DeviceMemory | None]:
        return {name: None if array is None else DeviceMemory(array, self.device) for name, array in arrays.items()}


def _tensors(placed: Mapping[str, DeviceMemory | None]) -> dict[str, torch.Tensor | None]:
    return {name: None if memory is None else memory.tensor for name, memory in placed.items()}


def _on_meta(workspace_size: Callable[..., Any]) -> Callable[..., Any]:
    """The question for the workspace's size, asked with tensors that have no memory."""

    @wraps(workspace_size)
    def ask(op: str, inputs: _Arrays, outputs: _Arrays, params: dict[str, Any], **keywords: Any) -> Any:
        return workspace_size(op, _meta(inputs), _meta(outputs), params, **keywords)

    return ask


def _meta(arrays: _Arrays) -> dict[str, torch.Tensor | None]:
    return {name: None if array is None else _like(array) for name, array in arrays.items()}


def _like(array: Array) -> torch.Tensor:
    strides = [stride // array.itemsize for stride in array.strides]
    return torch.empty_strided(array.shape, strides, dtype=getattr(torch, array.dtype.name), device="meta")
