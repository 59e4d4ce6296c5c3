"""A call as a message to the kernel process: what Call holds, with places in shared memory instead of arrays."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np

from generators.contracts.faults import Fault
from mluops_cli.execution.kernel_process.shared_memory import AttachedMemory, SharedMemory
from mluops_cli.implementations.base import Array, Call
from mluops_cli.implementations.public_node import public_node
from schemas.protos import messages as proto
from schemas.tensor_descriptor import Descriptor

CALL, FLUSH = "call", "flush"


class RequestWriter:
    """Writes the calls of one case after the other, without the case file; the Node message is made once per case."""

    def __init__(self, memory: SharedMemory) -> None:
        self._memory = memory
        self._node: Any = None
        self._written: str | None = None

    def __call__(self, call: Call) -> dict[str, Any]:
        """The request as plain JSON, without its token."""
        if call.node is not self._node:
            self._node = call.node
            self._written = None if call.node is None else _written(call.node)
        return {
            "what": CALL,
            "op": call.op,
            "inputs": self._places(call.inputs),
            "outputs": self._places(call.outputs),
            "params": plain(call.params),
            "descriptors": {name: None if each is None else _told(each) for name, each in call.descriptors.items()},
            "faults": [str(fault) for fault in call.faults],
            "node": self._written,
        }

    def _places(self, arrays: Mapping[str, Array | None]) -> dict[str, Any]:
        return {name: None if each is None else self._memory.place_of(each) for name, each in arrays.items()}


def read_request(request: Mapping[str, Any], memory: AttachedMemory) -> Call:
    """The call of a request."""

    def arrays(role: str) -> dict[str, Array | None]:
        return {
            name: None if place is None else memory.array(place, writeable=role == "outputs")
            for name, place in request[role].items()
        }

    descriptors = {
        name: None if given is None else Descriptor(given[0], given[1], tuple(given[2]), given[3] and tuple(given[3]))
        for name, given in request["descriptors"].items()
    }
    written = request["node"]
    node = None if written is None else proto.Node.FromString(base64.b64decode(written))
    faults = tuple(map(Fault.parse, request["faults"]))
    return Call(request["op"], arrays("inputs"), arrays("outputs"), request["params"], descriptors, faults, None, node)


def plain(value: Any) -> Any:
    """A value as JSON has it: numbers of NumPy are those of Python, tuples are lists."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def _told(descriptor: Descriptor) -> list[Any]:
    return [descriptor.layout, descriptor.dtype, list(descriptor.dims), descriptor.strides and list(descriptor.strides)]


def _written(node: Any) -> str:
    return base64.b64encode(public_node(node).SerializePartialToString()).decode()
