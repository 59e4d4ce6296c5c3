"""`--impl torch[:device=cpu|cuda|mlu]`: the operators composed from PyTorch operators.

An operator is a module of this package with KERNELS, a mapping from operator name to a subclass of TorchKernel. These
modules import torch; this one doesn't, so that the implementation can be listed where torch is missing.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from mluops_cli.implementations.base import Call, CannotShow, Implementation, Outcome
from mluops_cli.implementations.callables import CallableKernel
from mluops_cli.implementations.named_options import named_options
from schemas.errors import InputError, UnavailableError

if TYPE_CHECKING:
    from mluops_cli.implementations.torch.base import TorchKernel

_DEVICE: Final = re.compile(r"(cpu|cuda|mlu)(:\d+)?")


class Torch(Implementation):
    """The operators written in PyTorch, on the device of the option; independent of the reference kernels."""

    name = "torch"
    needs = "the package torch; option device=cpu, cuda or mlu (also cuda:1)"

    def __init__(self, options: str = "") -> None:
        super().__init__(options)
        device = named_options("torch", options, {"device": "cpu"})["device"]
        if not _DEVICE.fullmatch(device):
            raise InputError(f"torch: device is {device!r}, expected cpu, cuda or mlu, perhaps with a number (cuda:1)")
        if reason := self.unavailable():
            raise UnavailableError(reason)
        from mluops_cli.implementations.torch.device import Device

        self.on = Device(device)
        self.kernels = {op: kernel(self.on) for op, kernel in kernels().items()}
        self._callables = {op: CallableKernel(kernel) for op, kernel in self.kernels.items()}

    @classmethod
    def unavailable(cls) -> str | None:
        """Return why torch can't be imported, None where it can."""
        try:
            importlib.import_module("torch")
        except Exception as error:  # a broken installation raises anything
            text = " ".join(str(error).split())
            return f"can't import torch: {text} (pip install 'mluops[torch]')"
        return None

    @classmethod
    def operators(cls) -> tuple[str, ...]:
        """Return the operators with a module here; none where torch is missing."""
        return () if cls.unavailable() else tuple(kernels())

    def device(self) -> str | None:
        """Return the accelerator's name, None for device=cpu."""
        return self.on.name

    def flush_cache(self) -> None:
        """Write to more memory than the accelerator's caches hold."""
        self.on.flush_cache()

    def call(self, call: Call) -> Outcome:
        """Compute on the device; latency_us is the device's time, without the copies of tensors."""
        if call.op not in self.kernels:
            raise CannotShow(f"torch has no kernel for operator {call.op}")
        kernel = self.kernels[call.op]
        kernel.latency_us = None
        return replace(self._callables[call.op](call), latency_us=kernel.latency_us)


@cache
def kernels() -> Mapping[str, type[TorchKernel]]:
    """The kernels by operator, from every module of this package."""
    found: dict[str, Any] = {}
    for module in sorted(each.name for each in pkgutil.iter_modules(__path__)):
        found |= getattr(importlib.import_module(f"{__name__}.{module}"), "KERNELS", {})
    return found
