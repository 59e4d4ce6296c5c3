"""The operators' library: handle, descriptors, calls. Every refusing call of it raises StatusError."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from mluops_cli.implementations.base import CannotShow
from mluops_cli.implementations.capi.runtime import Pointer, StatusError, find_function, load_library
from mluops_cli.implementations.capi.symbols import DTYPES, LAYOUTS, LIBRARY, OPERATORS, SPARSE_CONVOLUTION
from schemas.errors import UnavailableError
from schemas.status import STATUS_NAMES
from schemas.tensor_descriptor import Descriptor


class Library:
    """The library with a handle whose queue is given; UnavailableError where that can't be had."""

    def __init__(self, name: str, queue: Pointer) -> None:
        self.name = name
        self._library = load_library(name)
        for function in LIBRARY:
            find_function(self._library, function)
        self._library.mluOpGetErrorString.restype = ctypes.c_char_p
        self.handle = Pointer()
        try:
            self.call("mluOpCreate", ctypes.byref(self.handle))
            self.call("mluOpSetQueue", self.handle, queue)
        except StatusError as error:
            raise UnavailableError(f"capi: {error}") from None

    def has(self, function: str) -> bool:
        """Whether the library exports a function."""
        return hasattr(self._library, function)

    @property
    def operators(self) -> tuple[str, ...]:
        """The operators of the table that the library has."""
        return tuple(op for op, function in OPERATORS.items() if self.has(function.name))

    def call(self, function: str, *arguments: Any) -> None:
        """Call a function; StatusError with the status it returns."""
        if code := find_function(self._library, function)(*arguments):
            said = self._library.mluOpGetErrorString(ctypes.c_int(code))
            text = f" ({said.decode(errors='replace')})" if said else ""
            if code not in STATUS_NAMES:
                raise RuntimeError(f"{function} returned {code}{text}, which is no status")
            raise StatusError(STATUS_NAMES[code], f"{function} returned {code}{text}")

    @contextmanager
    def tensor_descriptor(self, given: Descriptor) -> Iterator[Pointer]:
        """The library's descriptor of a tensor; CannotShow where the C interface has no such dtype or layout."""
        for what, name, known in (("dtype", given.dtype, DTYPES), ("layout", given.layout, LAYOUTS)):
            if name not in known:
                raise CannotShow(f"capi: the C interface has no {what} {name}")
        with self._made("mluOpCreateTensorDescriptor", "mluOpDestroyTensorDescriptor") as made:
            numbers = (ctypes.c_int(LAYOUTS[given.layout]), ctypes.c_int(DTYPES[given.dtype]))
            shape = (ctypes.c_int(len(given.dims)), _ints(given.dims))
            if given.strides is None:
                self.call("mluOpSetTensorDescriptor", made, *numbers, *shape)
            else:
                self.call("mluOpSetTensorDescriptorEx", made, *numbers, *shape, _ints(given.strides))
            yield made

    @contextmanager
    def convolution_descriptor(self, params: Mapping[str, Any]) -> Iterator[Pointer]:
        """The library's descriptor of a sparse convolution."""
        create, destroy = "mluOpCreateSparseConvolutionDescriptor", "mluOpDestroySparseConvolutionDescriptor"
        with self._made(create, destroy) as made:
            values = (params[name] for name in SPARSE_CONVOLUTION)
            arguments = [_ints(value) if isinstance(value, (list, tuple)) else ctypes.c_int(value) for value in values]
            self.call("mluOpSetSparseConvolutionDescriptor", made, *arguments)
            yield made

    @contextmanager
    def _made(self, create: str, destroy: str) -> Iterator[Pointer]:
        made = Pointer()
        self.call(create, ctypes.byref(made))
        try:
            yield made
        finally:
            find_function(self._library, destroy)(made)


def _ints(values: Sequence[int]) -> Any:
    """A C array of int; CannotShow for what an int doesn't hold."""
    if any(not -(2**31) <= value < 2**31 for value in values):
        raise CannotShow(f"capi: the C interface takes int, which can't hold all of {list(values)}")
    return (ctypes.c_int * len(values))(*values)
