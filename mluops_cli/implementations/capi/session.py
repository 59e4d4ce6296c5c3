"""One call through the C interface, as a C program makes it.

Descriptors, device memory, workspace, the operator put into the queue between two notifiers, the queue waited for, the
outputs copied back. The first function that refuses something decides the status of the call.
"""

from __future__ import annotations

import ctypes
from contextlib import ExitStack
from typing import Any

from generators.contracts.faults import (
    NULL_HANDLE,
    NULL_PARAMETERS,
    NULL_WORKSPACE_SIZE,
    SIZE_QUERY_NULL_HANDLE,
    null_pointer,
    tensors_with,
)
from mluops_cli.implementations.base import Array, Call, CannotShow, Outcome, OutOfBounds
from mluops_cli.implementations.canary_buffer import memory_of
from mluops_cli.implementations.capi.library import Library, as_argument
from mluops_cli.implementations.capi.runtime import DeviceBuffer, Pointer, Runtime
from mluops_cli.implementations.capi.symbols import SPARSE_CONVOLUTION_DESCRIPTOR, Function
from mluops_cli.implementations.workspace import POISON, SPARE, granted_bytes, size_is_asked


class Session:
    """The arguments of one call by their words in the table of symbols; the stack frees what they point to."""

    def __init__(self, runtime: Runtime, library: Library, function: Function, call: Call, stack: ExitStack) -> None:
        self.runtime, self.library, self.function, self.call, self.stack = runtime, library, function, call, stack
        self.written: dict[str, DeviceBuffer] = {}  # what the operator may write to: outputs and workspace
        words = function.arguments.split()
        self.arguments: dict[str, Any] = {
            name: as_argument(value)
            for name, value in call.params.items()
            if name in words and isinstance(value, (int, float))
        }
        self.arguments["handle"] = None if NULL_HANDLE in call.faults else library.handle

    def run(self) -> Outcome:
        """Make the call; CannotShow, OutOfBounds, StatusError."""
        self._describe()
        for name, array in self.call.inputs.items():
            self.arguments[name] = self._input(name, array)
        for name, array in self.call.outputs.items():
            self.arguments[name] = self._output(name, array)
        needed = self._workspace()
        if any(fault.of_size_query for fault in self.call.faults):
            return Outcome()  # the library accepted what is null
        with self.runtime.timed() as taken:
            self._invoke(self.function.name, self.function.arguments)
        if NULL_PARAMETERS in self.call.faults:
            return Outcome()  # the library accepted what is null: it has no results to ask for
        scalars = {}
        for name, scalar in self.function.scalars.items():
            self.arguments["result"] = ctypes.byref(result := ctypes.c_int())
            self._invoke(scalar.function, scalar.arguments)
            if not (scalar.unstored_with and self.call.params.get(scalar.unstored_with)):
                scalars[name] = result.value
        self._check_memory()
        self._fetch()
        return Outcome(latency_us=taken[0], workspace_bytes=needed, scalars=scalars)

    def _invoke(self, function: str, arguments: str, nulls: frozenset[str] = frozenset()) -> None:
        """Call a function of the library; null for the arguments whose words are in nulls."""
        values = (None if word in nulls else self.arguments[word] for word in arguments.split())
        self.library.call(function, *values)

    def _describe(self) -> None:
        holds_parameters = SPARSE_CONVOLUTION_DESCRIPTOR in self.function.arguments.split()
        if NULL_PARAMETERS in self.call.faults:
            if not holds_parameters:
                raise CannotShow(f"capi: {self.function.name} takes its parameters without a descriptor")
            self.arguments[SPARSE_CONVOLUTION_DESCRIPTOR] = None
        elif holds_parameters:
            made = self.library.convolution_descriptor(self.call.params)
            self.arguments[SPARSE_CONVOLUTION_DESCRIPTOR] = self.stack.enter_context(made)
        for name, given in self.call.descriptors.items():
            described = None if given is None else self.library.tensor_descriptor(given)
            self.arguments[f"{name}_desc"] = None if described is None else self.stack.enter_context(described)

    def _input(self, name: str, array: Array | None) -> Pointer | None:
        """Return device memory with the input's bytes."""
        if array is None:
            return self._without_data(name)
        memory = memory_of(array)
        address = self.stack.enter_context(self.runtime.memory(memory.nbytes))
        self.runtime.to_device(address, memory)
        return address

    def _output(self, name: str, array: Array | None) -> Pointer | None:
        """Return device memory between canaries with the sentinels that the output holds."""
        if array is None:
            return self._without_data(name)
        memory = memory_of(array)
        buffer = self.written[name] = self.stack.enter_context(self.runtime.buffer(memory.nbytes))
        self.runtime.to_device(buffer.address, memory)
        return buffer.address

    def _without_data(self, name: str) -> Pointer | None:
        """Return null where that is the fault, else some address: the tensor is too large to be allocated."""
        if null_pointer(name) in self.call.faults:
            return None
        return self.stack.enter_context(self.runtime.memory(1))

    def _workspace(self) -> int | None:
        """Set the arguments workspace and workspace_size; the bytes needed, None where the library isn't asked.

        The workspace exists on the device alone, and is whole where a short one is reported: a library that does not
        compare the size is to answer wrongly, not to damage what lies behind.
        """
        if self.function.size is None:
            if any(fault.of_size_query for fault in self.call.faults):
                raise CannotShow(f"capi: {self.function.name} has no workspace whose size could be asked for")
            return None
        name, words = self.function.size
        size, needed = ctypes.c_size_t(), None
        self.arguments["size"] = None if NULL_WORKSPACE_SIZE in self.call.faults else ctypes.byref(size)
        if size_is_asked(self.call):
            self._invoke(name, words, self._nulls_of_size_query())
            needed = size.value
        granted = granted_bytes(self.call, needed)
        self.arguments["workspace_size"] = ctypes.c_size_t(needed or 0 if granted is None else granted)
        if granted is None:
            self.arguments["workspace"] = None
            return needed
        whole = max(granted, needed or 0)
        buffer = self.written["workspace"] = self.stack.enter_context(self.runtime.buffer(whole))
        if granted != SPARE:
            self.runtime.fill(buffer.address, POISON, whole)
        self.arguments["workspace"] = buffer.address
        return needed

    def _nulls_of_size_query(self) -> frozenset[str]:
        """The words of arguments that are null where the size is asked for."""
        nulls = {f"{name}_desc" for name in tensors_with("size_query_null_descriptor", self.call.faults)}
        return frozenset(nulls | ({"handle"} if SIZE_QUERY_NULL_HANDLE in self.call.faults else set()))

    def _check_memory(self) -> None:
        """Raise OutOfBounds where the operator wrote to something else than its outputs and workspace."""
        for name, buffer in self.written.items():
            if corruption := self.runtime.corruption(buffer):
                raise OutOfBounds(f"{name}: {corruption}")
        for name, array in self.call.inputs.items():
            if array is not None and not self.runtime.unchanged(self.arguments[name], memory_of(array)):
                raise OutOfBounds(f"input {name!r} was changed")

    def _fetch(self) -> None:
        """Copy the outputs back to the host."""
        for name, array in self.call.outputs.items():
            if array is not None:
                self.runtime.to_host(memory_of(array), self.written[name].address)
