"""psamask_forward in Triton, for `--impl triton:psamask_triton.py:psamask` on a GPU; `,interpret`: on the CPU."""

import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def kernel(x, y, total, H, W, h_mask, w_mask, DISTRIBUTE: tl.constexpr, BLOCK: tl.constexpr):
    cells = H * W
    element = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    image = element // cells // cells
    place = element % cells if DISTRIBUTE else element // cells % cells
    cell = element // cells % cells if DISTRIBUTE else element % cells
    p = cell // W - place // W + (h_mask - 1) // 2
    q = cell % W - place % W + (w_mask - 1) // 2
    held = element < total
    inside = held & (p >= 0) & (p < h_mask) & (q >= 0) & (q < w_mask)
    source = x + (image * cells + place) * (h_mask * w_mask) + p * w_mask + q
    tl.store(y + element, tl.load(source, mask=inside, other=0), mask=held)


def psamask(op, inputs, outputs, params):
    if op != "psamask_forward":
        return "NOT_SUPPORTED"
    x, y = inputs["x"], outputs["y"]  # torch tensors on the device; None for a null pointer
    psa_type, h_mask, w_mask = params["psa_type"], params["h_mask"], params["w_mask"]
    if x is None or y is None or x.dim() != 4 or psa_type not in (0, 1) or min(h_mask, w_mask) < 1:
        return "BAD_PARAM"
    N, H, W, cells = x.shape
    if cells != h_mask * w_mask or y.shape != (N, H, W, H * W) or {str(x.dtype), str(y.dtype)} != {"torch.float32"}:
        return "BAD_PARAM"
    if y.numel():
        kernel[(triton.cdiv(y.numel(), BLOCK),)](x, y, y.numel(), H, W, h_mask, w_mask, psa_type == 1, BLOCK)
    return "SUCCESS"
