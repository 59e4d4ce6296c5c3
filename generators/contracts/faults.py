"""Invalid-call faults: what a caller omits from a call besides wrong descriptors and parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from schemas.errors import InputError
from schemas.suggest import did_you_mean

# Kinds of faults of one tensor, then of the whole call; the text form of a kind is its own word.
TENSOR_FAULTS: Final[Mapping[str, str]] = {
    "null_descriptor": "the descriptor of {tensor} is null",
    "null_pointer": "the data pointer of the non-empty tensor {tensor} is null",
    "size_query_null_descriptor": "the descriptor of {tensor} is null where the workspace size is asked for",
}
CALL_FAULTS: Final[Mapping[str, str]] = {
    "null_handle": "the handle is null",
    "null_parameters": "the descriptor that holds the parameters is null",
    "size_query_null_handle": "the handle is null where the workspace size is asked for",
    "null_workspace_size": "the pointer that takes the workspace size is null",
    "workspace:null": "the workspace is null",
    "workspace:short": "the workspace is smaller than asked for",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One invalid-call fault: a kind of TENSOR_FAULTS with a tensor's name, or a kind of CALL_FAULTS.

    Kinds with a tensor: null_descriptor, null_pointer, size_query_null_descriptor. Kinds of the call: null_handle,
    null_parameters, size_query_null_handle, null_workspace_size, workspace:null, workspace:short. str() gives the text
    form of case files, manifests and records: `null_handle`, `null_pointer:x`.
    """

    kind: str
    tensor: str = ""

    @classmethod
    def parse(cls, text: str) -> Fault:
        """The fault of a text form; InputError for any other text."""
        if text in CALL_FAULTS:
            return cls(text)
        kind, _, tensor = text.partition(":")
        if kind in TENSOR_FAULTS and tensor:
            return cls(kind, tensor)
        known = (*CALL_FAULTS, *(f"{kind}:TENSOR" for kind in TENSOR_FAULTS))
        raise InputError(f"unknown fault {text!r}{did_you_mean(text, known)}")

    def __str__(self) -> str:
        return f"{self.kind}:{self.tensor}" if self.tensor else self.kind

    @property
    def text(self) -> str:
        """The fault as a sentence part, such as `the handle is null`."""
        return CALL_FAULTS.get(self.kind) or TENSOR_FAULTS[self.kind].format(tensor=self.tensor)

    @property
    def of_workspace(self) -> bool:
        """Whether the workspace itself is null or too short."""
        return self in (WORKSPACE_NULL, WORKSPACE_SHORT)

    @property
    def of_size_query(self) -> bool:
        """Whether the call is right, but for the question for the size of its workspace."""
        return self == NULL_WORKSPACE_SIZE or self.kind.startswith("size_query_")


NULL_HANDLE: Final = Fault("null_handle")
NULL_PARAMETERS: Final = Fault("null_parameters")
SIZE_QUERY_NULL_HANDLE: Final = Fault("size_query_null_handle")
NULL_WORKSPACE_SIZE: Final = Fault("null_workspace_size")
WORKSPACE_NULL: Final = Fault("workspace:null")
WORKSPACE_SHORT: Final = Fault("workspace:short")


def null_descriptor(tensor: str) -> Fault:
    """The fault that the tensor's descriptor is null."""
    return Fault("null_descriptor", tensor)


def null_pointer(tensor: str) -> Fault:
    """The fault that the tensor's data pointer is null."""
    return Fault("null_pointer", tensor)


def size_query_null_descriptor(tensor: str) -> Fault:
    """The fault that the tensor's descriptor is null where the workspace size is asked for."""
    return Fault("size_query_null_descriptor", tensor)


def tensors_with(kind: str, faults: Iterable[Fault]) -> frozenset[str]:
    """The names of the tensors that have a fault of this kind."""
    return frozenset(fault.tensor for fault in faults if fault.kind == kind)
