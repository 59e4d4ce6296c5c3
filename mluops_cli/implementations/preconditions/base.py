"""Operators that check their arguments before they compute: the order of the checks, and how a call is refused.

Order: descriptors, the operator's own rules, strides, large tensors, zero elements, data pointers, workspace.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import numpy as np

from mluops_cli.implementations.base import Array
from schemas.status import BAD_PARAM, NOT_SUPPORTED
from schemas.tensor_descriptor import Descriptor, dense_strides

Descriptors = Mapping[str, Descriptor]
Tensors = Mapping[str, Array]
Params = Mapping[str, Any]
Result = str | dict[str, Any]  # a status, or a status with scalars

_LARGE: Final = 2**31  # elements


class RefusedError(Exception):
    """A call that the operator refuses, with the status it answers."""

    def __init__(self, status: str) -> None:
        super().__init__(status)
        self.status = status


def require(holds: bool, status: str = BAD_PARAM) -> None:
    """RefusedError with the status unless the condition holds."""
    if not holds:
        raise RefusedError(status)


def sizes(descriptor: Descriptor, rank: int) -> tuple[int, ...]:
    """Return the dims of a tensor that must have this rank; refuses with BAD_PARAM."""
    require(len(descriptor.dims) == rank)
    return tuple(descriptor.dims)


def expect(descriptor: Descriptor, dtype: str, dims: tuple[int, ...], layout: str | None = None) -> None:
    """Refuse a tensor of another dtype, layout (None: any) or shape, with BAD_PARAM."""
    require(descriptor.dtype == dtype and layout in (None, descriptor.layout) and tuple(descriptor.dims) == dims)


class CheckedOperator(ABC):
    """One operator of a bundled implementation, called as a `python:` callable is."""

    inputs: ClassVar[tuple[str, ...]]
    outputs: ClassVar[tuple[str, ...]]
    on_empty: ClassVar[str]  # the status where a tensor has no elements

    def __call__(
        self,
        op: str,
        inputs: Mapping[str, Array | None],
        outputs: Mapping[str, Array | None],
        params: Params,
        descriptors: Mapping[str, Descriptor | None],
        handle: object | None,
    ) -> Result:
        """Check the arguments, then run; return the status, with scalar results where the operator has some."""
        given = {**inputs, **outputs}
        try:
            require(handle is not None)
            described = self._described(descriptors)
            self.check(described, params)
            require(all(map(_dense, described.values())), NOT_SUPPORTED)
            require(all(each.elements < _LARGE for each in described.values()), NOT_SUPPORTED)
            if any(each.elements == 0 for each in described.values()):
                return self.empty(described, given)
            tensors = _pointers(given, described)
            self.check_workspace(tensors, params)
            with np.errstate(all="ignore"):  # devices raise no floating-point exceptions
                return self.run(tensors, params)
        except RefusedError as refused:
            return refused.status

    def _described(self, descriptors: Mapping[str, Descriptor | None]) -> dict[str, Descriptor]:
        described = {name: descriptors.get(name) for name in (*self.inputs, *self.outputs)}
        require(None not in described.values())
        return {name: each for name, each in described.items() if each is not None}

    @abstractmethod
    def check(self, described: Descriptors, params: Params) -> None:
        """Refuse parameters, dtypes, layouts, ranks and sizes that the design document excludes (1.4)."""

    def empty(self, described: Descriptors, given: Mapping[str, Array | None]) -> Result:
        """Return the answer to a call in which some tensor has no elements."""
        return self.on_empty

    def check_workspace(self, tensors: Tensors, params: Params) -> None:
        """Refuse a missing or short workspace, where the operator needs one."""
        return

    @abstractmethod
    def run(self, tensors: Tensors, params: Params) -> Result:
        """Compute the outputs of a call that passed the checks."""


def _dense(descriptor: Descriptor) -> bool:
    if descriptor.strides is None:
        return True
    dense = dense_strides(descriptor.dims)
    sizes = zip(descriptor.dims, descriptor.strides, dense, strict=True)
    return all(size == 1 or given == stride for size, given, stride in sizes)


def _pointers(given: Mapping[str, Array | None], described: Descriptors) -> Tensors:
    """Return the tensors' memory; refuses a null pointer with BAD_PARAM."""
    require(all(given.get(name) is not None for name in described))
    return {name: array for name, array in given.items() if array is not None}
