"""`--impl capi[:library=libmluops.so,runtime=libcnrt.so,device=0]`: the vendor library through its C interface.

A call goes the way of a C program: descriptors, device memory, workspace, the operator put into a queue between two
notifiers, the queue waited for, outputs back. Whatever any function refuses is the status of the call.
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import ExitStack
from typing import Any

from generators.contracts.faults import (
    NULL_HANDLE,
    NULL_WORKSPACE_SIZE,
    WORKSPACE_NULL,
    WORKSPACE_SHORT,
    null_pointer,
)  # fmt: skip
from mluops_cli.implementations.base import Array, Call, CannotShow, Implementation, Outcome, OutOfBounds
from mluops_cli.implementations.capi.library import Library
from mluops_cli.implementations.capi.runtime import Pointer, Runtime, StatusError, load_library
from mluops_cli.implementations.capi.symbols import OPERATORS, Function
from mluops_cli.implementations.memory import GUARD, CanaryBuffer, memory_of, workspace
from mluops_cli.implementations.named_options import named_options
from mluops_cli.implementations.violations import violations
from schemas.errors import InputError, UnavailableError

_DEFAULTS = {"library": "libmluops.so", "runtime": "libcnrt.so", "device": "0"}
_SPARE_WORKSPACE = 1 << 28  # given where the call is broken, so that its size can't be asked for


class CApi(Implementation):
    """The library, loaded once per worker, with a handle and a queue of its own."""

    name = "capi"
    needs = "the vendor library; options library=libmluops.so, runtime=libcnrt.so, device=0"

    def __init__(self, options: str = "") -> None:
        super().__init__(options)
        given = named_options("capi", options, _DEFAULTS)
        if not given["device"].isdecimal():
            raise InputError(f"capi: device is {given['device']!r}, expected a number from 0")
        self.runtime = Runtime(given["runtime"], int(given["device"]))
        self.library = Library(given["library"], self.runtime.queue)

    @classmethod
    def unavailable(cls) -> str | None:
        """Why the libraries of the default names can't be loaded, None where they can."""
        try:
            for name in ("runtime", "library"):
                load_library(_DEFAULTS[name])
        except UnavailableError as error:
            return str(error)
        return None

    @classmethod
    def operators(cls) -> tuple[str, ...]:
        """The operators whose signatures are known."""
        return tuple(OPERATORS)

    def device(self) -> str:
        """Some MLU: the interface doesn't tell which."""
        return "MLU"

    def flush_cache(self) -> None:
        """Write to more memory than the device's caches hold."""
        self.runtime.flush_cache()

    def call(self, call: Call) -> Outcome:
        """Run the operator once; a refusal of the library or of the device is the status."""
        function = OPERATORS.get(call.op)
        if function is None:
            raise CannotShow(f"capi: no signature is known for operator {call.op}")
        if not self.library.has(function.name):
            raise CannotShow(f"capi: {self.library.name} has no function {function.name}")
        try:
            with ExitStack() as stack:
                return _Session(self.runtime, self.library, function, call, stack).run()
        except StatusError as refused:
            print(f"capi: {refused}", file=sys.stderr)  # kept with the record
            return Outcome(refused.status)


