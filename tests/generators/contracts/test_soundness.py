"""The quick check of all conditions at once against one of each; and every built-in case against its contract."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from generators.contracts.checks import sound, violations, violations_one_by_one
from generators.operator_registry import operator_named, operators
from generators.specs.expansion import check_case, expand_operator
from schemas.tensor_descriptor import Descriptor


def test_every_built_in_case_passes_its_check() -> None:
    for op in operators():
        for case in expand_operator(op):
            check_case(case, operator_named(op).contract)


_DIM = st.integers(-1, 4)
_OPS = sorted(operators())


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_sound_never_says_yes_where_a_rule_is_broken(data: st.DataObject) -> None:
    """And it does say yes to every legal case of known sizes: see the next test."""
    contract = operator_named(data.draw(st.sampled_from(_OPS))).contract
    env: dict[str, Any] = {size: data.draw(st.sampled_from([0, 1, 2, 3, 2**31])) for size in contract.sizes}
    for parameter in contract.passed_parameters:
        number = st.integers(-1, 5)
        length = parameter.length if isinstance(parameter.length, int) else data.draw(st.integers(0, 9))
        env[parameter.name] = data.draw(number if parameter.length is None else st.tuples(*[number] * length))
    tensors = {}
    for name, tensor in contract.tensors.items():
        try:
            dims = contract.shape(name, env)
        except (NameError, ZeroDivisionError):
            dims = (1,)
        if data.draw(st.integers(0, 9)) == 0:
            dims = tuple(data.draw(st.lists(_DIM, max_size=5)))
        tensors[name] = Descriptor(
            "ARRAY" if data.draw(st.integers(0, 19)) == 0 else tensor.layout,
            "int8" if data.draw(st.integers(0, 19)) == 0 else tensor.dtypes[0],
            dims,
            (1,) if data.draw(st.integers(0, 19)) == 0 else None,
        )
    params = {parameter.name: env[parameter.name] for parameter in contract.passed_parameters}
    env = contract.bind({name: tensor.dims for name, tensor in tensors.items()}, params)
    if sound(contract, tensors.values(), env):
        assert violations_one_by_one(contract, tensors.values(), env) == []


def test_a_missing_parameter_is_found_in_a_call_that_is_right_otherwise() -> None:
    case = next(expand_operator("psamask_forward", {"network"}))
    contract = operator_named(case.op).contract
    tensors = {plan.name: plan.descriptor for plan in (*case.inputs, *case.outputs)}
    assert violations(contract, tensors, case.params) == []
    for name in case.params:
        for params in (dict(case.params) | {name: None}, {key: case.params[key] for key in case.params if key != name}):
            assert f"parameter {name} is missing" in [each.text for each in violations(contract, tensors, params)]


def test_sound_says_yes_to_legal_cases() -> None:
    for op in operators():
        contract = operator_named(op).contract
        for case in expand_operator(op):
            plans = (*case.inputs, *case.outputs)
            env = contract.bind({plan.name: plan.dims for plan in plans}, case.params)
            assert sound(contract, plans, env) == (case.valid or bool(case.faults)), case.id
