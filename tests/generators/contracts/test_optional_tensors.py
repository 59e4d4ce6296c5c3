"""Tensors that exist only with some parameters: in specs, case files, invalid calls, runs, searches and pages."""

from __future__ import annotations

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
from generators.importing.casefiles import read_dump
from generators.importing.specs import specs_of
from generators.operator_registry import operators
from generators.specs.expansion import expand
from generators.specs.loader import load_spec
from mluops_cli.core.case_options import CaseOptions, WorkerSettings
from mluops_cli.core.discovery import plan_cases
from mluops_cli.execution.case.case_run import run_case
from mluops_cli.implementations.python import Python
from mluops_cli.implementations.reference import Reference
from mluops_cli.inspection.definitions import definition
from mluops_cli.inspection.describe import contract_names
from mluops_cli.inspection.operator_pages import operator_page
from mluops_cli.search.fuzz.drawing import draw_call
from mluops_cli.search.fuzz.factors import domain_of
from mluops_cli.search.shrinking.failing_case import case_of_file
from schemas.casefiles.reading import read_case
from schemas.criteria import Criterion
from schemas.errors import InputError
from schemas.tensor_descriptor import Descriptor

EXACT = (Criterion("diff3", 0.0),)


class Peaks(Operator):
    """The largest element of each row, weighted or not, and with mode `where` its column."""

    contract = Contract(
        op="peaks",
        category="composite",
        inputs=(
            TensorSpec("x", ("float",), "ARRAY", "N C", values={"uniform": [-1, 1]}),
            TensorSpec("weight", ("float",), "ARRAY", "C", values={"uniform": [1, 2]}, exists="weighted"),
        ),
        outputs=(
            TensorSpec("y", ("float",), "ARRAY", "N", criteria=EXACT),
            TensorSpec("column", ("int32",), "ARRAY", "N", criteria=EXACT, exists="mode == 1"),
        ),
        parameters=(
            Parameter("mode", choices={"alone": 0, "where": 1}, default=0),
            Parameter("weighted", kind="bool", default=False),
        ),
        zero_elements={"N": "SUCCESS", "C": "BAD_PARAM"},
    )

    def reference(self, inputs: Arrays, env: Any) -> Arrays:
        x = inputs["x"] * inputs["weight"] if env["weighted"] else inputs["x"]
        outputs = {"y": x.max(axis=1)}
        return outputs | {"column": x.argmax(axis=1).astype(np.int32)} if env["mode"] == 1 else outputs


KERNEL = """
def later(op, inputs, outputs, params):
    outputs["y"][...] = inputs["x"].max(axis=1)
    outputs["column"][...] = inputs["x"].argmax(axis=1) + 1
"""
PEAKS = Peaks()
MODES = [("alone", False), ("where", False), ("alone", True), ("where", True)]
EACH = pytest.mark.parametrize(("mode", "weighted"), MODES)


@pytest.fixture(autouse=True)
def registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Peaks, "cases", tmp_path / "peaks.yaml")
    (tmp_path / "peaks.yaml").write_text("op: peaks\nsuites: {}\n", encoding="utf-8")
    check_contract(PEAKS)
    monkeypatch.setitem(operators(), "peaks", PEAKS)


def names(mode: str, weighted: bool) -> list[str]:
    return ["x", *(["weight"] if weighted else []), "y", *(["column"] if mode == "where" else [])]


def cases(folder: Path, entry: str) -> Any:
    entry = entry if "sizes" in entry else f"sizes: {{N: 3, C: 4}}, {entry}"
    path = folder / "peaks.yaml"
    path.write_text(f"op: peaks\nsuites:\n  s:\n    - {{name: a, {entry}}}\n", encoding="utf-8")
    return [*expand(load_spec(path))]


def written(folder: Path, mode: str, weighted: bool) -> Path:
    (case,) = cases(folder, f"params: {{mode: {mode}, weighted: {str(weighted).lower()}}}")
    assert [plan.name for plan in case.plans] == names(mode, weighted)
    generate(case, WriteOptions(folder, "both"))
    return folder / f"{case.id}.pb"


@EACH
def test_a_file_holds_those_that_exist(tmp_path: Path, mode: str, weighted: bool) -> None:
    path = written(tmp_path, mode, weighted)
    with read_case(path) as file:
        bound = bind(file, PEAKS)
        assert [*bound.inputs, *bound.outputs] == names(mode, weighted) == contract_names(file)
        x, baseline = bound.input_arrays()["x"], bound.baseline(bound.input_arrays())
    if mode == "where" and not weighted:
        assert x is not None
        assert baseline["column"].tolist() == [row.tolist().index(max(row)) for row in x]


@EACH
def test_a_run_judges_those_that_exist(tmp_path: Path, mode: str, weighted: bool) -> None:
    path = written(tmp_path, mode, weighted)
    task, settings = {"file": str(path), "manifest_meta": None}, WorkerSettings(CaseOptions("reference"))
    result = run_case(task, Reference(), settings)
    assert result["status"] == "pass", result
    assert list(result["outputs"]) == [name for name in names(mode, weighted) if name in ("y", "column")]


