"""Calls without a tensor that exists with other parameters only: what the contract says of it is left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from generators.casegen.generate import generate
from generators.casegen.write_options import WriteOptions
from generators.contract_mistakes import check_contract
from generators.contracts.binding import bind
from generators.contracts.case import Case
from generators.contracts.model import Contract, Coordinate, Parameter, RowSum, TensorSpec
from generators.contracts.operator import Arrays, Operator
from generators.contracts.relations import Relation
from generators.operator_registry import operators
from generators.specs.expansion import expand
from generators.specs.loader import load_spec
from mluops_cli.core.case_options import CaseOptions, WorkerSettings
from mluops_cli.execution.case.case_run import run_case
from mluops_cli.implementations.python import Python
from mluops_cli.implementations.reference import Reference
from schemas.casefiles.reading import read_case
from schemas.criteria import Criterion
from schemas.errors import InputError

EXACT = (Criterion("diff3", 0.0),)
X = TensorSpec("x", ("float", "half"), "ARRAY", "N C", values={"uniform": [-1, 1]})
WEIGHT = TensorSpec("weight", ("float", "half"), "ARRAY", "C G", values={"uniform": [1, 2]}, exists="weighted")
Y = TensorSpec("y", ("float",), "ARRAY", "N", criteria=EXACT)
COLUMN = TensorSpec("column", ("int32",), "ARRAY", "N", criteria=EXACT, exists="mode == 1")
PARAMETERS = (
    Parameter("mode", choices={"alone": 0, "where": 1}, default=0),
    Parameter("weighted", kind="bool", default=False),
)


WRONG = """
def wrong(op, inputs, outputs, params):
    outputs["y"][...] = inputs["x"].max(axis=1) + 1
