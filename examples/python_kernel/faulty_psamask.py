"""psamask_forward as a Python kernel, with one fault: it centres masks of even width wrongly.

mluops gen psamask_forward --suite demo,boundary --out out/cases
mluops run out/cases --impl python:examples/python_kernel/faulty_psamask.py:psamask --out out/mine
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

Arrays = Mapping[str, np.ndarray[Any, Any]]


def psamask(op: str, inputs: Arrays, outputs: Arrays, params: Mapping[str, int]) -> str:
    """Write y; a status is returned by its name."""
    if params["psa_type"] not in (0, 1):
        return "BAD_PARAM"
    x, y = inputs["x"], outputs["y"]
    N, H, W, _ = x.shape
    h_mask, w_mask = params["h_mask"], params["w_mask"]
    half_h, half_w = (h_mask - 1) // 2, w_mask // 2  # the fault: (w_mask - 1) // 2 is right
    mask = x.reshape(N, H, W, h_mask, w_mask)
    cells = y.reshape(N, H, W, H, W)
    y[...] = 0
    for h in range(H):
        for w in range(W):
            for i in range(max(0, h - half_h), min(H, h - half_h + h_mask)):
                for j in range(max(0, w - half_w), min(W, w - half_w + w_mask)):
                    a, b, c, d = (h, w, i, j) if params["psa_type"] == 0 else (i, j, h, w)
                    cells[:, a, b, c, d] = mask[:, h, w, i - h + half_h, j - w + half_w]
    return "SUCCESS"
