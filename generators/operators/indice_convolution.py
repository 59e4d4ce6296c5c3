"""indice_convolution_forward: a sparse 3-D convolution along a rulebook of get_indice_pairs (SECOND, CenterPoint).

Source: the public interface of mluOpIndiceConvolutionForward, and spconv's indice_conv, which states the formula.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from generators.contracts.model import OURS, Contract, Env, Parameter, Rule, TensorSpec
from generators.contracts.operator import Array, Arrays, Operator
from generators.contracts.relations import Relation
from generators.data.rulebooks import draw_pairs
from generators.error_bounds.precision import rounding
from generators.error_bounds.sums import sum_bound
from schemas.criteria import Criterion
from schemas.errors import InputError
from schemas.status import BAD_PARAM, NOT_SUPPORTED, SUCCESS

_OFFSETS = "FD*FH*FW"
_CHANNELS = {"filters": 4, "features_out": 1}
_NAMES = {2: "half", 4: "float"}  # bytes of an element -> dtype
_BLOCK = 1 << 15  # elements worked on at a time: they stay in the cache


class IndiceConvolutionForward(Operator):
    """Multiplies the features of the sites by the filters of the kernel offsets, and adds them up per output site."""

    contract = Contract(
        op="indice_convolution_forward",
        category="composite",
        inputs=(
            TensorSpec("features", ("float", "half"), "ARRAY", "N CI", values={"uniform": [-1, 1]}),
            TensorSpec(
                "filters",
                ("float", "half"),
                "ARRAY",
                "FD FH FW CI CO",
                same_dtype_as="features",
                values={"uniform": [-1, 1]},
            ),
            TensorSpec("indice_pairs", ("int32",), "ARRAY", f"{_OFFSETS} 2 N", values={"recipe": "rulebook"}),
        ),
        outputs=(
            TensorSpec(
                "features_out",
                ("float", "half"),
                "ARRAY",
                "num_active_out CO",
                same_dtype_as="features",
                criteria=tuple(Criterion(name, 3e-3, "category composite") for name in ("diff1", "diff2")),
                expected_zero_fraction=1.0,  # outputs without a pair
            ),
        ),
        parameters=(
            Parameter(
                "indice_num",
                minimum=0,
                length=_OFFSETS,
                computed_from="indice_pairs",
                origin=OURS,
                text="pairs per kernel offset",
            ),
            Parameter("num_active_out", minimum=0, default="N", origin=OURS, text="output sites"),
            Parameter(
                "inverse",
                minimum=0,
                maximum=0,
                default=0,
                statuses=(BAD_PARAM, NOT_SUPPORTED),
                origin=OURS,
                text="pairs are of the convolution itself, as get_indice_pairs makes them",
            ),
            Parameter("sub_m", choices={"default": 0, "subm": 1}, default=0, statuses=(), origin=OURS),
        ),
        rules=(
            Rule("subm keeps the sites", "not sub_m or num_active_out == N", (), origin=OURS),
            Rule("subm has an offset in the middle", f"not sub_m or {_OFFSETS} % 2 == 1", (), origin=OURS),
        ),
        zero_elements={
            **dict.fromkeys(("CI", "CO", "FD", "FH", "FW"), BAD_PARAM),
            "N": SUCCESS,
            "num_active_out": SUCCESS,
        },
        workspace=True,
        theory_ops=f"2*{_OFFSETS}*N*CI*CO",
        network="SECOND, CenterPoint",
        source="public interface of mluOpIndiceConvolutionForward; spconv indice_conv",
        relations=(
            Relation("batch of output channels", "batch", size="CO", axes=_CHANNELS),
            Relation("permutation of output channels", "permutation", size="CO", axes=_CHANNELS),
            Relation("permutation of input channels", "permutation", size="CI", axes={"features": 1, "filters": 3}),
            Relation("scaling", "scaling", linear="features"),  # zeros are none: 0 times a NaN of the filters is NaN
        ),
    )

    def reference(self, inputs: Arrays, env: Env) -> Arrays:
        """Sums in float64, offset by offset and channel by channel. Source: spconv indice_conv."""
        return self.reference_in(np.float64, inputs, env)

    def reference_in(self, dtype: type[np.floating[Any]], inputs: Arrays, env: Env) -> Arrays:
        """The same with products and sums in another dtype."""
        features = inputs["features"]
        with np.errstate(over="ignore"):  # a sum beyond the output's dtype is Inf
            output = _convolved(features, inputs["filters"], inputs["indice_pairs"], env, dtype).astype(features.dtype)
        return {"features_out": output}

    def error_bound(
        self, inputs: Arrays, env: Env, *, baseline: Arrays | None = None, accumulate: str | None = None
    ) -> Arrays:
        """Sums of products in any order (error_bounds.sums); the rounding of a product counts as another addition."""
        output = (baseline or self.reference(inputs, env))["features_out"]
        features, filters, pairs = (inputs[name] for name in ("features", "filters", "indice_pairs"))
        terms = _convolved(np.abs(features), np.abs(filters), pairs, env, np.float64)
        reaching = np.zeros((len(output), 1), np.int64)
        for number, (_, targets) in zip(env["indice_num"], pairs, strict=True):
            reaching[targets[:number]] += 1
        counts = np.where(reaching, reaching * features.shape[1] + 1, 0)
        model = rounding(accumulate or self.contract.accumulate, _NAMES[output.dtype.itemsize])
        return {"features_out": sum_bound(terms, counts, output, model)}

    def computed_parameter(self, parameter: str, inputs: Arrays, env: Env) -> tuple[int, ...]:
        """indice_num: the pairs of each offset before its first -1."""
        ends = np.pad(inputs["indice_pairs"][:, 0], ((0, 0), (0, 1)), constant_values=-1) == -1
        return tuple(map(int, ends.argmax(axis=1)))

    def check_values(self, inputs: Arrays, env: Env) -> None:
        """Pairs name input and output rows, each once per offset; subm has a pair (j, j) in the middle for each j."""
        pairs, numbers = inputs["indice_pairs"], env["indice_num"]
        rows = {0: len(inputs["features"]), 1: env["num_active_out"]}
        for k, number in enumerate(numbers):
            if number > pairs.shape[2]:
                raise InputError(f"indice_num[{k}] is {number}, indice_pairs holds at most {pairs.shape[2]} pairs")
            for side, size in rows.items():
                own = pairs[k, side, :number]
                wrong = np.flatnonzero((own < 0) | (own >= size))
                if len(wrong):
                    at = f"indice_pairs[{k}, {side}, {wrong[0]}]"
                    raise InputError(f"{at} is {own[wrong[0]]}, expected 0 to {size - 1}")
                if len(np.unique(own)) < number:
                    raise InputError(f"indice_pairs[{k}, {side}] names a row twice among the first {number}")
        if env["sub_m"]:
            middle = pairs[len(pairs) // 2, :, : numbers[len(pairs) // 2]]
            if middle.shape[1] < rows[0] or (middle[0] != middle[1]).any():
                raise InputError(f"subm needs the pairs (j, j) of all {rows[0]} sites at offset {len(pairs) // 2}")

    def draw(self, tensor: str, recipe: str, env: Env, rng: np.random.Generator, arrays: Arrays) -> Array | None:
        """The recipe `rulebook`: the pairs of a scene with N sites, to num_active_out outputs; -1 behind them."""
        if recipe != "rulebook":
            return None
        kernel = [int(env[name]) for name in ("FD", "FH", "FW")]
        return draw_pairs(rng, int(env["N"]), int(env["num_active_out"]), kernel, env["sub_m"])

    def theory_ops(self, env: Env, inputs: Arrays, outputs: Arrays) -> float:
        """Two per pair, input channel and output channel."""
        return 2.0 * sum(env["indice_num"]) * float(env["CI"]) * float(env["CO"])


def _convolved(features: Array, filters: Array, pairs: Array, env: Env, dtype: type[np.floating[Any]]) -> Array:
    """The sums over all pairs in dtype; not a matrix product of a library, whose last bits vary between machines."""
    output = np.zeros((env["num_active_out"], filters.shape[-1]), dtype)
    weights = filters.reshape(-1, *filters.shape[3:]).astype(dtype)
    step = max(1, _BLOCK // max(1, filters.shape[-1]))
    for number, (sources, targets), weight in zip(env["indice_num"], pairs, weights, strict=True):
        for start in range(0, number, step):
            part = slice(start, min(start + step, number))
            gathered = features[sources[part]].astype(dtype)
            with np.errstate(invalid="ignore", over="ignore"):
                total = output[targets[part]]
                for column, row in zip(gathered.T, weight, strict=True):
                    total += column[:, None] * row
                output[targets[part]] = total
    return output


OPERATORS = (IndiceConvolutionForward(),)