"""


class Peaks(Operator):
    """The largest element of each row, and with mode 1 its column."""

    def __init__(self, folder: Path, **said: Any) -> None:
        self.cases = folder / "peaks.yaml"  # type: ignore[misc]  # elsewhere one of the class
        given: dict[str, Any] = {"inputs": (X, WEIGHT), "outputs": (Y, COLUMN), "parameters": PARAMETERS}
        self.contract = Contract("peaks", "composite", **{**given, **said})  # type: ignore[misc]

    def reference(self, inputs: Arrays, env: Any) -> Arrays:
        outputs = {"y": inputs["x"].astype(np.float32).max(axis=1)}
        return outputs | {"column": inputs["x"].argmax(axis=1).astype(np.int32)} if env["mode"] else outputs


def cases(operator: Operator, entry: str, monkeypatch: pytest.MonkeyPatch) -> list[Case]:
    assert operator.cases is not None
    operator.cases.write_text(f"op: peaks\nsuites:\n  s:\n    - {{name: a, {entry}}}\n", encoding="utf-8")
    check_contract(operator)
    monkeypatch.setitem(operators(), "peaks", operator)
    return [*expand(load_spec(operator.cases))]


@pytest.mark.parametrize(
    ("relation", "held"),
    [
        (Relation("told", "scaling", linear="weight"), {}),
        (Relation("told", "zero", linear="weight"), {}),
        (Relation("told", "outside", constants={"weight": "3"}), {}),
        (Relation("told", "permutation", size="G", axes={"weight": 1}), {}),
        (Relation("told", "batch", size="N", axes={"x": 0, "y": 0, "column": 0}), {"told": "holds"}),
    ],
)
def test_relations_of_an_absent_tensor_are_not_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, relation: Relation, held: dict[str, str]
) -> None:
    (case,) = cases(Peaks(tmp_path, relations=(relation,)), "sizes: {N: 4, C: 3}", monkeypatch)
    generate(case, WriteOptions(tmp_path))
    task, settings = {"file": f"{tmp_path / case.id}.pb"}, WorkerSettings(CaseOptions("reference", relations=True))
    result = run_case({**task, "manifest_meta": None}, Reference(), settings)
    assert (result["status"], result.get("relations", {})) == ("pass", held)


@pytest.mark.parametrize(
    "said",
    [
        {"coordinates": (Coordinate("a", "weight", 0), Coordinate("b", "x", 1))},
        {"coordinates": (Coordinate("a", "x", 0, (), "centres", "G"), Coordinate("b", "x", 1, (), "centres", "C"))},
        {"sums": (RowSum("y", "weight"),)},
    ],
)
def test_a_diagnosis_does_without_an_absent_tensor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: dict[str, Any]
) -> None:
    (case,) = cases(Peaks(tmp_path, **said), "sizes: {N: 40, C: 3}", monkeypatch)
    generate(case, WriteOptions(tmp_path))
    (tmp_path / "kernel.py").write_text(WRONG, encoding="utf-8")
    task = {"file": f"{tmp_path / case.id}.pb", "manifest_meta": None}
    result = run_case(task, Python(f"{tmp_path}/kernel.py:wrong"), WorkerSettings(CaseOptions("python")))
    assert result["status"] == "fail"
    assert "raised" not in result["reason"]


def test_an_illegal_parameter_has_the_tensors_that_exist_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = Peaks(tmp_path)
    found = cases(operator, "sizes: {N: 4, C: 3}, params: {mode: where}, derive: true", monkeypatch)
    by_name = {case.name: case for case in found}
    assert {"a_mode_2", "a_mode_minus1", "a_column_null_pointer"} <= by_name.keys()
    for case in found:
        generate(case, WriteOptions(tmp_path))
        with read_case(tmp_path / f"{case.id}.pb") as file:
            outputs = [*bind(file, operator).outputs]
        assert outputs == (["y"] if case.name.startswith("a_mode") else ["y", "column"])


def test_an_illegal_parameter_with_which_a_further_tensor_exists_makes_no_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    column = TensorSpec("column", ("int32",), "ARRAY", "N", criteria=EXACT, exists="mode != 0")
    operator = Peaks(tmp_path, outputs=(Y, column))
    for mode, made in (("alone", set()), ("where", {"a_mode_2", "a_mode_minus1"})):
        found = cases(operator, f"sizes: {{N: 4, C: 3}}, params: {{mode: {mode}}}, derive: true", monkeypatch)
        assert {case.name for case in found if "mode" in case.name} == made


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            {"inputs": (X, WEIGHT, TensorSpec("bias", ("float",), "", "C", "weight", exists="not weighted"))},
            "same_dtype_as of bias is 'weight', expected a tensor that exists where it does",
        ),
        (
            {"parameters": (*PARAMETERS, Parameter("count", output=("column", 0)))},
            "output of count is ('column', 0), expected an output that always exists",
        ),
    ],
)
def test_a_contract_that_needs_an_absent_tensor_is_told(tmp_path: Path, said: dict[str, Any], told: str) -> None:
    operator = Peaks(tmp_path, **said)
    with pytest.raises(InputError) as raised:
        check_contract(operator)
    assert told in str(raised.value)


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("null_pointers: [weight]", "null_pointers[0]: weight exists only where weighted"),
        ("matrix: {null_pointers: [[x], [column]]}", "null_pointers[1][0]: column exists only where mode == 1"),
        ("matrix: {null_pointers: [[x], [z]]}", "matrix.null_pointers[1][0]: peaks has no tensor 'z'"),
        ("matrix: {params: [{z: 1}]}", "matrix.params[0].z: peaks has no parameter 'z'"),
        ("zip: [{inputs: [{z: {dtype: half}}]}]", "zip[0].inputs[0].z: peaks has no input 'z'"),
    ],
)
def test_a_name_that_no_call_has_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str, told: str
) -> None:
    with pytest.raises(InputError) as raised:
        cases(Peaks(tmp_path), f"sizes: {{N: 4, C: 3}}, expect: BAD_PARAM, {entry}", monkeypatch)
    assert told in str(raised.value)
