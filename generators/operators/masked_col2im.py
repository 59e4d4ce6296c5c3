"""masked_col2im_forward: columns put back into an image at masked positions (RetinaNet, mmcv masked_conv).

Source: the public interface of mluOpMaskedCol2imForward and mmcv's masked_col2im, which states the formula.
"""

from __future__ import annotations

import numpy as np

from generators.contracts.model import Contract, Coordinate, Env, TensorSpec
from generators.contracts.operator import Array, Arrays, Operator
from generators.contracts.relations import Relation
from schemas.criteria import Criterion
from schemas.errors import InputError
from schemas.status import BAD_PARAM, SUCCESS

_POSITIONS = {"recipe": "positions"}


class MaskedCol2imForward(Operator):
    """Writes columns into an image, at masked positions; all else is 0."""

    contract = Contract(
        op="masked_col2im_forward",
        category="pure_io",
        inputs=(
            TensorSpec("col", ("float", "half"), "ARRAY", "C M", values={"uniform": [-1, 1]}),
            TensorSpec("mask_h_idx", ("int32",), "ARRAY", "M", values=_POSITIONS),
            TensorSpec("mask_w_idx", ("int32",), "ARRAY", "M", values=_POSITIONS),
        ),
        outputs=(
            TensorSpec(
                "im",
                ("float", "half"),
                "NCHW",
                "1 C H W",
                same_dtype_as="col",
                criteria=(Criterion("diff3", 0.0, "category pure_io"),),
                expected_zero_fraction=1.0,  # positions without a mask
            ),
        ),
        zero_elements={"C": BAD_PARAM, "H": BAD_PARAM, "W": BAD_PARAM, "M": SUCCESS},
        workspace=True,
        theory_ops="C*M",
        network="RetinaNet",
        source="public interface of mluOpMaskedCol2imForward; mmcv masked_col2im",
        relations=(
            Relation("permutation of channels", "permutation", size="C", axes={"col": 0, "im": 1}),
            Relation(
                "permutation of masks", "permutation", size="M", axes={"col": 1, "mask_h_idx": 0, "mask_w_idx": 0}
            ),
            Relation("scaling", "scaling", linear="col"),
            Relation("zero", "zero", linear="col"),
        ),
        coordinates=tuple(Coordinate(name, f"mask_{name}_idx") for name in "hw"),
    )

    def reference(self, inputs: Arrays, env: Env) -> Arrays:
        """Bit-exact copies into zeros; source: mmcv masked_col2im."""
        col = inputs["col"]
        im = np.zeros((1, col.shape[0], env["H"], env["W"]), col.dtype)
        im[0, :, inputs["mask_h_idx"], inputs["mask_w_idx"]] = col.T
        return {"im": im}

    def check_values(self, inputs: Arrays, env: Env) -> None:
        """Positions are inside of the image, and each occurs once."""
        H, W = env["H"], env["W"]
        h, w = inputs["mask_h_idx"].astype(np.int64), inputs["mask_w_idx"].astype(np.int64)
        for name, index, size in (("mask_h_idx", h, H), ("mask_w_idx", w, W)):
            wrong = np.flatnonzero((index < 0) | (index >= size))
            if len(wrong):
                raise InputError(f"{name}[{wrong[0]}] is {index[wrong[0]]}, expected 0 to {size - 1}")
        places, counts = np.unique(h * W + w, return_counts=True)
        if (counts > 1).any():
            y, x = divmod(int(places[counts > 1][0]), W)
            raise InputError(f"masks hold the position ({y}, {x}) {counts.max()} times, expected each once at most")

    def draw(self, tensor: str, recipe: str, env: Env, rng: np.random.Generator, arrays: Arrays) -> Array | None:
        """The recipe `positions`: M different ones of the image in any order; mask_w_idx fits the rows drawn before."""
        if recipe != "positions":
            return None
        M, H, W = (int(env[name]) for name in "MHW")
        if M > H * W:
            raise InputError(f"{M} different positions can't be drawn, the image has {H * W}")
        if tensor == "mask_h_idx":
            rows: Array = rng.permutation(H * W)[:M] // max(W, 1)
            return rows.astype(np.int32)
        columns = np.empty(M, np.int32)
        for row in np.unique(arrays["mask_h_idx"]):
            masks = np.flatnonzero(arrays["mask_h_idx"] == row)
            if len(masks) > W:
                raise InputError(f"{len(masks)} masks lie in row {row}, which has {W} positions")
            columns[masks] = rng.permutation(W)[: len(masks)]
        return columns


OPERATORS = (MaskedCol2imForward(),)
