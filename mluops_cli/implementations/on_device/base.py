"""The base of implementations on torch tensors, and the one whose kernel is a callable of the user."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mluops_cli.implementations.base import Call, Implementation, Outcome
from mluops_cli.implementations.callables import CallableKernel

if TYPE_CHECKING:
    from mluops_cli.implementations.on_device.device import Device
    from mluops_cli.implementations.on_device.device_callable import Around


class DeviceImplementation(Implementation):
    """An implementation that computes on a device of torch; a subclass sets on."""

    on: Device

    def device(self) -> str | None:
        """Return the accelerator's name, None where the host computes."""
        return self.on.name

    def flush_cache(self) -> None:
        """Flush the accelerator's caches directly before the next call's work is timed."""
        self.on.flush_cache()


class DeviceKernel:
    """A callable on tensors, called with the runner's calls."""

    def __init__(self, target: Any, device: Device, around: Around | None = None) -> None:
        from mluops_cli.implementations.on_device.device_callable import DeviceCallable

        self._target = DeviceCallable(target, device, around)
        self._kernel = CallableKernel(self._target)

    def __call__(self, call: Call) -> Outcome:
        """Call it once; latency_us is the device's time, without the copies of tensors."""
        self._target.latency_us = None
        return replace(self._kernel(call), latency_us=self._target.latency_us)
