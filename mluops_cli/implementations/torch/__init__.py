"""`--impl torch[:device=DEVICE]`: the operators composed from PyTorch operators.

`--impl torch:FILE.py:NAME[,device=DEVICE]`: a callable of the user on torch tensors.

An operator is a module of this package with KERNELS, a mapping from operator name to a subclass of TorchKernel. These
modules import torch; this one doesn't, so that the implementation can be listed where torch is missing.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from mluops_cli.implementations.base import Call, CannotShow, Implementation, Outcome
from mluops_cli.implementations.callables import CallableKernel
from mluops_cli.implementations.loading import load_callable
from mluops_cli.implementations.named_options import named_options
from mluops_cli.implementations.on_device.base import DeviceImplementation, DeviceKernel
from mluops_cli.implementations.on_device.device_options import device_named, import_problem, split_target

if TYPE_CHECKING:
    from mluops_cli.implementations.torch.base import TorchKernel

_DEFAULTS: Final = {"device": "cpu"}


class Torch(DeviceImplementation):
    """The operators written in PyTorch, on the device of the option; independent of the reference kernels."""

    name = "torch"
    needs = "the package torch; perhaps FILE.py:NAME, a callable; device=cpu, cuda, mlu or xpu (also cuda:1)"

    def __init__(self, options: str = "") -> None:
        super().__init__(options)
        self.on = device_named("torch", named_options("torch", options, _DEFAULTS)["device"])
        self.kernels = {op: kernel(self.on) for op, kernel in kernels().items()}
        self._callables = {op: CallableKernel(kernel) for op, kernel in self.kernels.items()}

    @classmethod
    def chosen(cls, options: str) -> type[Implementation]:
        """Return TorchCallable where the options name a callable."""
        return TorchCallable if split_target(options)[0] else cls

    @classmethod
    def unavailable(cls) -> str | None:
        """Return why torch can't be imported, None where it can."""
        return import_problem("torch", "torch")

    @classmethod
    def operators(cls) -> tuple[str, ...]:
        """Return the operators with a module here; none where torch is missing."""
        return () if cls.unavailable() else tuple(kernels())

    def call(self, call: Call) -> Outcome:
        """Compute on the device; latency_us is the device's time, without the copies of tensors."""
        if call.op not in self.kernels:
            raise CannotShow(f"torch has no kernel for operator {call.op}")
        kernel = self.kernels[call.op]
        kernel.latency_us = None
        return replace(self._callables[call.op](call), latency_us=kernel.latency_us)


class TorchCallable(DeviceImplementation):
    """A callable f(op, inputs, outputs, params) of a Python file or module, on torch tensors of the option's device."""

    name = "torch"

    def __init__(self, options: str = "") -> None:
        super().__init__(options)
        target, rest = split_target(options)
        self.on = device_named("torch", named_options("torch", rest, _DEFAULTS)["device"])
        self.kernel = DeviceKernel(load_callable("torch", target), self.on)

    def call(self, call: Call) -> Outcome:
        """Run the callable once; latency_us is the device's time, without the copies of tensors."""
        return self.kernel(call)


@cache
def kernels() -> Mapping[str, type[TorchKernel]]:
    """The kernels by operator, from every module of this package."""
    found: dict[str, Any] = {}
    for module in sorted(each.name for each in pkgutil.iter_modules(__path__)):
        found |= getattr(importlib.import_module(f"{__name__}.{module}"), "KERNELS", {})
    return found
