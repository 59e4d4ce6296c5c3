"""A call of a device kernel as the runner makes it, from arrays alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mluops_cli.implementations.tiled import kernels
from mluops_cli.implementations.tiled.base import WorkspaceKernel
from mluops_cli.implementations.tiled.onchip import Machine
from schemas.tensor_descriptor import Descriptor

Array = np.ndarray[Any, Any]
SENTINEL = 77
_NAMES = {"float32": "float", "float16": "half", "float64": "double", "int32": "int32", "int64": "int64"}


@dataclass
class Trial:
    """A legal call; run() makes it, or one that differs from it in what the arguments say."""

    op: str
    inputs: dict[str, Array]
    outputs: dict[str, Array]
    params: dict[str, Any] = field(default_factory=dict)
    layouts: dict[str, str] = field(default_factory=dict)

    def descriptors(self) -> dict[str, Descriptor | None]:
        """Dense descriptors of all tensors."""
        tensors = {**self.inputs, **self.outputs}
        return {
            name: Descriptor(self.layouts.get(name, "ARRAY"), _NAMES[array.dtype.name], array.shape)
            for name, array in tensors.items()
        }

    def run(
        self,
        machine: Machine | None = None,
        *,
        describe: Mapping[str, Descriptor | None] | None = None,
        null: tuple[str, ...] = (),
        params: dict[str, Any] | None = None,
        handle: object | None = "handle",
        workspace: int | None = 0,
    ) -> Any:
        """The kernel's answer; workspace: bytes it gets beyond those it asks for, None for a null pointer."""
        kernel = kernels()[self.op](machine)
        inputs = {name: None if name in null else read_only(array) for name, array in self.inputs.items()}
        outputs = {name: None if name in null else array for name, array in self.outputs.items()}
        given = {**self.params, **(params or {})}
        if isinstance(kernel, WorkspaceKernel):
            given["workspace"] = None
            # 0x3C bytes read as positive integers and plain floats: stale memory that could pass for an answer.
            if workspace is not None:
                size = np.zeros(1, np.uint64)
                assert kernel.workspace_size(self.op, self.inputs, self.outputs, self.params, size) == "SUCCESS"
                given["workspace"] = np.full(int(size[0]) + workspace, 0x3C, np.uint8)
        return kernel(self.op, inputs, outputs, given, {**self.descriptors(), **(describe or {})}, handle)


def read_only(array: Array) -> Array:
    """A view that can't be written, as inputs are handed over."""
    view: Array = array.view()
    view.flags.writeable = False
    return view


def unwritten(shape: tuple[int, ...], dtype: Any = np.float32) -> Array:
    """An output buffer full of a value that no answer holds."""
    array: Array = np.full(shape, SENTINEL, dtype)
    return array


MACHINES = (
    Machine(),
    Machine(nram=4096, clusters=1, cores=1),
    Machine(nram=2048, clusters=3, cores=2),
    Machine(nram=1 << 16, clusters=8, cores=5),
)
