"""An array of the runner as a torch tensor: on the host in the same memory, on a device between bands of bytes."""

from __future__ import annotations

from typing import Final

import numpy as np
import torch

from mluops_cli.implementations.base import Array
from mluops_cli.implementations.canary_buffer import CANARY, CANARY_BYTES, corruption, memory_of
from mluops_cli.implementations.on_device.device import Device, shared

POISON: Final = 0xFF  # around inputs: NaN in every float, -1 in every signed integer


class DeviceMemory:
    """The memory of one array, copied to the device, with tensor as its view of the array's dtype, shape and strides.

    On a device CANARY_BYTES bytes lie directly before and behind it: poison around an input, which a read out of bounds
    finds, canaries around an output. On the host the runner's own memory is used, which has its own canaries.
    """

    def __init__(self, array: Array, device: Device) -> None:
        self._host = memory_of(array)
        self._band = CANARY if array.flags.writeable else POISON
        source = shared(self._host)
        if device.on_host:
            self._whole = self._bytes = source
        else:
            count = 2 * CANARY_BYTES + len(self._host)
            self._whole = torch.full((count,), self._band, dtype=torch.uint8, device=device.device)
            self._bytes = self._whole[CANARY_BYTES : count - CANARY_BYTES]
            self._bytes.copy_(source)
        typed = self._bytes.view(getattr(torch, array.dtype.name))
        strides = [stride // array.itemsize for stride in array.strides]
        self.tensor: torch.Tensor = typed.as_strided(array.shape, strides)

    def damage(self) -> str | None:
        """Return which bytes around it were overwritten, None where all are intact, and on the host."""
        if self._whole is self._bytes:
            return None
        bands = self._whole[:CANARY_BYTES], self._whole[-CANARY_BYTES:]
        before, after = (band.cpu().numpy() for band in bands)
        return corruption(before, after, canary=self._band)

    @property
    def changed(self) -> bool:
        """Whether it differs from the array that was copied; the host's memory is the array itself."""
        return self._whole is not self._bytes and not np.array_equal(self._bytes.cpu().numpy(), self._host)

    def store(self) -> None:
        """Copy it back to the array."""
        if self._whole is not self._bytes:
            shared(self._host).copy_(self._bytes)
