"""The preconditions of masked_col2im_forward."""

from __future__ import annotations

from collections.abc import Mapping

from mluops_cli.implementations.base import Array
from mluops_cli.implementations.preconditions.base import (
    CheckedOperator,
    Descriptors,
    Params,
    Result,
    expect,
    require,
    sizes,
)
from schemas.status import SUCCESS


class MaskedCol2imForward(CheckedOperator):
    """Columns at masked positions to an image."""

    inputs, outputs = ("col", "mask_h_idx", "mask_w_idx"), ("im",)

    def check(self, described: Descriptors, params: Params) -> None:
        """Refuse, with BAD_PARAM, what the interface excludes."""
        col = described["col"]
        C, masks = sizes(col, 2)
        _, _, H, W = sizes(described["im"], 4)
        require(col.dtype in ("half", "float"))
        expect(described["im"], col.dtype, (1, C, H, W), "NCHW")
        expect(described["mask_h_idx"], "int32", (masks,))
        expect(described["mask_w_idx"], "int32", (masks,))

    def empty(self, described: Descriptors, given: Mapping[str, Array | None]) -> Result:
        """Return BAD_PARAM without an image; without masks it is zeroed."""
        image = given.get("im")
        require(described["im"].elements > 0 and image is not None)
        if image is not None:
            image[...] = 0
        return SUCCESS