class _Session:
    """One call: what its arguments are, and what becomes of them. The stack frees everything."""

    def __init__(self, runtime: Runtime, library: Library, function: Function, call: Call, stack: ExitStack) -> None:
        self.runtime, self.library, self.function, self.call, self.stack = runtime, library, function, call, stack
        self.guards: dict[str, tuple[CanaryBuffer, Pointer]] = {}  # of what the operator writes to
        self.arguments: dict[str, Any] = {
            name: ctypes.c_int(value) for name, value in call.params.items() if isinstance(value, int)
        }
        self.arguments["handle"] = None if NULL_HANDLE in call.faults else library.handle

    def run(self) -> Outcome:
        """All of it; CannotShow, OutOfBounds, StatusError."""
        self._describe()
        for name, array in self.call.inputs.items():
            self.arguments[name] = self._input(name, array)
        for name, array in self.call.outputs.items():
            self.arguments[name] = self._output(name, array)
        needed = self._workspace()
        if NULL_WORKSPACE_SIZE in self.call.faults:
            return Outcome()  # it was taken
        with self.runtime.timed() as taken:
            self._invoke(self.function.name, self.function.arguments)
        scalars = {}
        for name, (function, arguments) in self.function.scalars.items():
            self.arguments["result"] = ctypes.byref(result := ctypes.c_int())
            self._invoke(function, arguments)
            scalars[name] = result.value
        self._fetch()
        return Outcome(latency_us=taken[0], workspace_bytes=needed, scalars=scalars)

    def _invoke(self, function: str, arguments: str) -> None:
        self.library.call(function, *(self.arguments[word] for word in arguments.split()))

    def _describe(self) -> None:
        if "sparse_conv_desc" in self.function.arguments.split():
            made = self.library.convolution_descriptor(self.call.params)
            self.arguments["sparse_conv_desc"] = self.stack.enter_context(made)
        for name, given in self.call.descriptors.items():
            described = None if given is None else self.library.tensor_descriptor(given)
            self.arguments[f"{name}_desc"] = None if described is None else self.stack.enter_context(described)

    def _input(self, name: str, array: Array | None) -> Pointer | None:
        """Device memory with the input's bytes."""
        if array is None:
            return self._stand_in(name)
        memory = memory_of(array)
        address = self.stack.enter_context(self.runtime.memory(memory.nbytes))
        self.runtime.to_device(address, memory)
        return address

    def _output(self, name: str, array: Array | None) -> Pointer | None:
        """Guarded device memory with what the output is filled with."""
        if array is None:
            return self._stand_in(name)
        memory = memory_of(array)
        guarded = CanaryBuffer(memory.nbytes)
        guarded.bytes[:] = memory
        return self._guard(name, guarded)

    def _guard(self, name: str, guarded: CanaryBuffer) -> Pointer:
        address = self.stack.enter_context(self.runtime.memory(guarded.whole.nbytes))
        self.runtime.to_device(address, guarded.whole)
        self.guards[name] = guarded, address
        assert address.value is not None
        return Pointer(address.value + GUARD)

    def _stand_in(self, name: str) -> Pointer | None:
        """For a tensor without data: null where that is the fault, else an address (it is too large to exist)."""
        if null_pointer(name) in self.call.faults:
            return None
        return self.stack.enter_context(self.runtime.memory(1))

    def _workspace(self) -> int | None:
        """Set the arguments workspace and workspace_size; the bytes the library asks for, None where it isn't asked."""
        if self.function.size is None:
            return None
        name, words = self.function.size
        faults = self.call.faults
        size, needed = ctypes.c_size_t(), None
        self.arguments["size"] = None if NULL_WORKSPACE_SIZE in faults else ctypes.byref(size)
        if self._whole():
            self._invoke(name, words)
            needed = size.value
        if any(fault.of_workspace for fault in faults) and not needed:
            raise CannotShow("capi: the library asks for no workspace, so it can't be denied one")
        given = _SPARE_WORKSPACE if needed is None else needed - (WORKSPACE_SHORT in faults)
        self.arguments["workspace_size"] = ctypes.c_size_t(given)
        if WORKSPACE_NULL in faults:
            self.arguments["workspace"] = None
        elif needed is None:
            self.arguments["workspace"] = self.stack.enter_context(self.runtime.memory(given))
        else:
            self.arguments["workspace"] = self._guard("workspace", workspace(given))
        return needed

    def _whole(self) -> bool:
        """Whether the call is right but for its workspace: only then the size of one can be asked for."""
        others = [fault for fault in self.call.faults if not (fault.of_workspace or fault == NULL_WORKSPACE_SIZE)]
        return not (others or violations(self.call))

    def _fetch(self) -> None:
        """Outputs back to the host; OutOfBounds where something else was written to."""
        for name, (guarded, address) in self.guards.items():
            self.runtime.to_host(guarded.whole, address)
            if damage := guarded.damage():
                raise OutOfBounds(f"{name}: {damage}")
        for name, array in self.call.inputs.items():
            if array is not None and not self.runtime.unchanged(self.arguments[name], memory_of(array)):
                raise OutOfBounds(f"input {name} was changed")
        empty = any(given is not None and given.elements == 0 for given in self.call.descriptors.values())
        for name, array in self.call.outputs.items():
            if array is None:
                continue
            memory, computed = memory_of(array), self.guards[name][0].bytes
            if empty and name in self.function.unwritten_when_empty and (memory == computed).all():
                print(f"capi: {name} is left as it was, a tensor being empty: taken for 0", file=sys.stderr)
                computed[:] = 0
            memory[:] = computed
