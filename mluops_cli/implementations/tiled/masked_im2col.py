"""masked_im2col_forward on the device; source: design document masked_im2col_forward, sections 3.1 to 3.4."""

from __future__ import annotations

from mluops_cli.implementations.base import Array
from mluops_cli.implementations.preconditions import masked_im2col as checks
from mluops_cli.implementations.preconditions.base import Params, Tensors
from mluops_cli.implementations.tiled.base import WorkspaceKernel, regions
from mluops_cli.implementations.tiled.onchip import span, split, transpose
from schemas.status import SUCCESS


class MaskedIm2colForward(WorkspaceKernel, checks.MaskedIm2colForward):
    """Masks are copied whole rows of channels at a time, so feature and columns are transposed before and after."""

    def workspace_bytes(self, tensors: Tensors, params: Params) -> int:
        """The feature and the columns once each (3.4); the transposes need none, they pass through the chip."""
        columns = tensors["data_col"].nbytes
        return tensors["feature"].nbytes + columns if columns else 0

    def run(self, tensors: Tensors, params: Params) -> str:
        """Transpose the feature, zero the columns, copy the masks, transpose the columns (3.1, steps 1 to 4)."""
        feature, data_col = tensors["feature"][0], tensors["data_col"]
        C, H, W = feature.shape
        kernel_h, kernel_w = params["kernel_h"], params["kernel_w"]
        masks = data_col.shape[1]
        wanted = (feature.size, feature.dtype), (data_col.size, data_col.dtype)
        image, columns = regions(params["workspace"], *wanted)
        image, columns = image.reshape(H, W, C), columns.reshape(masks, kernel_h, kernel_w, C)
        chip = self.machine.core()

        transpose(feature.reshape(C, H * W), image.reshape(H * W, C), chip)
        columns[...] = 0
        for core in split(range(masks), self.machine.tasks):
            top = tensors["mask_h_idx"][span(core)].tolist()  # Python integers: no sum of them overflows
            left = tensors["mask_w_idx"][span(core)].tolist()
            for mask, y, x in zip(core, top, left, strict=True):
                _copy(image, columns[mask], y - params["pad_h"], x - params["pad_w"])
        taps = kernel_h * kernel_w
        for tap in range(taps):
            transpose(columns.reshape(masks, taps, C)[:, tap], data_col.reshape(C, taps, masks)[:, tap], chip)
        return SUCCESS


def _copy(image: Array, column: Array, top: int, left: int) -> None:
    """Copy the part of a mask that lies inside the image; top and left are the mask's first row and column."""
    height, width, _ = image.shape
    kernel_h, kernel_w, _ = column.shape
    rows = range(max(0, top), min(height, top + kernel_h))
    columns = range(max(0, left), min(width, left + kernel_w))
    if rows and columns:
        inside = slice(rows.start - top, rows.stop - top), slice(columns.start - left, columns.stop - left)
        column[inside] = image[span(rows), span(columns)]


KERNELS = {"masked_im2col_forward": MaskedIm2colForward}
