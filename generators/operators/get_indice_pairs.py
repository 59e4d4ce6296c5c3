"""get_indice_pairs: the rulebook of a sparse 3-D convolution (CenterPoint, OpenPCDet).

Source: the design document get_indice_pairs, sections 1.3 (interface), 1.4 (limits), 3.1 (formulas).
"""

from __future__ import annotations

import numpy as np

from generators.contracts.model import OURS, VENDOR, Contract, Env, Parameter, Rule, TensorSpec
from generators.contracts.operator import Array, Arrays, Operator
from generators.contracts.relations import Relation
from generators.data.point_clouds import cell_numbers, draw_sites
from generators.data.rulebooks import OUTPUT_SPACE, rulebook, sites_reaching
from schemas.criteria import Criterion
from schemas.errors import InputError
from schemas.status import BAD_PARAM, NOT_SUPPORTED, SUCCESS

_EXACT = (Criterion("diff3", 0.0, "category index"),)
_CELLS = 2**63

_SITES = [[0, "batch - 1"], *([0, f"input_space[{axis}] - 1"] for axis in range(3))]
_ENDS = {"recipe": "bounds"}
_IMAGES = 4096  # of a larger batch only so many images, the first and the last ones, get sites next to the bounds


def _output(name: str, shape: str, *, undefined_when_empty: bool = True) -> TensorSpec:
    return TensorSpec(
        name,
        ("int32",),
        "ARRAY",
        shape,
        criteria=_EXACT,
        expected_zero_fraction=1.0,
        compare="rulebook",
        undefined_when_empty=undefined_when_empty,
    )


def _triple(name: str, minimum: int, default: str | None = None) -> Parameter:
    return Parameter(name, minimum=minimum, length=3, default=default, text="per axis d, h, w", origin=VENDOR)


