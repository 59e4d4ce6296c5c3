"""The preconditions of indice_convolution_forward."""

from __future__ import annotations

import math
from collections.abc import Mapping

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


class IndiceConvolutionForward(CheckedOperator):
    """Features, filters and a rulebook to the features of the outputs."""

    inputs, outputs = ("features", "filters", "indice_pairs"), ("features_out",)

    def check(self, described: Descriptors, params: Params) -> None:
        """Refuse, with BAD_PARAM, what the interface excludes."""
        rows = params["num_active_out"]
        require(params["inverse"] == 0 and rows >= 0 and min(params["indice_num"], default=0) >= 0)
        features = described["features"]
        require(features.dtype in ("half", "float"))
        N, CI = sizes(features, 2)
        *kernel, _, CO = sizes(described["filters"], 5)
        expect(described["filters"], features.dtype, (*kernel, CI, CO))
        expect(described["indice_pairs"], "int32", (math.prod(kernel), 2, N))
        expect(described["features_out"], features.dtype, (rows, CO))

    def empty(self, described: Descriptors, given: Mapping[str, Array | None]) -> Result:
        """Return BAD_PARAM without channels or offsets; without sites the outputs are zeroed."""
        output = given.get("features_out")
        require(described["filters"].elements > 0)
        if output is not None:
            output[...] = 0
        return SUCCESS
