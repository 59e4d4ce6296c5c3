"""The preconditions of psamask_forward and psamask_backward."""

from __future__ import annotations

from typing import ClassVar, Final

from mluops_cli.implementations.preconditions.base import (
    CheckedOperator,
    Descriptors,
    Params,
    expect,
    require,
    sizes,
)
from schemas.status import SUCCESS

COLLECT: Final = 0
DISTRIBUTE: Final = 1


class Psamask(CheckedOperator):
    """Both directions: they differ in which tensor is read."""

    masked: ClassVar[str]  # the tensor with h_mask*w_mask channels
    full: ClassVar[str]  # the tensor with H*W channels
    on_empty = SUCCESS

    def check(self, described: Descriptors, params: Params) -> None:
        """Refuse, with BAD_PARAM, what section 1.4 excludes."""
        h_mask, w_mask = params["h_mask"], params["w_mask"]
        require(params["psa_type"] in (COLLECT, DISTRIBUTE) and h_mask >= 1 and w_mask >= 1)
        N, H, W, _ = sizes(described[self.masked], 4)
        expect(described[self.masked], "float", (N, H, W, h_mask * w_mask), "NHWC")
        expect(described[self.full], "float", (N, H, W, H * W), "NHWC")


class PsamaskForward(Psamask):
    """x to y."""

    inputs, outputs = ("x",), ("y",)
    masked, full = "x", "y"


class PsamaskBackward(Psamask):
    """dy to dx."""

    inputs, outputs = ("dy",), ("dx",)
    masked, full = "dx", "dy"
