"""The runtime library: device, queue, device memory, device time. Every failing call of it raises StatusError."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import numpy as np

from mluops_cli.implementations.base import Array
from mluops_cli.implementations.capi.symbols import DEVICE_TO_HOST, HOST_TO_DEVICE, RUNTIME
from schemas.errors import UnavailableError

Pointer = ctypes.c_void_p
_FLUSH: Final = 256 << 20  # bytes, some times the last-level cache of a device


class StatusError(Exception):
    """A function answered with something else than success; status is the operator's that stands for it."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def load_library(name: str) -> ctypes.CDLL:
    """The shared library of that file name or path; UnavailableError where it can't be loaded."""
    try:
        # Global, since the operators' library expects to find the runtime's functions.
        return ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        why = " ".join(str(error).removeprefix(f"{name}: ").split())
        raise UnavailableError(f"capi: can't load {name}: {why}") from None


def find_function(library: ctypes.CDLL, name: str) -> Any:
    """The function of that name, returning an int; UnavailableError where the library lacks it."""
    try:
        return getattr(library, name)
    except AttributeError:
        raise UnavailableError(f"capi: {library._name} has no function {name}") from None


class Runtime:
    """A device and a queue on it; UnavailableError where there is no such device."""

    def __init__(self, library: str, device: int) -> None:
        loaded = load_library(library)
        self._functions = {word: find_function(loaded, name) for word, name in RUNTIME.items()}
        count = ctypes.c_uint()
        self.queue = Pointer()
        try:
            self._call("device_count", ctypes.byref(count))
            if device >= count.value:
                raise UnavailableError(f"capi: no device {device}, {library} finds {count.value}")
            self._call("set_device", ctypes.c_int(device))
            self._call("queue_create", ctypes.byref(self.queue))
        except StatusError as error:
            raise UnavailableError(f"capi: {error}") from None

    def synchronize(self) -> None:
        """Wait for the queue; EXECUTION_FAILED."""
        self._call("queue_sync", self.queue)

    @contextmanager
    def memory(self, size: int) -> Iterator[Pointer]:
        """So many bytes of device memory (at least one); ALLOC_FAILED."""
        address = Pointer()
        self._call("malloc", ctypes.byref(address), ctypes.c_size_t(max(1, size)), status="ALLOC_FAILED")
        try:
            yield address
        finally:
            self._functions["free"](address)

    def to_device(self, address: Pointer, memory: Array) -> None:
        """Copy a flat uint8 array there."""
        self._copy(address, Pointer(memory.ctypes.data), memory.nbytes, HOST_TO_DEVICE)

    def to_host(self, memory: Array, address: Pointer) -> None:
        """Copy a flat uint8 array from there."""
        self._copy(Pointer(memory.ctypes.data), address, memory.nbytes, DEVICE_TO_HOST)

    def flush_cache(self) -> None:
        """Write to more memory than the device's caches hold."""
        with self.memory(_FLUSH) as address:
            self._call("memset", address, ctypes.c_int(0), ctypes.c_size_t(_FLUSH))
            self.synchronize()

    def unchanged(self, address: Pointer, memory: Array) -> bool:
        """Whether the device memory still holds these bytes."""
        held = np.empty_like(memory)
        self.to_host(held, address)
        return bool(np.array_equal(held, memory))

    def _copy(self, target: Pointer, source: Pointer, size: int, direction: int) -> None:
        if size:
            self._call("memcpy", target, source, ctypes.c_size_t(size), ctypes.c_int(direction))

    @contextmanager
    def timed(self) -> Iterator[list[float]]:
        """A list that holds, after the block, the microseconds that the queue took for what was put into it."""
        taken: list[float] = []
        begin, end = Pointer(), Pointer()
        with ExitStack() as stack:
            for notifier in (begin, end):
                self._call("notifier_create", ctypes.byref(notifier))
                stack.callback(self._functions["notifier_destroy"], notifier)
            stack.callback(self._functions["queue_sync"], self.queue)  # a notifier in the queue can't be destroyed
            self._call("notifier_place", begin, self.queue)
            yield taken
            self._call("notifier_place", end, self.queue)
            self.synchronize()
            duration = ctypes.c_float()
            self._call("notifier_duration", begin, end, ctypes.byref(duration))
            taken.append(duration.value)

    def _call(self, word: str, *arguments: Any, status: str = "EXECUTION_FAILED") -> None:
        if code := self._functions[word](*arguments):
            raise StatusError(status, f"{RUNTIME[word]} returned {code}")
