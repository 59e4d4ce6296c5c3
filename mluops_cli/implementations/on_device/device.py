"""The device that torch tensors are on: its availability, its clock, its cache."""

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
LATE: Final = 20.0  # microseconds: a wait for an idle device takes less


class Device:
    """The device cpu, cuda, mlu or xpu, perhaps with a number; UnavailableError where this machine lacks it."""

    def __init__(self, name: str) -> None:
        kind = name.partition(":")[0]
        if kind == "mlu":
            _import_torch_mlu()
        module: Any = getattr(torch, kind, None)  # torch.cpu, torch.cuda, torch.mlu, torch.xpu
        self.on_host = kind == "cpu"
        if not self.on_host and (module is None or not module.is_available()):
            raise UnavailableError(f"torch: no {kind} device is available (torch {torch.__version__})")
        number = int(name.partition(":")[2] or 0)
        if not self.on_host and number >= (count := module.device_count()):
            raise UnavailableError(f"torch: no device {name}, there are {count}")
        self._module = module
        self.device = torch.device(name)
        if not self.on_host:
            self._module.set_device(number)
        self._flushed: torch.Tensor | None = None
        self._cold = False
        if "OMP_NUM_THREADS" not in os.environ:
            torch.set_num_threads(1)  # workers share the cores

    @property
    def name(self) -> str | None:
        """Return the accelerator's name, None on the host."""
        return None if self.on_host else str(self._module.get_device_name())

    def flush_cache(self) -> None:
        """Make the next timed block start with an accelerator's caches flushed: after its tensors were copied there."""
        self._cold = not self.on_host

    def tensor(self, array: Array) -> torch.Tensor:
        """Return the array on the device; on the host it shares its memory."""
        return shared(array).to(self.device)

    def lost(self) -> bool:
        """Whether the device answers errors only, as after an access to memory that isn't there."""
        if self.on_host:
            return False
        try:
            self._module.synchronize()
        except RuntimeError:
            return True
        return False

    @contextmanager
    def timed(self) -> Iterator[list[float]]:
        """Yield a list that holds, after the block, the microseconds that the device spent on it.

        These are the time between two events on the current stream. Where other streams are still busy when the current
        one is done, the time until the whole device is idle counts, by the host's clock.
        """
        taken: list[float] = []
        if self.on_host:
            start = time.perf_counter()
            yield taken
            taken.append((time.perf_counter() - start) * 1e6)
            return
        begin, end = (self._module.Event(enable_timing=True) for _ in range(2))
        if self._cold:
            self._flush()
        self._module.synchronize()
        start = time.perf_counter()
        begin.record()
        yield taken
        end.record()
        end.synchronize()
        own = time.perf_counter()
        self._module.synchronize()
        idle = time.perf_counter()
        late = (idle - own) * 1e6 > LATE
        taken.append((idle - start) * 1e6 if late else begin.elapsed_time(end) * 1e3)

    def _flush(self) -> None:
        """Write to more memory than the caches hold."""
        if self._flushed is None:
            self._flushed = torch.empty(FLUSH, dtype=torch.uint8, device=self.device)
        self._flushed.zero_()
        self._cold = False


def shared(array: Array) -> torch.Tensor:
    """Return the array's memory as a tensor on the host, also that of a read-only one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch has no read-only tensors
        return torch.from_numpy(array)


def _import_torch_mlu() -> None:
    try:
        importlib.import_module("torch_mlu")
    except Exception as error:  # a broken installation raises anything
        text = " ".join(str(error).split())
        raise UnavailableError(f"torch: device mlu needs the package torch_mlu: {text}") from None
