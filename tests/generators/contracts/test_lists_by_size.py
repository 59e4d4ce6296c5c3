"""Lists whose length a size decides: in specs and case files, told by the values of an input, out of their range."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from generators.casegen.generate import generate
from generators.casegen.write_options import WriteOptions
from generators.contract_mistakes import check_contract
from generators.contracts.binding import bind
from generators.contracts.checks import violations
from generators.contracts.model import Contract, Parameter, TensorSpec
from generators.contracts.operator import Arrays, Operator
from generators.operator_registry import operators
from generators.specs.expansion import expand
from generators.specs.loader import load_spec
from mluops_cli.core.discovery import plan_cases
from mluops_cli.search.shrinking.failing_case import case_of_file
from schemas.casefiles.reading import read_case
from schemas.errors import InputError
from schemas.tensor_descriptor import Descriptor


class Heads(Operator):
    """The sum of the first counts[r] elements of each row; a row ends at its first -1."""

    contract = Contract(
        op="heads",
        category="index",
        inputs=(TensorSpec("rows", ("int32",), "ARRAY", "R L", values={"integers": [-1, 4]}),),
        outputs=(TensorSpec("sums", ("int32",), "ARRAY", "R"),),
        parameters=(
            Parameter("counts", minimum=0, length="R", computed_from="rows"),
            Parameter("weights", kind="float", length="R+1"),
        ),
    )

    def reference(self, inputs: Arrays, env: Any) -> Arrays:
        sums = [row[:count].sum() for row, count in zip(inputs["rows"], env["counts"], strict=True)]
        return {"sums": np.array(sums, np.int32)}

    def computed_parameter(self, parameter: str, inputs: Arrays, env: Any) -> Any:
        ends = np.pad(inputs["rows"], ((0, 0), (0, 1)), constant_values=-1) == -1
        return tuple(map(int, ends.argmax(1)))


HEADS = Heads()


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    check_contract(HEADS)
    monkeypatch.setitem(operators(), "heads", HEADS)


def cases(folder: Path, entry: str) -> Any:
    path = folder / "heads.yaml"
    path.write_text(f"op: heads\nsuites:\n  s:\n    - {{name: a, {entry}}}\n", encoding="utf-8")
    return [*expand(load_spec(path))]


def read_back(folder: Path, case: Any) -> Any:
    generate(case, WriteOptions(folder))
    with read_case(folder / f"{case.id}.pb") as file:
        bound = bind(file, HEADS)
        inputs = bound.input_arrays()
        return bound.params, inputs["rows"], bound.baseline(inputs)["sums"]


def test_the_values_tell_what_a_spec_leaves_out(tmp_path: Path) -> None:
    (case,) = cases(tmp_path, "sizes: {R: 3, L: 4}, params: {weights: [1, 2, 3, 4]}")
    assert "counts" not in case.params
    params, rows, sums = read_back(tmp_path, case)
    expected = [([*row, -1].index(-1)) for row in rows.tolist()]
    assert params["counts"] == tuple(expected)
    assert len(set(expected)) > 1  # else a constant would pass
    assert sums.tolist() == [sum(row[:count]) for row, count in zip(rows.tolist(), expected, strict=True)]


def test_a_spec_may_give_them(tmp_path: Path) -> None:
    (case,) = cases(tmp_path, "sizes: {R: 3, L: 4}, params: {counts: [0, 2, 1], weights: [1, 2, 3, 0.5]}")
    params, rows, sums = read_back(tmp_path, case)
    assert params == {"counts": (0, 2, 1), "weights": (1.0, 2.0, 3.0, 0.5)}
    assert sums.tolist() == [0, rows[1, :2].sum(), rows[2, 0]]


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ("{counts: [1, 2], weights: [1, 2, 3, 4]}", "params.counts: counts is (1, 2), expected 3 integers"),
        ("{counts: [1, 2, -1], weights: [1, 2, 3, 4]}", "params.counts: counts is (1, 2, -1), expected 0 or more"),
        ("{counts: [1, 2, a], weights: [1, 2, 3, 4]}", "counts is (1, 2, 'a'), expected R integers"),
        ("{counts: 2, weights: [1, 2, 3, 4]}", "params.counts: counts is 2, expected R integers"),
        ("{weights: [1, 2, 3]}", "params.weights: weights is (1.0, 2.0, 3.0), expected 4 numbers"),
        ("{counts: [1, 2, 3]}", "params: parameter 'weights' is missing"),
    ],
)
def test_a_wrong_one_is_told(tmp_path: Path, params: str, told: str) -> None:
    with pytest.raises(InputError) as raised:
        cases(tmp_path, f"sizes: {{R: 3, L: 4}}, params: {params}")
    assert told in str(raised.value)


def test_a_list_may_hold_words_of_its_choices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a single value could be a word."""
    modes = Parameter("modes", length="R", choices={"near": 0, "far": 4})
    monkeypatch.setattr(Heads, "contract", replace(HEADS.contract, parameters=(modes,)))
    (case,) = cases(tmp_path, "sizes: {R: 3, L: 4}, params: {modes: [far, near, 4]}")
    assert case.params == {"modes": (4, 0, 4)}
    with pytest.raises(InputError, match="unknown word 'fat' for modes: did you mean 'far'"):
        cases(tmp_path, "sizes: {R: 2, L: 4}, params: {modes: [near, fat]}")


