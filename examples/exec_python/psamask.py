"""A program that computes psamask_forward, with the standard library only, for `mluops run CASES --impl ...`.

    --impl "exec:python3 examples/exec_python/psamask.py {dir}"

The folder holds case.txt (the operator, then its parameters), tensors.txt (a line per tensor) and a raw file per
tensor; outputs are overwritten in place. Exit code 0 is SUCCESS, 64 + n the operator status n. See docs/exec.md.
"""

from __future__ import annotations

import sys
import time
from array import array
from math import prod
from pathlib import Path
from typing import NamedTuple, NoReturn

BAD_PARAM, NOT_SUPPORTED, STATUS_BASE = 3, 7, 64


class Tensor(NamedTuple):
    """One line of tensors.txt; strides count elements."""

    dtype: str
    layout: str
    dims: list[int]
    strides: list[int]
    file: str


def finish(status: int) -> NoReturn:
    """End the program with an operator status."""
    sys.exit(STATUS_BASE + status if status else 0)


def read_case(folder: Path) -> tuple[str, dict[str, list[int]]]:
    """Return the operator and its parameters."""
    op, *lines = (folder / "case.txt").read_text().splitlines()
    words = [line.split() for line in lines]
    return op, {name: [int(value) for value in values] for name, _, *values in words}


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """Return the tensors by name."""
    tensors = {}
    for line in (folder / "tensors.txt").read_text().splitlines():
        _, name, dtype, layout, rank, *rest = line.split()
        numbers, file = [int(word) for word in rest[:-1]], rest[-1]
        tensors[name] = Tensor(dtype, layout, numbers[: int(rank)], numbers[int(rank) :], file)
    return tensors


def checked(x: Tensor, y: Tensor, psa_type: int, h_mask: int, w_mask: int) -> tuple[int, int, int]:
    """Return N, H and W of a valid call; end the program with the status of an invalid one."""
    if psa_type not in (0, 1) or h_mask < 1 or w_mask < 1 or len(x.dims) != 4:
        finish(BAD_PARAM)
    N, H, W, _ = x.dims
    for tensor, channels in ((x, h_mask * w_mask), (y, H * W)):
        # A null descriptor has dtype and layout "null".
        if (tensor.dtype, tensor.layout, tensor.dims) != ("float", "NHWC", [N, H, W, channels]):
            finish(BAD_PARAM)
        if any(stride != prod(tensor.dims[axis + 1 :]) for axis, stride in enumerate(tensor.strides)):
            finish(NOT_SUPPORTED)
        if prod(tensor.dims) >= 2**31:
            finish(NOT_SUPPORTED)
        if tensor.file == "-":  # a null pointer
            finish(BAD_PARAM)
    return N, H, W


def psamask(x: array[float], N: int, H: int, W: int, psa_type: int, h_mask: int, w_mask: int) -> array[float]:
    """Return y, of which every element is set."""
    y = array("f", bytes(4 * N * H * W * H * W))
    hh, hw = (h_mask - 1) // 2, (w_mask - 1) // 2
    for n in range(N):
        for h in range(H):
            for w in range(W):
                for p in range(max(0, hh - h), min(h_mask, H + hh - h)):
                    for q in range(max(0, hw - w), min(w_mask, W + hw - w)):
                        position, cell = h * W + w, (p + h - hh) * W + q + w - hw
                        source = ((n * H + h) * W + w) * h_mask * w_mask + p * w_mask + q
                        row, column = (position, cell) if psa_type == 0 else (cell, position)
                        y[(n * H * W + row) * H * W + column] = x[source]
    return y


def main() -> NoReturn:
    """Read the folder, compute, write the output."""
    folder = Path(sys.argv[1])
    op, params = read_case(folder)
    if op != "psamask_forward":
        finish(NOT_SUPPORTED)
    tensors = read_tensors(folder)
    (psa_type,), (h_mask,), (w_mask,) = params["psa_type"], params["h_mask"], params["w_mask"]
    N, H, W = checked(tensors["x"], tensors["y"], psa_type, h_mask, w_mask)
    x = array("f", (folder / tensors["x"].file).read_bytes())
    start = time.perf_counter()
    y = psamask(x, N, H, W, psa_type, h_mask, w_mask)
    microseconds = (time.perf_counter() - start) * 1e6
    (folder / tensors["y"].file).write_bytes(y.tobytes())
    (folder / "results.txt").write_text(f"latency_us {microseconds}\n")  # optional
    finish(0)


if __name__ == "__main__":
    main()
