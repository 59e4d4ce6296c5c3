"""masked_im2col_forward: the columns of a convolution at masked positions only (RetinaNet, mmcv masked_conv).

Source: the design document masked_im2col_forward, sections 1.3 (interface), 1.4 (limits), 3.2 (formula).
"""

from __future__ import annotations

import numpy as np

from generators.contracts.model import OURS, VENDOR, Contract, Coordinate, Env, Parameter, TensorSpec
from generators.contracts.operator import Array, Arrays, Operator
from generators.contracts.relations import Relation
from schemas.criteria import Criterion
from schemas.status import BAD_PARAM, SUCCESS

_ABOVE = "pad_h - kernel_h"  # the mask row whose taps all lie above the feature
_ROWS = {"integers": [_ABOVE, "H + pad_h"]}  # from wholly above the feature to wholly below it
_OF_MASKS = {"mask_h_idx": 0, "mask_w_idx": 0, "data_col": 1}
_COLUMNS = {"integers": ["pad_w - kernel_w", "W + pad_w"]}


def _pad(name: str) -> Parameter:
    """Any int, negative ones included; a number beyond int is refused when a spec is expanded."""
    return Parameter(name, minimum=-(2**31), maximum=2**31 - 1, default=1, statuses=(), origin=OURS)


def _taps(index: Array, pad: int, tap: int, size: int) -> tuple[Array, Array]:
    """Per mask the feature coordinate of a tap, in 64 bits, and whether it lies inside the feature."""
    position = index.astype(np.int64) - pad + tap
    return position, (position >= 0) & (position < size)


class MaskedIm2colForward(Operator):
    """The columns of a convolution: what its kernel reads, at masked positions only."""

    contract = Contract(
        op="masked_im2col_forward",
        category="pure_io",
        inputs=(
            TensorSpec("feature", ("float", "half"), "NCHW", "1 C H W", values={"uniform": [-1, 1]}),
            TensorSpec("mask_h_idx", ("int32",), "ARRAY", "M", values=_ROWS),
            TensorSpec("mask_w_idx", ("int32",), "ARRAY", "M", values=_COLUMNS),
        ),
        outputs=(
            TensorSpec(
                "data_col",
                ("float", "half"),
                "ARRAY",
                "C*kernel_h*kernel_w M",
                same_dtype_as="feature",
                criteria=(Criterion("diff3", 0.0, "category pure_io"),),
                expected_zero_fraction=0.99,
            ),
        ),
        parameters=(
            Parameter("kernel_h", minimum=1, default=3, origin=VENDOR),
            Parameter("kernel_w", minimum=1, default=3, origin=VENDOR),
            _pad("pad_h"),
            _pad("pad_w"),
        ),
        zero_elements={"C": BAD_PARAM, "H": BAD_PARAM, "W": BAD_PARAM, "M": SUCCESS},
        workspace=True,
        theory_ops="C*kernel_h*kernel_w*M",
        network="RetinaNet",
        source="design document masked_im2col_forward; mmcv masked_im2col",
        relations=(
            Relation("batch", "batch", size="M", axes=_OF_MASKS),
            Relation("permutation of channels", "permutation", size="C", axes={"feature": 1, "data_col": 0}),
            Relation("permutation of masks", "permutation", size="M", axes=_OF_MASKS),
            Relation("scaling", "scaling", linear="feature"),
            Relation("zero", "zero", linear="feature"),
            Relation("outside", "outside", constants={"mask_h_idx": _ABOVE}, where=f"{_ABOVE} >= -2**31"),
        ),
        coordinates=tuple(
            Coordinate(name, f"mask_{name}_idx", parameters=(f"kernel_{name}", f"pad_{name}")) for name in "hw"
        ),
    )

    def reference(self, inputs: Arrays, env: Env) -> Arrays:
        """Bit-exact copies into zeros; source: design document masked_im2col_forward, 3.2."""
        feature = inputs["feature"][0]
        C, H, W = feature.shape
        M = inputs["mask_h_idx"].size
        kernel_h, kernel_w = env["kernel_h"], env["kernel_w"]
        columns = np.zeros((C, kernel_h, kernel_w, M), feature.dtype)
        for i in range(kernel_h):
            y, inside_y = _taps(inputs["mask_h_idx"], env["pad_h"], i, H)
            for j in range(kernel_w if inside_y.any() else 0):
                x, inside_x = _taps(inputs["mask_w_idx"], env["pad_w"], j, W)
                m = np.flatnonzero(inside_y & inside_x)
                columns[:, i, j, m] = feature[:, y[m], x[m]]
        return {"data_col": columns.reshape(C * kernel_h * kernel_w, M)}


OPERATORS = (MaskedIm2colForward(),)
