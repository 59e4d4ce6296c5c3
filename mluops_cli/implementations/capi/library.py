"""The operators' library: handle, descriptors, calls. A function that refuses raises StatusError."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from mluops_cli.implementations.base import BadAnswer, CannotShow
from mluops_cli.implementations.capi.runtime import Pointer, StatusError, find_function, load_library
from mluops_cli.implementations.capi.symbols import (
    DTYPES,
    LAYOUTS,
    LIBRARY,
    SPARSE_CONVOLUTION,
    SPARSE_CONVOLUTION_PARAMS,
    WIDE_SETTERS,
)
from schemas.errors import UnavailableError
from schemas.status import STATUS_NAMES
from schemas.tensor_descriptor import Descriptor


class Library:
    """The library with a handle on the given queue; UnavailableError where there is no such library or handle."""

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
        except (StatusError, BadAnswer) as error:
            raise UnavailableError(f"capi: {error}") from None

    def has(self, function: str) -> bool:
        """Return whether the library exports a function."""
        return hasattr(self._library, function)

    def call(self, function: str, *arguments: Any) -> None:
        """Call a function; StatusError with the status it returns, BadAnswer for a number that is no status."""
        if code := find_function(self._library, function)(*arguments):
            error = self._library.mluOpGetErrorString(ctypes.c_int(code))
            text = f" ({error.decode(errors='replace')})" if error else ""
            if code not in STATUS_NAMES:
                raise BadAnswer(f"{function} returned {code}{text}, which is no status")
            raise StatusError(STATUS_NAMES[code], f"{function} returned {code}{text}")

    def close(self) -> None:
        """Destroy the handle."""
        with suppress(StatusError, BadAnswer):
            self.call("mluOpDestroy", self.handle)

    @contextmanager
    def tensor_descriptor(self, given: Descriptor) -> Iterator[Pointer]:
        """Yield the library's descriptor of a tensor; CannotShow for what the interface can't express."""
        for what, name, known in (("dtype", given.dtype, DTYPES), ("layout", given.layout, LAYOUTS)):
            if name not in known:
                raise CannotShow(f"capi: the C interface has no {what} {name}")
        setter = "mluOpSetTensorDescriptor" if given.strides is None else "mluOpSetTensorDescriptorEx"
        integer: type[ctypes.c_int | ctypes.c_int64] = ctypes.c_int
        if self.has(WIDE_SETTERS[setter]):
            setter, integer = WIDE_SETTERS[setter], ctypes.c_int64
        numbers = [ctypes.c_int(each) for each in (LAYOUTS[given.layout], DTYPES[given.dtype], len(given.dims))]
        sizes = [_array(each, integer) for each in (given.dims, given.strides) if each is not None]
        with self._made("mluOpCreateTensorDescriptor", "mluOpDestroyTensorDescriptor") as made:
            self.call(setter, made, *numbers, *sizes)
            yield made

    @contextmanager
    def convolution_descriptor(self, params: Mapping[str, Any]) -> Iterator[Pointer]:
        """Yield the library's descriptor of a sparse convolution."""
        create, destroy, setter = SPARSE_CONVOLUTION
        values = [params[name] for name in SPARSE_CONVOLUTION_PARAMS]
        arguments = [
            _array(value, ctypes.c_int) if isinstance(value, (list, tuple)) else as_int(value) for value in values
        ]
        with self._made(create, destroy) as made:
            self.call(setter, made, *arguments)
            yield made

    @contextmanager
    def _made(self, create: str, destroy: str) -> Iterator[Pointer]:
        made = Pointer()
        self.call(create, ctypes.byref(made))
        try:
            yield made
        finally:
            find_function(self._library, destroy)(made)


def as_argument(value: float) -> ctypes.c_int | ctypes.c_float | ctypes.c_bool:
    """Return a parameter as C passes it: bool, float or int; CannotShow where an int can't hold it."""
    if isinstance(value, bool):
        return ctypes.c_bool(value)
    return ctypes.c_float(value) if isinstance(value, float) else as_int(value)


def as_int(value: int) -> ctypes.c_int:
    """Return the value as a C int; CannotShow where an int can't hold it."""
    _require_fit([value], ctypes.c_int)
    return ctypes.c_int(value)


def _array(values: Sequence[int], integer: type[ctypes.c_int | ctypes.c_int64]) -> Any:
    """Return the values as a C array; CannotShow where its integers can't hold them."""
    _require_fit(values, integer)
    return (integer * len(values))(*values)


def _require_fit(values: Sequence[int], integer: type[ctypes.c_int | ctypes.c_int64]) -> None:
    limit = 1 << (8 * ctypes.sizeof(integer) - 1)
    if not all(-limit <= value < limit for value in values):
        name = "int" if integer is ctypes.c_int else "int64_t"
        raise CannotShow(f"capi: the C interface takes {name}, which can't hold all of {list(values)}")
