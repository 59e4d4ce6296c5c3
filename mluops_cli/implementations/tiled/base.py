"""What all device kernels share: the machine they run on, and the workspace protocol."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from mluops_cli.implementations.base import Array
from mluops_cli.implementations.preconditions.base import CheckedOperator, Params, Tensors, require
from mluops_cli.implementations.tiled.onchip import Machine
from schemas.status import BAD_PARAM, SUCCESS


class Kernel(CheckedOperator):
    """One operator on the device; run is the algorithm of the design document's section 3."""

    def __init__(self, machine: Machine | None = None) -> None:
        self.machine = machine or Machine()


class WorkspaceKernel(Kernel):
    """A kernel that works in memory the caller provides as params["workspace"], a flat uint8 array."""

    @abstractmethod
    def workspace_bytes(self, tensors: Tensors, params: Params) -> int:
        """Bytes of workspace for tensors of these shapes and dtypes."""

    def workspace_size(
        self,
        op: str,
        inputs: Mapping[str, Array | None],
        outputs: Mapping[str, Array | None],
        params: Params,
        size: Array | None,
    ) -> str:
        """Write the bytes needed to size[0]; BAD_PARAM where size is a null pointer."""
        tensors = {name: array for name, array in {**inputs, **outputs}.items() if array is not None}
        if size is None or not {*self.inputs, *self.outputs} <= tensors.keys():
            return BAD_PARAM
        size[0] = self.workspace_bytes(tensors, params)
        return SUCCESS

    def check_workspace(self, tensors: Tensors, params: Params) -> None:
        """Refuse a missing or short workspace, BAD_PARAM."""
        workspace = params.get("workspace")
        needed = self.workspace_bytes(tensors, params)
        require(needed == 0 or (workspace is not None and workspace.nbytes >= needed))


def regions(workspace: Array, *wanted: tuple[int, Any]) -> list[Array]:
    """Consecutive flat arrays of (elements, dtype) inside the workspace."""
    found, start = [], 0
    for elements, dtype in wanted:
        stop = start + elements * np.dtype(dtype).itemsize
        found.append(workspace[start:stop].view(dtype))
        start = stop
    return found