def test_a_diagnosis_looks_for_no_output_in_a_mode_that_lacks_it(tmp_path: Path) -> None:
    (case,) = cases(tmp_path, "sizes: {N: 40, C: 4}, params: {mode: where}")
    generate(case, WriteOptions(tmp_path))
    (tmp_path / "kernel.py").write_text(KERNEL, encoding="utf-8")
    task = {"file": str(tmp_path / f"{case.id}.pb"), "manifest_meta": None}
    result = run_case(task, Python(f"{tmp_path}/kernel.py:later"), WorkerSettings(CaseOptions("python")))
    assert result["reason"].startswith("column: 40 of 40 elements wrong (1); the baseline plus 1")


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("outputs: {column: {shape: [3]}}", "outputs.column: column exists only where mode == 1"),
        ("inputs: {weight: {dist: {constant: 1}}}", "inputs.weight: weight exists only where weighted"),
        ("criteria: {column: {diff3: 1}}", "criteria.column: column exists only where mode == 1"),
        ("params: {mode: 1}, outputs: {column: {shape: [4]}}", "outputs.column.shape: column dim 0 is 4"),
    ],
)
def test_a_spec_that_names_another_is_told(tmp_path: Path, entry: str, told: str) -> None:
    with pytest.raises(InputError) as raised:
        cases(tmp_path, entry)
    assert told in str(raised.value)


@EACH
def test_invalid_calls_are_about_those_that_exist(tmp_path: Path, mode: str, weighted: bool) -> None:
    found = cases(tmp_path, f"derive: true, params: {{mode: {mode}, weighted: {str(weighted).lower()}}}")
    assert all(
        [plan.name for plan in case.plans] == names(mode, weighted) for case in found if case.params["mode"] in (0, 1)
    )
    for name in ("weight", "column"):
        about = {case.name for case in found if f"_{name}_" in case.name}
        assert (f"a_{name}_null_pointer" in about and f"a_{name}_dtype_double" in about) == (
            name in names(mode, weighted)
        )
        assert bool(about) == (name in names(mode, weighted))


def test_a_file_with_another_number_of_tensors_is_told(tmp_path: Path) -> None:
    path = written(tmp_path, "where", weighted=False)
    path.write_bytes(path.read_bytes().replace(b'"mode": 1', b'"mode": 0'))
    with read_case(path) as file, pytest.raises(InputError, match="peaks has 2 outputs, expected 1: y"):
        bind(file, PEAKS)


def test_a_call_needs_the_descriptors_of_those_that_exist() -> None:
    one = {"x": Descriptor("ARRAY", "float", (3, 4)), "y": Descriptor("ARRAY", "float", (3,))}
    assert violations(PEAKS.contract, one, {"mode": 0, "weighted": False}) == []
    found = violations(PEAKS.contract, one, {"mode": 1, "weighted": True})
    assert [each.text for each in found] == ["weight has no descriptor", "column has no descriptor"]


@EACH
def test_shrink_and_import_say_those_that_exist(tmp_path: Path, mode: str, weighted: bool) -> None:
    path = written(tmp_path, mode, weighted)
    (planned,) = plan_cases([path])
    _, candidate = case_of_file(planned)
    assert list(candidate.shapes()) == names(mode, weighted)
    (spec,) = specs_of(read_dump(path, "a").drafts, lambda text: None, "s")
    assert {name for name in ("x", "weight", "y", "column") if f"{name}: " in spec.text} == {*names(mode, weighted)}


def test_the_page_says_when_they_exist() -> None:
    page = operator_page(PEAKS)
    assert "`weight` exists where `weighted`. `column` exists where `mode == 1`." in page


EXAMPLE = """\
```yaml
params: {mode: where}
inputs: {x: [[1, 3, 2]]}
outputs: {y: [3], column: [1]}
```
"""


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ("column: [1]", "column: [2]", "found 2, the reference kernel computes 1"),
        (", column: [1]", "", "outputs: column is missing"),
        ("mode: where", "mode: alone", "outputs.column: column exists only where mode == 1"),
    ],
)
def test_an_example_has_those_that_exist(tmp_path: Path, right: str, wrong: str, told: str) -> None:
    (tmp_path / "peaks.md").write_text(EXAMPLE, encoding="utf-8")
    assert definition(PEAKS) == EXAMPLE.strip()
    (tmp_path / "peaks.md").write_text(EXAMPLE.replace(right, wrong), encoding="utf-8")
    with pytest.raises(InputError) as raised:
        definition(PEAKS)
    assert told in str(raised.value)


def test_fuzz_draws_calls_of_each_kind(tmp_path: Path) -> None:
    domain, seen = domain_of("peaks"), set()
    for number in range(60):
        drawn = draw_call(domain, 1, number, 1 << 12)
        assert drawn is not None
        params = drawn.entry.get("params", {})
        seen.add((params.get("mode", "alone"), bool(params.get("weighted", False))))
    assert seen == set(MODES)
