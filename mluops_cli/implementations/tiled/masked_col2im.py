"""masked_col2im_forward on the device: the way of masked_im2col_forward back, a whole pixel of channels per mask."""

from __future__ import annotations

from mluops_cli.implementations.preconditions import masked_col2im as checks
from mluops_cli.implementations.preconditions.base import Params, Tensors
from mluops_cli.implementations.tiled.base import WorkspaceKernel, regions
from mluops_cli.implementations.tiled.onchip import span, split, transpose
from schemas.status import SUCCESS


class MaskedCol2imForward(WorkspaceKernel, checks.MaskedCol2imForward):
    """Channels lie last in the workspace, so that a mask is one copy; columns and image are transposed."""

    def workspace_bytes(self, tensors: Tensors, params: Params) -> int:
        """The columns and the image once each; the transposes pass through the chip."""
        columns = tensors["col"].nbytes
        return columns + tensors["im"].nbytes if columns else 0

    def run(self, tensors: Tensors, params: Params) -> str:
        """Transpose the columns, zero the image, copy the masks, transpose the image."""
        col, im = tensors["col"], tensors["im"][0]
        C, H, W = im.shape
        masks = col.shape[1]
        columns, image = regions(params["workspace"], (col.size, col.dtype), (im.size, im.dtype))
        columns, image = columns.reshape(masks, C), image.reshape(H, W, C)
        chip = self.machine.core()

        transpose(col, columns, chip)
        image[...] = 0
        for core in split(range(masks), self.machine.tasks):
            rows = tensors["mask_h_idx"][span(core)].tolist()
            places = tensors["mask_w_idx"][span(core)].tolist()
            for mask, y, x in zip(core, rows, places, strict=True):
                image[y, x] = columns[mask]
        transpose(image.reshape(H * W, C), im.reshape(C, H * W), chip)
        return SUCCESS


KERNELS = {"masked_col2im_forward": MaskedCol2imForward}
