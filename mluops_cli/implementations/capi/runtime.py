"""The runtime library: device, queue, device memory, device time. A function that fails raises StatusError."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final, NamedTuple

import numpy as np

from mluops_cli.implementations.base import Array
from mluops_cli.implementations.canary_buffer import CANARY, CANARY_BYTES, corruption
from mluops_cli.implementations.capi.symbols import DEVICE_TO_HOST, HOST_TO_DEVICE, RUNTIME
from schemas.errors import UnavailableError

Pointer = ctypes.c_void_p
_FLUSH: Final = 256 << 20  # bytes, several times the last-level cache of a device
_CHUNK: Final = 16 << 20  # bytes of device memory that are compared at once


class DeviceBuffer(NamedTuple):
    """Device memory between canary bytes: its address and its size in bytes."""

    address: Pointer
    size: int


class StatusError(Exception):
    """A function returned another number than that of success; status is the operator status it stands for."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def load_library(name: str) -> ctypes.CDLL:
    """Load the shared library of that file name or path; UnavailableError where it can't be loaded."""
    try:
        # Global: the operators' library looks up the runtime's functions among the process's symbols.
        return ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        why = " ".join(str(error).removeprefix(f"{name}: ").split())
        raise UnavailableError(f"capi: can't load {name}: {why}") from None


def find_function(library: ctypes.CDLL, name: str) -> Any:
    """Return the function of that name, which returns an int; UnavailableError where the library lacks it."""
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

    def close(self) -> None:
        """Destroy the queue."""
        self._functions["queue_destroy"](self.queue)

    @contextmanager
    def memory(self, size: int) -> Iterator[Pointer]:
        """Yield the address of size bytes of device memory (at least one); ALLOC_FAILED."""
        address = Pointer()
        self._call("malloc", ctypes.byref(address), ctypes.c_size_t(max(1, size)), status="ALLOC_FAILED")
        try:
            yield address
        finally:
            self._functions["free"](address)

    @contextmanager
    def buffer(self, size: int) -> Iterator[DeviceBuffer]:
        """Yield size bytes of device memory between canary bytes; the host holds no copy of them."""
        with self.memory(CANARY_BYTES + size + CANARY_BYTES) as start:
            assert start.value is not None
            made = DeviceBuffer(Pointer(start.value + CANARY_BYTES), size)
            canaries = np.full(CANARY_BYTES, CANARY, np.uint8)
            for address in _around(made):
                self.to_device(address, canaries)
            yield made

    def corruption(self, buffer: DeviceBuffer) -> str | None:
        """Return which canary bytes around the buffer were overwritten, None where all are intact."""
        held = [np.empty(CANARY_BYTES, np.uint8) for _ in range(2)]
        for canaries, address in zip(held, _around(buffer), strict=True):
            self.to_host(canaries, address)
        return corruption(*held)

    def fill(self, address: Pointer, value: int, size: int) -> None:
        """Set size bytes of device memory to a value from 0 to 255."""
        if size:
            self._call("memset", address, ctypes.c_int(value), ctypes.c_size_t(size))

    def to_device(self, address: Pointer, memory: Array) -> None:
        """Copy a flat uint8 array to device memory."""
        self._copy(address, Pointer(memory.ctypes.data), memory.nbytes, HOST_TO_DEVICE)

    def to_host(self, memory: Array, address: Pointer) -> None:
        """Copy device memory into a flat uint8 array."""
        self._copy(Pointer(memory.ctypes.data), address, memory.nbytes, DEVICE_TO_HOST)

    def flush_cache(self) -> None:
        """Write to more memory than the device's caches hold."""
        with self.memory(_FLUSH) as address:
            self.fill(address, 0, _FLUSH)
            self.synchronize()

    def unchanged(self, address: Pointer, memory: Array) -> bool:
        """Return whether the device memory still holds these bytes."""
        assert address.value is not None
        held = np.empty(min(_CHUNK, memory.size), np.uint8)
        for start in range(0, memory.size, _CHUNK):
            expected = memory[start : start + _CHUNK]
            self.to_host(held[: expected.size], Pointer(address.value + start))
            if not np.array_equal(held[: expected.size], expected):
                return False
        return True

    def _copy(self, target: Pointer, source: Pointer, size: int, direction: int) -> None:
        if size:
            self._call("memcpy", target, source, ctypes.c_size_t(size), ctypes.c_int(direction))

    @contextmanager
    def timed(self) -> Iterator[list[float]]:
        """Yield a list that holds, after the block, the microseconds that the queue took for the work of the block."""
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


def _around(buffer: DeviceBuffer) -> tuple[Pointer, Pointer]:
    """Return the addresses of the canary bytes before and behind a buffer."""
    assert buffer.address.value is not None
    return Pointer(buffer.address.value - CANARY_BYTES), Pointer(buffer.address.value + buffer.size)
