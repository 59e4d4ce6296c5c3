"""The preconditions of roi_crop_forward and roi_crop_backward."""

from __future__ import annotations

from typing import ClassVar

from mluops_cli.implementations.preconditions.base import (
    CheckedOperator,
    Descriptors,
    Params,
    expect,
    require,
    sizes,
)
from schemas.status import BAD_PARAM


class RoiCrop(CheckedOperator):
    """Both directions: they differ in which tensor is read."""

    images: ClassVar[str]  # the tensor [B, H, W, C]
    crops: ClassVar[str]  # the tensor [N, OH, OW, C]
    on_empty = BAD_PARAM

    def check(self, described: Descriptors, params: Params) -> None:
        """Refuse, with BAD_PARAM, what section 1.4 excludes."""
        B, H, W, C = sizes(described[self.images], 4)
        N, OH, OW, _ = sizes(described[self.crops], 4)
        expect(described[self.images], "float", (B, H, W, C), "NHWC")
        expect(described[self.crops], "float", (N, OH, OW, C), "NHWC")
        expect(described["grid"], "float", (N, OH, OW, 2))
        require(B == 0 or N % B == 0)


class RoiCropForward(RoiCrop):
    """Images to crops."""

    inputs, outputs = ("input", "grid"), ("output",)
    images, crops = "input", "output"


class RoiCropBackward(RoiCrop):
    """The crops' gradients to those of the images."""

    inputs, outputs = ("grad_output", "grid"), ("grad_input",)
    images, crops = "grad_input", "grad_output"
