from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from generators.casegen.case_data import draw_inputs
from generators.operator_registry import operator_named
from mluops_cli.search.case_making import built_case
from mluops_cli.search.fuzz.supply import Search
from mluops_cli.search.shrinking.candidate import Symbol, candidate_of
from mluops_cli.search.shrinking.value_texts import as_dist
from schemas.errors import InputError

SMALL: dict[str, Any] = {
    "name": "small",
    "seed": 3,
    "sizes": {"N": 2, "H": 5, "W": 7},
    "params": {"psa_type": "distribute", "h_mask": 3, "w_mask": 4},
    "inputs": {"x": {"dist": {"uniform": [-1, 1]}}},
}
WRONG: dict[str, Any] = {
    "name": "wrong",
    "seed": 1,
    "params": {"psa_type": 0, "h_mask": 3, "w_mask": 4},
    "inputs": {"x": {"shape": [2, 5, 7, 13], "dist": {"uniform": [-1, 1]}}},
    "outputs": {"y": {"shape": [2, 5, 7, 35]}},
    "expect": "BAD_PARAM",
}
CHANNELS = Symbol("dims", "x", 3)


def test_an_entry_comes_out_as_it_went_in() -> None:
    assert candidate_of("psamask_forward", SMALL).entry() == SMALL


@pytest.mark.parametrize("op", ["psamask_backward", "get_indice_pairs", "roi_crop_forward", "masked_im2col_forward"])
def test_drawn_calls_come_out_as_the_same_cases(op: str) -> None:
    search = Search((op,), 1, 4096, illegal=True)
    drawn = [call for number in range(24) if (call := search.call(number)[1]) is not None]
    assert any("inputs" in call.entry for call in drawn)
    for call in drawn:
        try:
            case = built_case(op, "fuzz", call.entry)
        except InputError:  # a tensor of so few elements doesn't hold the values
            call = call.plain()
            case = built_case(op, "fuzz", call.entry)
        assert built_case(op, "fuzz", candidate_of(op, call.entry).entry()) == case


def test_what_an_illegal_call_has_wrong_is_a_number_of_its_own() -> None:
    wrong = candidate_of("psamask_forward", WRONG)
    assert wrong.numbers[CHANNELS] == 13
    lower = wrong.with_numbers({Symbol("sizes", "H"): 1, Symbol("params", "h_mask"): 1})
    assert lower.shapes() == {"x": (2, 1, 7, 13), "y": (2, 1, 7, 7)}
    assert wrong.with_numbers({CHANNELS: 11}).shapes()["x"] == (2, 5, 7, 11)


def test_values_follow_the_shape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    values = np.arange(2 * 5 * 7 * 12, dtype=np.float32).reshape(2, 5, 7, 12) ** 2
    call = candidate_of("psamask_forward", SMALL).with_values("x", values)
    smaller = call.with_numbers({Symbol("sizes", "H"): 2, Symbol("params", "w_mask"): 2})
    case = built_case("psamask_forward", "fuzz", smaller.entry(tmp_path, "case"))
    found = draw_inputs(case, operator_named("psamask_forward"))["x"]
    assert found is not None
    np.testing.assert_array_equal(found, values[:, :2, :, :6])


@pytest.mark.parametrize(
    ("values", "dist"),
    [
        ([0.0, 0.0], {"constant": 0}),
        ([1.5, 1.5, 1.5], {"constant": 1.5}),
        ([3.0, 5.0, 7.0], {"sequence": [3, 2]}),
        ([1.0, 2.0, 4.0], None),
        ([-0.0, -0.0], None),
        ([-0.0, 1.0], None),
        ([np.nan, np.nan], None),
        ([0.5, 1.5], None),
    ],
)
def test_values_that_a_dist_says(values: list[float], dist: dict[str, Any] | None) -> None:
    assert as_dist(np.array(values, np.float32)) == dist
