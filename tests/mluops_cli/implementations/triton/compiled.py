"""Compiles every kernel of `--impl triton` for an H100 (sm_90), which needs no GPU; the exit code tells whether all do.

Kernels that exchange the axes of a tile must do so in shared memory: otherwise reads or writes would not be coalesced.
"""

from __future__ import annotations

import warnings
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from mluops_cli.implementations.triton import (
    get_indice_pairs,
    masked_col2im,
    masked_im2col,
    psamask,
    roi_crop,
    voxel_pooling,
)


def compiled(kernel: Any, pointers: dict[str, str], **constants: Any) -> Any:
    """The kernel for a GPU; arguments that are neither pointers nor constants are int32."""
    names = kernel.arg_names
    signature = {name: "constexpr" if name in constants else pointers.get(name, "i32") for name in names}
    positions = {(names.index(name),): value for name, value in constants.items()}
    source = ASTSource(fn=kernel, signature=signature, constexprs=positions)
    return triton.compile(source, target=GPUTarget("cuda", 90, 32))


def main() -> None:
    warnings.simplefilter("ignore", UserWarning)
    floats = dict.fromkeys(("source", "target", "images", "crops", "grid", "features", "sums"), "*fp32")
    for exchanged, sign in ((False, 1), (False, -1), (True, 1)):
        tile = {"PLACES": 64, "CELLS": 32} if exchanged else {"PLACES": 1, "CELLS": 1024}
        made = compiled(psamask._gather, floats, SIGN=sign, EXCHANGED=exchanged, **tile)
        assert (made.metadata.shared > 0) == exchanged
    assert compiled(psamask._scatter_exchanged, floats, PLACES=64, CELLS=32).metadata.shared > 0
    compiled(roi_crop._forward, floats, BINS=2, CHANNELS=512)
    backward = compiled(roi_crop._backward, floats, BINS=2, CHANNELS=512)
    pool = compiled(voxel_pooling._pool, floats | {"points": "*i32", "memo": "*i32"}, POINTS=64, CHANNELS=32)
    assert all("red.global" in made.asm["ptx"] for made in (backward, pool))  # atomics in float32, without an answer
    for bits in ("*i16", "*i32"):
        pointers = {"feature": bits, "columns": bits, "mask_h": "*i32", "mask_w": "*i32"}
        compiled(masked_im2col._columns, pointers, ROWS=4, MASKS=256)
        pointers = {"col": bits, "image": bits, "mask_h": "*i32", "mask_w": "*i32"}
        compiled(masked_col2im._scatter, pointers, CHANNELS=4, MASKS=256)
    ints = dict.fromkeys(("indices", "rows", "found", "counts", "starts", "pairs"), "*i32") | {"keys": "*i64"}
    compiled(get_indice_pairs._insert_sites, ints, SITES=1024)
    for wide in (False, True):
        compiled(get_indice_pairs._insert_reached, ints, WIDE=wide, OFFSETS=1, SITES=1024)
        compiled(get_indice_pairs._find, ints, WIDE=wide, OFFSETS=1, SITES=1024)
    compiled(get_indice_pairs._write_pairs, ints, OFFSETS=1, SITES=1024)
    compiled(get_indice_pairs._write_sites, {"cells": "*i64", "sites": "*i32"}, CELLS=1024)


if __name__ == "__main__":
    main()
