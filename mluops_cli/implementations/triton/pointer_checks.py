"""Checks of the pointers that a kernel uses in Triton's interpreter: one outside of all tensors is named.

The interpreter reads and writes whatever address it is given. Its builder makes every access through four methods, and
its executor gets every tensor of a launch; where a release lacks one of these names, nothing is checked.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
import triton
from triton.runtime import interpreter

from mluops_cli.implementations.base import OutOfBounds
from schemas.suggest import counted

_ACCESSES: Final = {  # method of the builder -> what it does, position of the pointers and of the mask
    "create_masked_load": ("reads", 0, 1),
    "create_masked_store": ("writes", 0, 2),
    "create_atomic_rmw": ("adds to", 1, 3),
    "create_atomic_cas": ("writes", 0, None),
}
_OWN: Final = (str(Path(triton.__file__).parent), __file__)


class _Ranges:
    """The memory of one call: start and end of every tensor by name, of those that launches add too."""

    def __init__(self, tensors: Mapping[str, torch.Tensor]) -> None:
        self._names: dict[tuple[int, int], str] = {}
        self.found: OutOfBounds | None = None
        for name, tensor in tensors.items():
            self.add(name, tensor)

    def add(self, name: str, tensor: torch.Tensor) -> None:
        """Add the storage of a tensor that is not known yet."""
        storage = tensor.untyped_storage()
        start = storage.data_ptr()
        self._names.setdefault((start, start + storage.nbytes()), name)

    def check(self, does: str, addresses: Any, width: int) -> None:
        """Raise OutOfBounds where an access of width bytes at one of the addresses lies outside of every tensor."""
        spans = np.array(sorted(self._names), np.int64)
        at = np.searchsorted(spans[:, 0], addresses, side="right") - 1
        outside = (at < 0) | (addresses + width > spans[at, 1])
        if outside.any():
            self.found = OutOfBounds(f"{_line()}: {does} {self._place(int(addresses[outside][0]), width)}")
            raise self.found

    def _place(self, address: int, width: int) -> str:
        """Tell where an address lies, from the nearest tensor."""
        distances = {
            span: span[0] - address if address < span[0] else address + width - span[1] for span in self._names
        }
        span = min(distances, key=lambda each: distances[each])
        name = self._names[span]
        if address < span[0]:
            return f"{counted(span[0] - address, 'byte')} before the start of {name}"
        behind = max(0, address - span[1])
        return f"{counted(behind, 'byte')} behind the end of {name}" if behind else f"directly behind the end of {name}"


_current: list[_Ranges] = []


@contextmanager
def checked_pointers(tensors: Mapping[str, torch.Tensor]) -> Iterator[None]:
    """Check the accesses of kernels launched in the block; OutOfBounds for the first outside of all tensors.

    tensors: those of the call by name. Tensors that a launch is given besides, such as scratch memory, are known too.
    """
    _install()
    ranges = _Ranges(tensors)
    _current.append(ranges)
    try:
        yield
    except Exception as error:  # the interpreter wraps what is raised in it
        if ranges.found is None:
            raise
        raise ranges.found from error
    finally:
        _current.pop()
    if ranges.found is not None:
        raise ranges.found


def _install() -> None:
    """Put the checks before the builder's methods, once per process."""
    builder: Any = getattr(interpreter, "interpreter_builder", None)
    executor: Any = getattr(interpreter, "GridExecutor", None)
    complete = all(hasattr(builder, name) for name in _ACCESSES) and hasattr(executor, "_init_args_hst")
    if not complete or hasattr(builder, "checked_by_mluops"):
        return
    builder.checked_by_mluops = True
    for name, access in _ACCESSES.items():
        setattr(builder, name, _checking(getattr(builder, name), *access))
    made = executor._init_args_hst

    def with_ranges(self: Any, args: Any, kwargs: Any) -> Any:
        if _current:
            for tensor in (*args, *kwargs.values()):
                if isinstance(tensor, torch.Tensor):
                    _current[-1].add("a tensor of the launch", tensor)
        return made(self, args, kwargs)

    executor._init_args_hst = with_ranges


def _checking(method: Callable[..., Any], does: str, pointers: int, mask: int | None) -> Callable[..., Any]:
    def checked(*arguments: Any, **more: Any) -> Any:
        if _current:
            pointer = arguments[pointers]
            addresses = np.asarray(pointer.data).astype(np.int64)
            if mask is not None and (chosen := arguments[mask]) is not None:
                addresses = addresses[np.broadcast_to(np.asarray(chosen.data, bool), addresses.shape)]
            _current[-1].check(does, addresses.reshape(-1), pointer.get_element_ty().primitive_bitwidth // 8 or 1)
        return method(*arguments, **more)

    return checked


def _line() -> str:
    """File and line of the kernel's statement that is being interpreted."""
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
