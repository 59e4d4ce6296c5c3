"""What all PyTorch kernels share: the way of the tensors to the device and back, and the time in between."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import torch

from mluops_cli.implementations.base import Array
from mluops_cli.implementations.preconditions.base import CheckedOperator, Params, Result, Tensors
from mluops_cli.implementations.torch.device import Device
from schemas.status import SUCCESS

Torches = Mapping[str, torch.Tensor]
Shapes = Mapping[str, tuple[int, ...]]


class TorchKernel(CheckedOperator):
    """One operator in PyTorch; latency_us is the device time of the last computation, None where there was none."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.latency_us: float | None = None

    def run(self, tensors: Tensors, params: Params) -> Result:
        """Inputs to the device, compute, outputs back; scalar results are handed on."""
        inputs = {name: self.device.tensor(tensors[name]) for name in self.inputs}
        shapes = {name: tensors[name].shape for name in self.outputs}
        with torch.inference_mode(), self.device.device:  # where tensors are made that compute adds to the inputs
            with self.device.timed() as taken:
                computed = self.compute(inputs, params, shapes)
            for name in self.outputs:
                store(computed[name], tensors[name])
        self.latency_us = taken[0]
        return {"status": SUCCESS, **self.scalars(computed)}

    def scalars(self, computed: Torches) -> Mapping[str, Any]:
        """The operator's scalar results."""
        return {}

    @abstractmethod
    def compute(self, inputs: Torches, params: Params, shapes: Shapes) -> dict[str, torch.Tensor]:
        """The outputs by name, on the device of the inputs; shapes are those of the outputs."""


def store(computed: torch.Tensor, output: Array) -> None:
    """Copy a result to the caller's memory; rows beyond those it has room for are dropped (num_act_out tells)."""
    room = torch.from_numpy(output)
    if computed.shape[1:] != room.shape[1:] or computed.dtype != room.dtype:
        found, expected = (f"{list(each.shape)} {each.dtype}" for each in (computed, room))
        raise ValueError(f"computed {found}, expected {expected}")
    rows = min(len(computed), len(room))
    room[:rows].copy_(computed[:rows])