class GetIndicePairs(Operator):
    """The rulebook of a sparse convolution: which input site contributes to which output site, and by which offset."""

    contract = Contract(
        op="get_indice_pairs",
        category="index",
        inputs=(
            TensorSpec(
                "indices", ("int32",), "ARRAY", "L 4", values={"recipe": "lidar"}, variants=({"unique": _SITES}, _ENDS)
            ),
        ),
        outputs=(
            _output("out_indices", "A 4", undefined_when_empty=False),
            _output("indice_pairs", "prod(filter_space) 2 L"),
            _output("indice_num", "prod(filter_space)"),
        ),
        parameters=(
            Parameter(
                "dimnb", minimum=5, maximum=5, default=5, text="dims of the dense tensor: only 3-D", origin="design 1.4"
            ),
            Parameter("batch", minimum=1, origin=VENDOR),
            _triple("pad", 0),
            _triple("stride", 1),
            _triple("dilation", 1),
            _triple("input_space", 1),
            _triple("filter_space", 1),
            Parameter("sub_m", choices={"default": 0, "subm": 1}, default=0, statuses=(), origin=OURS),
            _triple("output_space", 1, f"input_space if sub_m else [{OUTPUT_SPACE}]"),
            Parameter("transpose", minimum=0, maximum=0, default=0, origin="design 1.4"),
            Parameter("inverse", minimum=0, maximum=0, default=0, origin="design 1.4"),
            Parameter("num_act_out", output=("out_indices", 0)),
        ),
        rules=(
            Rule(
                "output_space follows from the convolution",
                f"sub_m or output_space == ({OUTPUT_SPACE})",
                (),
                origin=OURS,
            ),
            *(
                Rule(
                    f"stride or dilation is 1 on axis {axis}",
                    f"stride[{axis}] == 1 or dilation[{axis}] == 1",
                    breaks=({name: tuple(1 + (i == axis) for i in range(3)) for name in ("stride", "dilation")},),
                    origin=VENDOR,
                )
                for axis in range(3)
            ),
            Rule(
                "64 bits hold the number of every cell",
                f"batch*prod(input_space) < {_CELLS} and batch*prod(output_space) < {_CELLS}",
                (),
                origin=OURS,
            ),
            Rule("subm has capacity for the sites", "not sub_m or A < 0 or A >= L", (), origin=OURS),  # A < 0: unknown
            Rule("subm has stride 1", "not sub_m or stride == (1, 1, 1)", origin=VENDOR),
            Rule("subm has dilation 1", "not sub_m or dilation == (1, 1, 1)", origin=VENDOR),
            Rule("subm keeps the space", "not sub_m or output_space == input_space", origin="design 1.2"),
            Rule(
                "at most 4096 kernel offsets",
                "prod(filter_space) <= 4096",
                breaks=({"filter_space": (17, 17, 17)}, {"filter_space": (1, 1, 4097)}),
                origin=VENDOR,
            ),
            Rule(
                "no more sites than cells",
                "L <= batch*prod(input_space) or batch < 1 or min(input_space) < 1",
                breaks=({"L": 2**18, "filter_space": (1, 1, 1)},),
                origin=VENDOR,
            ),
            Rule(
                "no more outputs than cells",
                "A <= batch*prod(output_space) or batch < 1 or min(output_space) < 1",
                breaks=({"A": 2**18},),
                origin=VENDOR,
            ),
            Rule("at most 1000000 sites", "L <= 1000000", (BAD_PARAM, NOT_SUPPORTED, SUCCESS), origin=VENDOR),
        ),
        zero_elements={"L": SUCCESS},
        workspace=True,
        theory_ops=(
            "48*prod(filter_space)*L + 6*L + batch*prod(filter_space) + 1 if sub_m else "
            "56*prod(filter_space)*L + batch*prod(filter_space) + 1"
        ),
        network="CenterPoint",
        source="design document get_indice_pairs; spconv, OpenPCDet",
        relations=(
            Relation("batch", "batch", axes={"indices": 0, "indice_pairs": 2}, columns={"indices": 0}),
            Relation("permutation of images", "permutation", size="batch", columns={"indices": 0}),
            Relation("permutation of sites", "permutation", size="L", axes={"indices": 0}),
        ),
    )

    def reference(self, inputs: Arrays, env: Env) -> Arrays:
        """Pairs per kernel offset, in the order of the sites. Source: design document get_indice_pairs, 3.1."""
        out_indices, pairs, num = rulebook(inputs["indices"], env)
        return {"out_indices": out_indices, "indice_pairs": pairs, "indice_num": num}

    def check_values(self, inputs: Arrays, env: Env) -> None:
        """InputError unless the sites are unique and inside batch and input_space."""
        indices = inputs["indices"]
        bounds = np.array([env["batch"], *env["input_space"]])
        outside = np.argwhere((indices < 0) | (indices >= bounds))
        if len(outside):
            row, column = outside[0]
            name, value = "ndhw"[column], indices[row, column]
            raise InputError(f"indices row {row}: {name} is {value}, expected 0 to {bounds[column] - 1}")
        cells, first, count = np.unique(
            cell_numbers(indices, env["input_space"]), return_index=True, return_counts=True
        )
        if len(cells) < len(indices):
            row = first[np.argmax(count > 1)]
            raise InputError(f"indices row {row}: the site {indices[row].tolist()} is there twice")

    def draw(self, tensor: str, recipe: str, env: Env, rng: np.random.Generator, arrays: Arrays) -> Array | None:
        """The recipes `lidar` (sites on the surfaces of a scene) and `bounds` (next to the ends of every axis).

        Where the spec asserts the rows of out_indices, `lidar` meets that number exactly; InputError where it can't.
        """
        if recipe not in ("lidar", "bounds"):
            return None
        sites, batch, space = int(env["L"]), int(env["batch"]), env["input_space"]
        if recipe == "bounds":
            ends = [sorted({end for end in (0, 1, size - 2, size - 1) if 0 <= end < size}) for size in space]
            images = np.arange(batch) if batch <= _IMAGES else np.r_[: _IMAGES // 2, batch - _IMAGES // 2 : batch]
            corners = np.stack(np.meshgrid(images, *ends, indexing="ij"), axis=-1).reshape(-1, 4)
            if sites > len(corners):
                raise InputError(f"{sites} sites are wanted next to the bounds, there are {len(corners)}")
            return corners[np.argsort(rng.random(len(corners)))[:sites]].astype(np.int32)
        if env.get("A", -1) < 0 or env["sub_m"]:
            return draw_sites(rng, sites, batch, space)
        outputs = draw_sites(rng, int(env["A"]), batch, env["output_space"], compact=True)
        return sites_reaching(rng, outputs, sites, env)


OPERATORS = (GetIndicePairs(),)
