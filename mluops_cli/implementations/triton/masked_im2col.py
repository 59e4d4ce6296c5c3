"""masked_im2col_forward in Triton: a tile is some rows of data_col times some masks, written along the masks.

Values are copied as integers of their size, so that NaNs keep their bits.
"""

from __future__ import annotations

import triton
import triton.language as tl

from mluops_cli.implementations.preconditions import masked_im2col as checks
from mluops_cli.implementations.preconditions.base import Params, Result, Tensors
from mluops_cli.implementations.triton.tiles import bits_of, power_of_two
from schemas.status import SUCCESS

_TILE = 1024  # elements
_MASKS = 256  # of a tile, at most


@triton.jit
def _columns(
    feature, mask_h, mask_w, columns, rows, M, H, W, kernel_h, kernel_w, pad_h, pad_w,
    ROWS: tl.constexpr, MASKS: tl.constexpr,
):  # fmt: skip
    """Row (c*kernel_h + i)*kernel_w + j of mask m is feature[c, mask_h[m] - pad_h + i, mask_w[m] - pad_w + j], or 0."""
    blocks = tl.cdiv(M, MASKS)
    row = (tl.program_id(0) // blocks) * ROWS + tl.arange(0, ROWS)[:, None]
    mask = (tl.program_id(0) % blocks) * MASKS + tl.arange(0, MASKS)[None, :]
    channel = row // kernel_w // kernel_h
    y = tl.load(mask_h + mask, mask=mask < M, other=0).to(tl.int64) - pad_h + row // kernel_w % kernel_h
    x = tl.load(mask_w + mask, mask=mask < M, other=0).to(tl.int64) - pad_w + row % kernel_w
    held = (row < rows) & (mask < M)
    inside = held & (y >= 0) & (y < H) & (x >= 0) & (x < W)
    place = tl.where(inside, (channel.to(tl.int64) * H + y) * W + x, 0)
    tl.store(columns + row.to(tl.int64) * M + mask, tl.load(feature + place, mask=inside, other=0), mask=held)


class MaskedIm2colForward(checks.MaskedIm2colForward):
    """One pass over data_col."""

    def run(self, tensors: Tensors, params: Params) -> Result:
        """Copy every tap of every mask."""
        feature, columns = bits_of(tensors["feature"]), bits_of(tensors["data_col"])
        rows, M = columns.shape
        wide = power_of_two(M, _MASKS)
        high = power_of_two(rows, _TILE // wide)
        sizes = [params[name] for name in ("kernel_h", "kernel_w", "pad_h", "pad_w")]
        masks = tensors["mask_h_idx"], tensors["mask_w_idx"]
        grid = (triton.cdiv(rows, high) * triton.cdiv(M, wide),)
        _columns[grid](feature, *masks, columns, rows, M, *feature.shape[2:], *sizes, high, wide)
        return SUCCESS
