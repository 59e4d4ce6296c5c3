"""What all PyTorch kernels share: tensors to the device and back, and the device time in between."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import torch

from mluops_cli.implementations.base import Array
from mluops_cli.implementations.on_device.device import Device
from mluops_cli.implementations.preconditions.base import CheckedOperator, Params, Result, Tensors
from schemas.status import SUCCESS

Torches = Mapping[str, torch.Tensor]
Shapes = Mapping[str, tuple[int, ...]]


class TorchKernel(CheckedOperator):
    """One operator in PyTorch; latency_us is the device time of the last computation, None where there was none."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.latency_us: float | None = None

    def run(self, tensors: Tensors, params: Params) -> Result:
        """Copy the inputs to the device, compute, copy the outputs back; return the scalar results."""
        inputs = {name: self.device.tensor(tensors[name]) for name in self.inputs}
        shapes = {name: tensors[name].shape for name in self.outputs}
        with torch.inference_mode(), self.device.device:  # new tensors of compute are made on the device
            with self.device.timed() as taken:
                computed = self.compute(inputs, params, shapes)
            for name in self.outputs:
                store(computed[name], tensors[name])
        self.latency_us = taken[0]
        return {"status": SUCCESS, **self.scalars(computed)}

    def scalars(self, computed: Torches) -> Mapping[str, Any]:
        """Return the operator's scalar results."""
        return {}

    @abstractmethod
    def compute(self, inputs: Torches, params: Params, shapes: Shapes) -> dict[str, torch.Tensor]:
        """Return the outputs by name, on the device of the inputs; shapes are those of the outputs."""


def store(computed: torch.Tensor, output: Array) -> None:
    """Copy a result to the caller's memory; rows beyond its capacity are dropped (num_act_out has their number)."""
    memory = torch.from_numpy(output)
    if computed.shape[1:] != memory.shape[1:] or computed.dtype != memory.dtype:
        found, expected = (f"{list(each.shape)} {each.dtype}" for each in (computed, memory))
        raise ValueError(f"computed {found}, expected {expected}")
    rows = min(len(computed), len(memory))
    memory[:rows].copy_(computed[:rows])
