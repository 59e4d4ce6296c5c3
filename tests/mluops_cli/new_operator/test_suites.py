"""The suites that follow from a contract, read as YAML."""

from __future__ import annotations

from typing import Any

import yaml

from generators.contracts.model import Contract, TensorSpec
from generators.parameters import Parameter
from mluops_cli.new_operator.suites import small_call, suite_lines


def suites(contract: Contract, *observed: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Suite -> name -> entry."""
    made = suite_lines(contract, small_call(contract, observed))
    return {
        suite: {entry.pop("name"): entry for entry in yaml.safe_load("\n".join(lines) or "[]")}
        for suite, lines in made.items()
    }


def contract(x: str, *, dtypes: tuple[str, ...] = ("float",), **fields: Any) -> Contract:
    tensors = {"x": (TensorSpec("x", dtypes, "ARRAY", x),), "y": (TensorSpec("y", ("float",), "ARRAY", "N"),)}
    return Contract("op", "composite", tensors["x"], tensors["y"], **fields)


def test_each_size_and_parameter_in_turn() -> None:
    parameters = (Parameter("k", minimum=1), Parameter("scale", kind="float"), Parameter("flip", kind="bool"))
    found = suites(contract("N k", parameters=parameters), {"k": 9, "scale": 2}, {"k": 8, "scale": 0.5})
    lengths = [1, 2, 7, 63, 64, 65, 129]
    assert found["general"] == {
        "sizes_n": {"params": {"k": 5, "scale": 2.0, "flip": False}, "matrix": {"sizes.N": lengths}},
        "k": {"sizes": {"N": 2}, "params": {"scale": 2.0, "flip": False}, "matrix": {"params.k": lengths}},
        "params_2": {"sizes": {"N": 2}, "params": {"k": 5, "scale": 0.5, "flip": False}},
        "flip_both": {"sizes": {"N": 2}, "params": {"k": 5, "scale": 2.0}, "matrix": {"params.flip": [False, True]}},
    }
    assert found["boundary"]["long_n"] == {"sizes": {"N": 1025}, "params": {"k": 1, "scale": 2.0, "flip": False}}


def test_zeros_expect_what_the_contract_says() -> None:
    found = suites(contract("N M", zero_elements={"N": "SUCCESS", "M": "BAD_PARAM"}))
    assert found["zero_element"] == {
        "no_n": {"sizes": {"N": 0, "M": 5}},
        "no_m": {"sizes": {"N": 2, "M": 0}, "expect": "BAD_PARAM"},
    }


def test_a_size_beside_a_vast_constant_stays_small() -> None:
    found = suites(contract("N 65536"))
    assert found["general"]["sizes_n"]["matrix"] == {"sizes.N": [1, 2, 7, 63, 64]}
    assert list(found["boundary"]) == ["one_element"]


def test_nan_and_inf_go_into_floating_inputs_of_two_elements_or_more() -> None:
    assert suites(contract("1"))["nan_inf"] == {}
    assert suites(contract("N", dtypes=("int32",)))["nan_inf"] == {}
    entry = suites(contract("N", dtypes=("complex_float", "half")))["nan_inf"]["nan_inf"]
    assert entry["inputs"] == {"x": {"dist": {"nan": 0.1, "inf": 0.1}}}
    assert entry["matrix"] == {"inputs.x.dtype": ["half"]}
