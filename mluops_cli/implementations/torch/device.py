"""The device that the PyTorch kernels run on: its availability, its tensors, its timer."""

from __future__ import annotations

import importlib
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch

from mluops_cli.implementations.base import Array
from schemas.errors import UnavailableError

FLUSH: Final = 256 << 20  # bytes, several times the last-level cache of an accelerator


class Device:
    """The device cpu, cuda or mlu, perhaps with a number; UnavailableError where this machine lacks it."""

    def __init__(self, name: str) -> None:
        kind = name.partition(":")[0]
        if kind == "mlu":
            _import_torch_mlu()
        self._module: Any = getattr(torch, kind)  # torch.cpu, torch.cuda, torch.mlu
        self.on_host = kind == "cpu"
        if not self.on_host and not self._module.is_available():
            raise UnavailableError(f"torch: no {kind} device is available (torch {torch.__version__})")
        number = int(name.partition(":")[2] or 0)
        if not self.on_host and number >= (count := self._module.device_count()):
            raise UnavailableError(f"torch: no device {name}, there are {count}")
        self.device = torch.device(name)
        if not self.on_host:
            self._module.set_device(number)
        self._flushed: torch.Tensor | None = None
        if "OMP_NUM_THREADS" not in os.environ:
            torch.set_num_threads(1)  # workers share the cores

    @property
    def name(self) -> str | None:
        """Return the accelerator's name, None on the host."""
        return None if self.on_host else str(self._module.get_device_name())

    def flush_cache(self) -> None:
        """Write to more memory than an accelerator's caches hold; does nothing on the host."""
        if not self.on_host:
            if self._flushed is None:
                self._flushed = torch.empty(FLUSH, dtype=torch.uint8, device=self.device)
            self._flushed.zero_()
            self._module.synchronize()

    def tensor(self, array: Array) -> torch.Tensor:
        """Return the array on the device; on the host it shares its memory."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # inputs are read-only, and torch has no such tensors
            return torch.from_numpy(array).to(self.device)

    @contextmanager
    def timed(self) -> Iterator[list[float]]:
        """Yield a list that holds, after the block, the microseconds that the device spent on it."""
        taken: list[float] = []
        if self.on_host:
            start = time.perf_counter()
            yield taken
            taken.append((time.perf_counter() - start) * 1e6)
            return
        begin, end = (self._module.Event(enable_timing=True) for _ in range(2))
        self._module.synchronize()
        begin.record()
        yield taken
        end.record()
        self._module.synchronize()
        taken.append(begin.elapsed_time(end) * 1e3)


def _import_torch_mlu() -> None:
    try:
        importlib.import_module("torch_mlu")
    except Exception as error:  # a broken installation raises anything
        text = " ".join(str(error).split())
        raise UnavailableError(f"torch: device mlu needs the package torch_mlu: {text}") from None
