"""The preconditions of get_indice_pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from mluops_cli.implementations.base import Array
from mluops_cli.implementations.preconditions.base import (
    CheckedOperator,
    Descriptors,
    Params,
    Result,
    expect,
    require,
    sizes,
)
from schemas.status import SUCCESS

AXES: Final = range(3)
_MOST_OFFSETS: Final = 4096


class GetIndicePairs(CheckedOperator):
    """Input sites to the rulebook of a sparse convolution."""

    inputs, outputs = ("indices",), ("out_indices", "indice_pairs", "indice_num")
    on_empty = SUCCESS

    def check(self, described: Descriptors, params: Params) -> None:
        """Refuse, with BAD_PARAM, what section 1.4 and the descriptor's set-up exclude."""
        _check_convolution(params)
        L, _ = sizes(described["indices"], 2)
        rows, _ = sizes(described["out_indices"], 2)
        offsets = math.prod(params["filter_space"])
        expect(described["indices"], "int32", (L, 4))
        expect(described["out_indices"], "int32", (rows, 4))
        expect(described["indice_pairs"], "int32", (offsets, 2, L))
        expect(described["indice_num"], "int32", (offsets,))
        require(offsets <= _MOST_OFFSETS)
        require(params["batch"] * math.prod(params["input_space"]) >= L)
        require(params["batch"] * math.prod(params["output_space"]) >= rows)
        require(not params["sub_m"] or rows >= L)  # out_indices may have more rows than num_act_out

    def empty(self, described: Descriptors, given: Mapping[str, Array | None]) -> Result:
        """Return SUCCESS where there is no site or no output, with no pair of any offset."""
        for name, value in (("indice_num", 0), ("indice_pairs", -1)):
            array = given.get(name)
            require(array is not None or described[name].elements == 0)
            if array is not None:
                array[...] = value
        return {"status": SUCCESS, "num_act_out": 0}


def _check_convolution(params: Params) -> None:
    spaces = [params[name] for name in ("input_space", "filter_space", "output_space")]
    pads, strides, dilations = params["pad"], params["stride"], params["dilation"]
    require(params["dimnb"] == 5 and params["batch"] > 0)
    require(params["transpose"] == 0 and params["inverse"] == 0 and params["sub_m"] in (0, 1))
    require(all(len(each) == len(AXES) for each in (*spaces, pads, strides, dilations)))
    require(min(map(min, spaces)) >= 1 and min(pads) >= 0 and min(strides) >= 1 and min(dilations) >= 1)
    require(all(1 in (strides[axis], dilations[axis]) for axis in AXES))
    if params["sub_m"]:
        require(max(*strides, *dilations) == 1 and list(params["input_space"]) == list(params["output_space"]))
