"""The preconditions of roialign_forward."""

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


class RoialignForward(CheckedOperator):
    """Images and boxes to the means of the boxes' bins."""

    inputs, outputs = ("input", "boxes"), ("output",)

    def check(self, described: Descriptors, params: Params) -> None:
        """Refuse, with BAD_PARAM, what the interface excludes."""
        height, width = params["pooled_height"], params["pooled_width"]
        require(height >= 1 and width >= 1 and params["spatial_scale"] > 0)
        B, H, W, C = sizes(described["input"], 4)
        boxes, _ = sizes(described["boxes"], 2)
        expect(described["input"], "float", (B, H, W, C), "NHWC")
        expect(described["boxes"], "float", (boxes, 5))
        expect(described["output"], "float", (boxes, height, width, C), "NHWC")

    def empty(self, described: Descriptors, given: Mapping[str, Array | None]) -> Result:
        """Return SUCCESS without boxes, BAD_PARAM without an image."""
        return BAD_PARAM if described["input"].elements == 0 else SUCCESS
