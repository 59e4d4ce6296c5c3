"""What all PyTorch kernels share: the way of the tensors to the device and back, and the time in between."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import torch

from mluops_cli.implementations.checks.operator import CheckedOperator, Params, Result, Tensors
from mluops_cli.implementations.torch.device import Device
from schemas.status import SUCCESS

Torches = Mapping[str, torch.Tensor]


class TorchKernel(CheckedOperator):
    """One operator in PyTorch; latency_us is the device time of the last computation, None where there was none."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.latency_us: float | None = None

    def run(self, tensors: Tensors, params: Params) -> Result:
        """Inputs to the device, compute, outputs back; scalar results are handed on."""
        inputs = {name: self.device.tensor(tensors[name]) for name in self.inputs}
        with torch.inference_mode():
            with self.device.timed() as taken:
                computed = self.compute(inputs, params)
            for name in self.outputs:
                self.device.host(tensors[name]).copy_(computed[name])
        self.latency_us = taken[0]
        return {"status": SUCCESS, **self.scalars(computed)}

    def scalars(self, computed: Torches) -> Mapping[str, Any]:
        """The operator's scalar results."""
        return {}

    @abstractmethod
    def compute(self, inputs: Torches, params: Params) -> dict[str, torch.Tensor]:
        """The outputs by name, in their shapes and dtypes, on the device of the inputs."""
