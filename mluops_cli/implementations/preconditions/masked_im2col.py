"""The preconditions of masked_im2col_forward."""

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
from schemas.status import BAD_PARAM, SUCCESS


class MaskedIm2colForward(CheckedOperator):
    """A feature to the columns at masked positions."""

    inputs, outputs = ("feature", "mask_h_idx", "mask_w_idx"), ("data_col",)

    def check(self, described: Descriptors, params: Params) -> None:
        """Refuse, with BAD_PARAM, what section 1.4 excludes."""
        kernel_h, kernel_w = params["kernel_h"], params["kernel_w"]
        require(kernel_h > 0 and kernel_w > 0)
        feature = described["feature"]
        _, C, H, W = sizes(feature, 4)
        (masks,) = sizes(described["mask_h_idx"], 1)
        require(feature.dtype in ("half", "float"))
        expect(feature, feature.dtype, (1, C, H, W), "NCHW")
        expect(described["mask_h_idx"], "int32", (masks,))
        expect(described["mask_w_idx"], "int32", (masks,))
        expect(described["data_col"], feature.dtype, (C * kernel_h * kernel_w, masks))

    def empty(self, described: Descriptors, given: Mapping[str, Array | None]) -> Result:
        """Return SUCCESS without masks, BAD_PARAM without a feature (1.1)."""
        return BAD_PARAM if described["feature"].elements == 0 else SUCCESS
