"""masked_col2im_forward in Triton: a tile is some channels of col times some masks, read along the masks.

Values are copied as integers of their size, so that NaNs keep their bits.
"""

from __future__ import annotations

import triton
import triton.language as tl

from mluops_cli.implementations.preconditions import masked_col2im as checks
from mluops_cli.implementations.preconditions.base import Params, Result, Tensors
from mluops_cli.implementations.triton.tiles import bits_of, power_of_two
from schemas.status import SUCCESS

_TILE = 1024  # elements
_MASKS = 256  # of a tile, at most


@triton.jit
def _scatter(
    col, mask_h, mask_w, image, C, M, H, W,
    CHANNELS: tl.constexpr, MASKS: tl.constexpr,
):  # fmt: skip
    """Write col[c, m] to image[c, mask_h[m], mask_w[m]]."""
    blocks = tl.cdiv(M, MASKS)
    channel = ((tl.program_id(0) // blocks) * CHANNELS + tl.arange(0, CHANNELS)[:, None]).to(tl.int64)
    mask = (tl.program_id(0) % blocks) * MASKS + tl.arange(0, MASKS)[None, :]
    y = tl.load(mask_h + mask, mask=mask < M, other=0)
    x = tl.load(mask_w + mask, mask=mask < M, other=0)
    held = (channel < C) & (mask < M)
    values = tl.load(col + channel * M + mask, mask=held, other=0)
    tl.store(image + (channel * H + y) * W + x, values, mask=held)


class MaskedCol2imForward(checks.MaskedCol2imForward):
    """One pass over col, after the image is set to 0; positions differ, so that no write meets another."""

    def run(self, tensors: Tensors, params: Params) -> Result:
        """Copy every column."""
        col, image = bits_of(tensors["col"]), bits_of(tensors["im"])
        image[...] = 0
        C, M = col.shape
        wide = power_of_two(M, _MASKS)
        high = power_of_two(C, _TILE // wide)
        grid = (triton.cdiv(C, high) * triton.cdiv(M, wide),)
        masks = tensors["mask_h_idx"], tensors["mask_w_idx"]
        _scatter[grid](col, *masks, image, C, M, *image.shape[2:], high, wide)
        return SUCCESS
