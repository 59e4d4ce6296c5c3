"""Derived invalid cases, against a contract written here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from generators.contracts.case import Case, TensorPlan
from generators.contracts.faults import NULL_HANDLE
from generators.contracts.model import OURS, Contract, Parameter, Rule, TensorSpec
from generators.contracts.negative_cases import broken, check_invalid, derive_invalid
from generators.data.draw import parse_values
from schemas.errors import InputError

CONTRACT = Contract(
    op="toy",
    category="pure_io",
    inputs=(
        TensorSpec("a", ("half", "float"), "NHWC", "N H 1 size", values={"uniform": [-1, 1]}),
        TensorSpec("b", ("int32",), "ARRAY", "N", values={"integers": [0, 5]}),
    ),
    outputs=(TensorSpec("c", ("half", "float"), "ARRAY", "N H*size", same_dtype_as="a"),),
    parameters=(
        Parameter("size", minimum=1, maximum=9),
        Parameter("mode", choices={"left": 0, "right": 1}, origin=OURS),
        Parameter("steps", minimum=0, length=2),
    ),
    rules=(Rule("H is even", "H % 2 == 0", breaks=({"H": 3},)),),
    zero_elements={"N": "BAD_PARAM"},
    workspace=True,
)
PARAMS = {"size": 3, "mode": 1, "steps": (1, 2)}


def plan(name: Any, dtype: Any, layout: Any, dims: Any) -> Any:
    values = None if name == "c" else parse_values({"integers": [0, 3]}, {}, dtype)
    return TensorPlan(name, dtype, layout, dims, values=values)


BASE = Case(
    "toy", "invalid", "base", PARAMS,
    (plan("a", "float", "NHWC", (2, 4, 1, 3)), plan("b", "int32", "ARRAY", (2,))),
    (plan("c", "float", "ARRAY", (2, 12)),), {},
)  # fmt: skip
DERIVED = {case.name: case for case in derive_invalid(BASE, CONTRACT)}

_NAMES = """
size_0 size_10 mode_minus1 mode_2 steps0_minus1 steps1_minus1
a_dtype_double a_dtype_int32 a_dtype_int64
b_dtype_half b_dtype_float b_dtype_double b_dtype_int64
c_dtype_half c_dtype_double c_dtype_int32 c_dtype_int64
a_layout_nchw a_layout_array
a_rank_3 a_rank_5 b_rank_2 c_rank_1 c_rank_3
a_dim2_2 a_dim2_0 a_dim3_4 a_dim3_2 b_dim0_3 b_dim0_1 c_dim0_3 c_dim0_1 c_dim1_13 c_dim1_11
h_3
a_strided b_strided c_strided a_large b_large
null_handle a_null_descriptor a_null_pointer b_null_descriptor b_null_pointer c_null_descriptor c_null_pointer
null_workspace_size workspace_null workspace_short
"""
EXPECTED = _NAMES.split()


def test_each_rule_is_broken_once_under_a_stable_name() -> None:
    assert list(DERIVED) == [f"base_{name}" for name in EXPECTED]


@pytest.mark.parametrize("name", EXPECTED)
def test_exactly_one_rule_is_broken(name: str) -> None:
    case = DERIVED[f"base_{name}"]
    assert len(broken(case, CONTRACT)) == 1
    check_invalid(case, CONTRACT)
    strided_or_large = name.endswith(("strided", "large"))
    assert case.expect == (("NOT_SUPPORTED",) if strided_or_large else ("BAD_PARAM",))
    assert case.beyond_design == (name.startswith("mode") or name == "workspace_short")


def test_large_tensors_have_no_data_and_leave_the_others_small() -> None:
    large = DERIVED["base_a_large"]
    a, b = large.inputs
    assert a.dims == (2, 2**31 // 6 + 1, 1, 3)
    assert a.values is None
    assert b.dims == (2,)
    assert b.values is not None


def test_a_wrong_dtype_takes_the_tensors_that_follow_it_along() -> None:
    case = DERIVED["base_a_dtype_double"]
    assert [each.dtype for each in (*case.inputs, *case.outputs)] == ["double", "int32", "double"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"expect": ("NOT_SUPPORTED",)}, "the contract says BAD_PARAM"),
        ({"params": PARAMS}, "found 0: nothing is wrong"),
        ({"beyond_design": False}, r"has expect, expected expect_beyond_design: mode is 2, .* neither the design nor"),
        (
            {"params": {**PARAMS, "steps": (-1, 2)}},
            r"has expect_beyond_design, expected expect: steps is .* stands in the design",
        ),
        ({"params": {**PARAMS, "mode": 7}, "faults": (NULL_HANDLE,)}, "found 2"),
    ],
)
def test_what_breaks_nothing_or_two_things_is_refused(changes: Any, message: str) -> None:
    case = replace(DERIVED["base_mode_2"], **changes)
    with pytest.raises(InputError, match=message):
        check_invalid(case, CONTRACT)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"params": {**PARAMS, "steps": (-1, 2)}, "faults": (NULL_HANDLE,)}, ""),
        ({"params": {**PARAMS, "mode": 7}, "faults": (NULL_HANDLE,)}, ""),  # one of them is demanded
        ({"params": PARAMS, "faults": (NULL_HANDLE,)}, "must break exactly 2 rules, found 1: the handle is null"),
        ({"inputs": (replace(BASE.inputs[0], strides=(24, 6, 6, 2)), BASE.inputs[1]), "faults": (NULL_HANDLE,)},
         "breaks rules with different statuses: a is strided: NOT_SUPPORTED; the handle is null: BAD_PARAM"),
    ],
)  # fmt: skip
def test_c8_several_rules_may_be_broken_that_share_their_status(changes: dict[str, Any], message: str) -> None:
    case = replace(BASE, name="two", breaks=2, expect=("BAD_PARAM",), **changes)
    if not message:
        check_invalid(case, CONTRACT)
        return
    with pytest.raises(InputError, match=message):
        check_invalid(case, CONTRACT)