def test_each_entry_of_a_given_one_is_broken_alone(tmp_path: Path) -> None:
    entry = "sizes: {R: 2, L: 4}, derive: true, params: {weights: [1, 2, 3]"
    given = {case.name: case.params["counts"] for case in cases(tmp_path, f"{entry}, counts: [1, 2]}}")}
    assert {name: counts for name, counts in given.items() if counts != (1, 2)} == {
        "a_counts0_minus1": (-1, 2),
        "a_counts1_minus1": (1, -1),
    }
    assert not [case for case in cases(tmp_path, f"{entry}}}") if "counts" in case.name]


@pytest.mark.parametrize("wrong", ["inputs: {rows: {shape: [2, 4, 1]}}", "null_pointers: [rows]"])
def test_an_input_without_values_of_the_contract_gives_a_list_of_zeros(tmp_path: Path, wrong: str) -> None:
    """The list was empty: a second thing wrong with the call, and a kernel in C may read what is behind it."""
    entry = f"sizes: {{R: 2, L: 4}}, {wrong}, params: {{weights: [1, 2, 3]}}, expect: BAD_PARAM"
    (case,) = cases(tmp_path, entry)
    generate(case, WriteOptions(tmp_path))
    with read_case(tmp_path / f"{case.id}.pb") as file:
        assert bind(file, HEADS).params == {"counts": (0, 0), "weights": (1.0, 2.0, 3.0)}


def test_a_list_that_no_input_gives_holds_the_smallest_values_unless_it_is_long() -> None:
    """Offsets of a filter of 2^30 cells, of a call with a large tensor, would take GiB."""
    assert Parameter("n", length="N", minimum=2).smallest_list({"N": 3}) == (2, 2, 2)
    assert Parameter("n", length="N", choices={"b": 7, "a": 4}).smallest_list({"N": 1}) == (4,)
    assert Parameter("n", length="N", kind="float").smallest_list({"N": 1}) == (0.0,)
    assert Parameter("n", length="N").smallest_list({"N": 2**30}) == ()


def test_a_list_whose_length_no_tensor_gives_is_empty(tmp_path: Path) -> None:
    wrong = "inputs: {rows: {shape: [2, 4, 1]}}, outputs: {sums: {shape: [2, 1]}}, breaks: 2"
    (case,) = cases(tmp_path, f"{wrong}, params: {{weights: [1, 2, 3]}}, expect: BAD_PARAM")
    generate(case, WriteOptions(tmp_path))
    with read_case(tmp_path / f"{case.id}.pb") as file:
        assert bind(file, HEADS).params["counts"] == ()


def test_a_file_without_them_is_refused(tmp_path: Path) -> None:
    (case,) = cases(tmp_path, "sizes: {R: 3, L: 4}, params: {weights: [1, 2, 3, 4]}")
    generate(case, WriteOptions(tmp_path))
    path = tmp_path / f"{case.id}.pb"
    path.write_bytes(path.read_bytes().replace(b'"counts"', b'"amount"'))
    with read_case(path) as file, pytest.raises(InputError, match=r"counts is \(\), expected 3 integers"):
        bind(file, HEADS)


def test_a_smaller_call_of_shrink_has_its_own(tmp_path: Path) -> None:
    """A list of the failing call would not fit fewer rows."""
    (case,) = cases(tmp_path, "sizes: {R: 3, L: 4}, params: {weights: [1, 2, 3, 4]}")
    generate(case, WriteOptions(tmp_path))
    (planned,) = plan_cases([tmp_path / "heads"])
    assert "counts" not in case_of_file(planned)[1].entry()["params"]
    (case,) = cases(tmp_path, "sizes: {R: 3, L: 4}, params: {counts: [0, 0, 0], weights: [1, 2, 3, 4]}")
    generate(case, WriteOptions(tmp_path))
    assert case_of_file(planned)[1].entry()["params"]["counts"] == [0, 0, 0]


def test_a_call_without_them_breaks_no_rule_and_one_without_others_does() -> None:
    descriptors = {"rows": _descriptor(3, 4), "sums": _descriptor(3)}
    weights = (1.0, 2.0, 3.0, 4.0)
    assert violations(HEADS.contract, descriptors, {"weights": weights}) == []
    found = violations(HEADS.contract, descriptors, {"counts": (1, 1, 1)})
    assert [each.text for each in found] == ["parameter weights is missing"]


def _descriptor(*dims: int) -> Any:
    return Descriptor("ARRAY", "int32", dims, None)
