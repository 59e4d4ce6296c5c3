"""tile_rows: the rows of a matrix, repeated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from generators import Arrays, Contract, Criterion, Env, InputError, Operator, Parameter, Rule, TensorSpec

EXACT = (Criterion("diff3", 0.0, "a copy"),)


class TileRows(Operator):
    """The rows of a matrix, repeated."""

    cases = Path(__file__).with_name("tile_rows.yaml")
    contract = Contract(
        op="tile_rows",
        category="pure_io",
        inputs=(TensorSpec("x", ("float", "half"), "ARRAY", "N C", values={"uniform": [-1, 1]}),),
        outputs=(TensorSpec("y", ("float", "half"), "ARRAY", "times*N C", same_dtype_as="x", criteria=EXACT),),
        parameters=(Parameter("times", minimum=1, text="how often the rows are repeated"),),
        rules=(Rule("N is at most 4096", "N <= 4096", breaks=({"N": 4097},)),),
        zero_elements={"N": "BAD_PARAM", "C": "BAD_PARAM"},
        theory_ops="0",
        source="Acme's handbook, section 3",
    )

    def reference(self, inputs: Arrays, env: Env) -> Arrays:
        """The copies one below the other."""
        return {"y": np.concatenate([inputs["x"]] * int(env["times"]))}

    def check_values(self, inputs: Arrays, env: Env) -> None:
        """InputError for 13 rows: Acme's devices don't have them."""
        if env["N"] == 13:
            raise InputError("x has 13 rows, expected any other number")


OPERATORS = (TileRows(),)
