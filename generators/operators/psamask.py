"""psamask_forward and psamask_backward: the point-wise spatial attention mask of PSANet.

Source: the design document psamask, sections 1.3 (interface), 1.4 (limits), 3.1 (formulas).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from generators.contracts.model import OURS, Contract, Coordinate, Env, Parameter, TensorSpec
from generators.contracts.operator import Array, Arrays, Operator
from generators.contracts.relations import Relation
from schemas.criteria import Criterion
from schemas.status import BAD_PARAM, NOT_SUPPORTED, SUCCESS

COLLECT, DISTRIBUTE = 0, 1
_BIT_EXACT = (Criterion("diff3", 0.0, "category pure_io"),)
# A small mask leaves most of y zero, a large one most of dx; but the central cell is always copied, so never all of it.
_ZEROS = 1 - 2.0**-31
_TRANSPOSED = {"psamask_forward": "psamask_backward", "psamask_backward": "psamask_forward"}
_MASKED, _FULL = "N H W h_mask*w_mask", "N H W H*W"


def _contract(op: str, given: TensorSpec, computed: TensorSpec) -> Contract:
    return Contract(
        op=op,
        category="pure_io",
        inputs=(given,),
        outputs=(computed,),
        parameters=(
            Parameter("psa_type", choices={"collect": COLLECT, "distribute": DISTRIBUTE}, origin=OURS),
            Parameter("h_mask", minimum=1, origin=OURS),
            Parameter("w_mask", minimum=1, origin=OURS),
        ),
        zero_elements={"N": SUCCESS, "H": SUCCESS, "W": SUCCESS},
        large=(BAD_PARAM, NOT_SUPPORTED),
        strided=(BAD_PARAM, NOT_SUPPORTED),
        theory_ops="N*H*W*H*W" if computed.shape == _FULL else "N*H*W*h_mask*w_mask",
        either_efficiency=0.5,
        network="PSANet",
        source="design document psamask; mmcv psa_mask",
        relations=(
            Relation("batch", "batch", size="N", axes={given.name: 0, computed.name: 0}),
            Relation("permutation of images", "permutation", size="N", axes={given.name: 0, computed.name: 0}),
            Relation("scaling", "scaling", linear=given.name),
            Relation("zero", "zero", linear=given.name),
            Relation("adjoint", "adjoint", linear=given.name, adjoint=_TRANSPOSED[op]),
        ),
        coordinates=(Coordinate("h", parameters=("h_mask",)), Coordinate("w", parameters=("w_mask",))),
    )


def _tensor(name: str, shape: str, expected_zero_fraction: float) -> TensorSpec:
    """A float NHWC tensor; where a mask covers little of a feature most of the output is naturally zero."""
    values = {"uniform": [-1, 1]}
    return TensorSpec(
        name,
        ("float",),
        "NHWC",
        shape,
        values=values,
        criteria=_BIT_EXACT,
        expected_zero_fraction=expected_zero_fraction,
    )


def _rectangles(H: int, W: int, env: Env) -> Iterator[tuple[int, int, slice, slice, slice, slice]]:
    """Per position (h, w): the mask cells p, q that fall inside the feature, and the feature cells i, j they fall on.

    i = p + h - hh and j = q + w - hw, both clipped to the feature (design document psamask, 3.1.1, start and end).
    """
    h_mask, w_mask = env["h_mask"], env["w_mask"]
    hh, hw = (h_mask - 1) // 2, (w_mask - 1) // 2
    for h in range(H):
        p0, p1 = max(0, hh - h), min(h_mask, H + hh - h)
        for w in range(W):
            q0, q1 = max(0, hw - w), min(w_mask, W + hw - w)
            if p0 < p1 and q0 < q1:
                i = slice(p0 + h - hh, p1 + h - hh)
                j = slice(q0 + w - hw, q1 + w - hw)
                yield h, w, slice(p0, p1), slice(q0, q1), i, j


def _cells(full: Array, psa_type: int) -> Array:
    """The N, H, W, H*W tensor seen as [n, h, w, i, j], a view: DISTRIBUTE exchanges (h, w) and (i, j)."""
    N, H, W, _ = full.shape
    cells = full.reshape(N, H, W, H, W)
    return cells if psa_type == COLLECT else cells.transpose(0, 3, 4, 1, 2)


class PsamaskForward(Operator):
    """Copies each cell of the mask at a position to the position of the feature that the cell lies on."""

    contract = _contract("psamask_forward", _tensor("x", _MASKED, 0.0), _tensor("y", _FULL, _ZEROS))

    def reference(self, inputs: Arrays, env: Env) -> Arrays:
        """Bit-exact copies into zeros; source: design document psamask, 3.1."""
        N, H, W, _ = inputs["x"].shape
        x = inputs["x"].reshape(N, H, W, env["h_mask"], env["w_mask"])
        y = np.zeros((N, H, W, H * W), x.dtype)
        cells = _cells(y, env["psa_type"])
        for h, w, p, q, i, j in _rectangles(H, W, env):
            cells[:, h, w, i, j] = x[:, h, w, p, q]
        return {"y": y}


class PsamaskBackward(Operator):
    """Copies to each cell of the mask at a position the gradient of the position that the cell lies on."""

    contract = _contract("psamask_backward", _tensor("dy", _FULL, 0.0), _tensor("dx", _MASKED, _ZEROS))

    def reference(self, inputs: Arrays, env: Env) -> Arrays:
        """Bit-exact copies into zeros; source: design document psamask, 3.1."""
        N, H, W, _ = inputs["dy"].shape
        cells = _cells(inputs["dy"], env["psa_type"])
        dx = np.zeros((N, H, W, env["h_mask"], env["w_mask"]), cells.dtype)
        for h, w, p, q, i, j in _rectangles(H, W, env):
            dx[:, h, w, p, q] = cells[:, h, w, i, j]
        return {"dx": dx.reshape(N, H, W, env["h_mask"] * env["w_mask"])}


OPERATORS = (PsamaskForward(), PsamaskBackward())
