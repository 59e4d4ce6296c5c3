"""A contract out of drafts of cases that are written here."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from generators.contracts.model import Contract
from generators.importing.draft import CaseDraft, TensorDraft
from generators.importing.inferred_contract import contract_of_cases
from generators.importing.inferred_parameters import parameters_of_message
from generators.parameters import Parameter
from schemas.errors import InputError


def case(n: int, dtype: str = "float", place: str = "a.pb", **changes: Any) -> CaseDraft:
    """x [n, 3] and weight [n] -> y [n]."""
    x = TensorDraft((n, 3), dtype, "ARRAY", dist={"uniform": [0, 1]}, name="x")
    weight = TensorDraft((n,), dtype, "ARRAY", dist={"uniform": [0, 1]}, name="weight:0")
    y = TensorDraft((n,), dtype, "ARRAY", name="x")
    return replace(CaseDraft("op", place, [x, weight], [y]), **changes)


def inferred(*cases: CaseDraft) -> tuple[Contract, list[str]]:
    notes: Counter[str] = Counter()
    return contract_of_cases("op", cases, lambda text: notes.update([text])), list(notes)


def test_names_dtypes_shapes_and_thresholds() -> None:
    cases = [case(4), case(5, "half", criteria=[{"diff1": 0.01}]), case(6, "half", criteria=[{"diff1": 0.003}])]
    contract, notes = inferred(*cases)
    x, weight, y = contract.tensors.values()
    assert [each.name for each in (x, weight, y)] == ["x", "weight_0", "output1"]
    assert (x.dtypes, x.same_dtype_as) == (("float", "half"), None)
    assert {weight.same_dtype_as, y.same_dtype_as} == {"x"}
    assert (x.shape, weight.shape, y.shape) == ("N 3", "N", "N")
    assert [(each.name, each.threshold) for each in y.criteria] == [("diff1", 0.003)]
    assert (contract.category, contract.zero_elements) == ("composite", {"N": "BAD_PARAM"})
    assert notes == ["criterion diff1 has several thresholds: the strictest, 0.003, is taken"]


def test_a_size_of_zero_in_a_legal_case_is_legal() -> None:
    assert inferred(case(4), case(0))[0].zero_elements == {"N": "SUCCESS"}


def with_values(*stored: Any) -> list[CaseDraft]:
    cases = [case(len(each)) for each in stored]
    for draft, values in zip(cases, stored, strict=True):
        draft.inputs[1].dist, draft.inputs[1].stored = {}, np.array(values)
        draft.inputs[1].dtype = {"f": "float", "i": "int64"}[draft.inputs[1].stored.dtype.kind]
    return cases


def test_the_range_of_stored_values_is_that_of_all_cases_with_floats_rounded_outward() -> None:
    contract, _ = inferred(*with_values([0.123, -3.14159, np.nan], [98.7654, np.inf]))
    assert contract.inputs[1].values == {"uniform": [-4, 99]}
    contract, notes = inferred(*with_values([3, 17], [-1, 5, 6]))
    assert contract.inputs[1].values == {"integers": [-1, 17]}
    assert any("weight_0 holds integers" in note for note in notes)
    assert inferred(*with_values([5], [5, 5]))[0].inputs[1].values == {"constant": 5}
    assert inferred(*with_values([np.nan], [np.nan] * 2))[0].inputs[1].values == {"uniform": [-1, 1]}


def test_the_most_frequent_distribution_is_the_default_and_the_others_are_variants() -> None:
    cases = [case(4), case(5), case(6)]
    cases[0].inputs[0].dist = {"normal": [0, 2]}
    x = inferred(*cases)[0].inputs[0]
    assert (x.values, x.variants) == ({"uniform": [0, 1]}, ({"normal": [0, 2]},))


def test_parameters_without_a_message_have_the_kinds_of_their_values() -> None:
    params = {"scale": 1, "steps": [1, 2], "mode": "mean", "aligned": True, "count": 4}
    cases = [case(4, params=params, floats=frozenset({"scale"})), case(5, params={**params, "count": 5})]
    cases[0].outputs[0].shape, cases[1].outputs[0].shape = (4, 4), (5, 5)
    contract, _ = inferred(*cases)
    found = {each.name: (each.kind, each.length, each.minimum) for each in contract.parameters}
    assert found == {
        "scale": ("float", None, None),
        "steps": ("int", 2, None),
        "mode": ("string", None, None),
        "aligned": ("bool", None, None),
        "count": ("int", None, 1),
    }
    assert contract.outputs[0].shape == "B count"


def test_parameters_of_a_message_have_its_kinds_and_defaults() -> None:
    params = {"min_radius": 0, "max_radius": 1, "nsample": 8}
    contract, _ = inferred(case(4, params=params, message="ball_query_param"))
    assert contract.message == "ball_query_param"
    assert [(each.name, each.kind) for each in contract.parameters] == [
        ("min_radius", "float"),
        ("max_radius", "float"),
        ("nsample", "int"),
    ]


def test_messages_and_empty_lists_are_left_out_with_a_note() -> None:
    contract, notes = inferred(case(4, params={"inner": {"a": 1}, "list": [], "kept": 2}))
    assert contract.parameters == (Parameter("kept", text="2 in the given case files"),)
    assert len([note for note in notes if "left out" in note]) == 2


def test_the_interface_alone_tells_parameters_too() -> None:
    notes: list[str] = []
    found = {each.name: each.kind for each in parameters_of_message("dcn_param", notes.append)}
    assert found["deformable_group"] == "int"
    assert "pad" not in found
    assert any(note.startswith("parameter pad of dcn_param is a list") for note in notes)
    assert list(parameters_of_message("no_param", notes.append)) == []


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (case(5, place="b.pb", inputs=[]), "b.pb: 0 inputs, a.pb has 2: give case files with one number of them"),
        (
            case(5, place="b.pb", outputs=[TensorDraft((5, 1), "float")]),
            "b.pb: output1 has 2 dims, in a.pb 1: a contract has one number of them",
        ),
        (case(5, place="b.pb", message="dcn_param"), "b.pb: the parameters are in dcn_param, in a.pb in none"),
        (case(5, "int31", place="b.pb"), "b.pb: x has dtype int31, whose values can't be drawn or computed"),
        (
            case(5, "complex_float", place="b.pb"),
            "b.pb: x has dtype complex_float, whose values can't be drawn or computed",
        ),
    ],
)
def test_cases_without_a_contract_in_common(second: CaseDraft, message: str) -> None:
    with pytest.raises(InputError) as error:
        inferred(case(4), second)
    assert str(error.value) == message


def test_lists_of_different_lengths_have_no_contract() -> None:
    with pytest.raises(InputError, match="parameter pad has 1 and 2 values: give case files with one number"):
        inferred(case(4, params={"pad": [1]}), case(5, params={"pad": [1, 2]}))


def test_constants_that_may_be_sizes_are_told() -> None:
    cases = [case(4), case(5)]
    for draft in cases:
        draft.inputs[1].shape, draft.outputs[0].shape = (16,), (*draft.inputs[0].shape[:1], 24)
    contract, notes = inferred(*cases)
    assert [each.shape for each in contract.tensors.values()] == ["B 3", "16", "B 24"]
    assert notes == ["dims that are 16, 24 in all cases are constants: write sizes if others are legal"]


def test_values_that_a_dtype_of_the_tensor_does_not_hold_are_no_default() -> None:
    cases = [case(4), case(5), case(6, "half")]
    for draft in cases[:2]:
        draft.inputs[0].dist = {"uniform": [0, 1e6]}
    cases[0].inputs[1].dist = {"uniform": [0, float("inf")]}
    x, weight = inferred(*cases)[0].inputs
    assert (x.values, x.variants) == ({"uniform": [0, 1]}, ())
    assert (weight.values, weight.variants) == ({"uniform": [0, 1]}, ())
