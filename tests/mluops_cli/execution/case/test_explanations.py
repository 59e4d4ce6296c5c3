"""Float32 kernels with one fault each, in a run: the words name the fault, and only where it explains the numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from generators.casegen.generate import generate
from generators.casegen.write_options import WriteOptions
from generators.operator_registry import operator_named
from generators.specs.expansion import expand_operator
from mluops_cli.core.case_options import CaseOptions, WorkerSettings
from mluops_cli.execution.case import explainer
from mluops_cli.execution.case.case_run import run_case
from mluops_cli.implementations.python import Python

from . import explained

PLUGIN = Path(explained.__file__)
# A case per operator with two items or more in the batch and some channels.
CASES = {
    "roi_crop_forward": "boundary/around",
    "roi_crop_backward": "boundary/around",
    "voxel_pooling_forward": "general/points_num_points63",
}
# Outputs of roi_crop_forward lie by rois, of which an image has several; its gradients are read by rois.
NOT_OF_AN_ITEM = {
    ("roi_crop_forward", "next_item"), ("roi_crop_forward", "sum_of_items"), ("roi_crop_backward", "item_0_read"),
    ("voxel_pooling_forward", "edges"),
}  # fmt: skip
PLANTED = [(op, fault) for op in CASES for fault in explained.EXPLAINED if (op, fault) not in NOT_OF_AN_ITEM]
Cases = Callable[[str, str], Path]


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Cases:
    """(operator, suite/name) -> the case file."""
    made: dict[tuple[str, str], Path] = {}

    def file(op: str, name: str) -> Path:
        if (op, name) not in made:
            folder = tmp_path_factory.mktemp("cases")
            suite = name.partition("/")[0]
            (one,) = [each for each in expand_operator(op, {suite}) if f"{each.suite}/{each.name}" == name]
            generate(one, WriteOptions(folder))
            (made[op, name],) = folder.rglob("*.pb")
        return made[op, name]

    return file


def ran(file: Path, fault: str, **options: Any) -> dict[str, Any]:
    task = {"file": str(file), "manifest_meta": None}
    result = run_case(task, Python(f"{PLUGIN}:{fault}"), WorkerSettings(CaseOptions("python", **options)))
    json.dumps(result, allow_nan=False)
    return result


def patterns(result: dict[str, Any], op: str) -> list[dict[str, str]]:
    output = result["outputs"][explained.VALUES[op][1]]
    found: list[dict[str, str]] = output.get("explanations", output.get("diagnosis", {}).get("patterns", []))
    return found


@pytest.mark.parametrize(("op", "fault"), PLANTED)
def test_a_planted_fault_is_named(case: Cases, op: str, fault: str) -> None:
    _, word, text = explained.EXPLAINED[fault]
    result = ran(case(op, CASES[op]), fault)
    assert result["beyond_bound"] is True
    (pattern,) = patterns(result, op)
    assert pattern["word"] == word
    assert text in pattern["text"]
    output = result["outputs"][explained.VALUES[op][1]]
    assert pattern["text"] in (output["bound_sentence"] if result["status"] == "pass" else result["reason"])
    assert ("explanations" in output) == (result["status"] == "pass")


@pytest.mark.parametrize("op", CASES)
@pytest.mark.parametrize("fault", ["right", *explained.UNEXPLAINED])
def test_other_faults_and_right_kernels_are_not_explained(case: Cases, op: str, fault: str) -> None:
    result = ran(case(op, CASES[op]), fault)
    assert bool(result["beyond_bound"]) == (fault != "right")
    assert "explained by" not in json.dumps(result)
    assert not {pattern["word"] for pattern in patterns(result, op)} & {
        "rounded through half",
        "rounded through bfloat16",
    }


@pytest.mark.parametrize("op", CASES)
def test_the_term_that_is_missing_is_the_one_that_was_left_out(case: Cases, op: str) -> None:
    """Which row the kernel of the test leaves out is found by brute force: without it the outputs are the kernel's."""
    from mluops_cli.execution.case.case_run import prepare
    from schemas.casefiles.reading import read_case

    path = case(op, CASES[op])
    (pattern,) = patterns(ran(path, "term_missing"), op)
    with read_case(path) as file:
        call = prepare(file).call
        name, computed = explained.VALUES[op]
        inputs = {key: array for key, array in call.inputs.items() if array is not None}
        wrong, tried = ({key: np.empty_like(array) for key, array in call.outputs.items()} for _ in range(2))
        explained.EXPLAINED["term_missing"][0](op, inputs, wrong, dict(call.params))
        values = inputs[name]
        for place in np.ndindex(values.shape[:-1]):
            left = values.copy()
            left[place] = 0
            explained.right(op, {**inputs, name: left}, tried, dict(call.params))
            if np.array_equal(tried[computed], wrong[computed]):
                break
    assert pattern["text"].startswith(f"explained by the term of {name}{list(place)} missing")


def test_inputs_in_bfloat16_pass_and_are_named(case: Cases) -> None:
    """The thresholds accept them: what this is for."""
    result = ran(case("voxel_pooling_forward", "boundary/crowded"), "bfloat16_values")
    assert result["status"] == "pass"
    sentence = result["outputs"]["output_features"]["bound_sentence"]
    assert "x what any order of float additions explains; " in sentence
    assert sentence.endswith("; explained by input_features rounded to bfloat16")


def test_a_case_that_fails_by_its_bound_gives_the_explanation_as_reason(case: Cases) -> None:
    path = case("voxel_pooling_forward", CASES["voxel_pooling_forward"])
    result = ran(path, "bfloat16_values", bound="fail")
    assert result["status"] == "fail"
    assert result["reason"].endswith("; explained by input_features rounded to bfloat16")


def test_a_failing_case_is_explained_without_bounds_too(case: Cases) -> None:
    result = ran(case("roi_crop_forward", CASES["roi_crop_forward"]), "swapped", bound="off")
    assert result["beyond_bound"] is None
    assert [each["word"] for each in patterns(result, "roi_crop_forward")] == ["swapped coordinates"]


@pytest.mark.parametrize(("fault", "status"), [("bfloat16_values", "pass"), ("swapped", "fail")])
def test_an_explanation_that_fails_leaves_the_verdict(
    case: Cases, fault: str, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("no such thing")

    path = case("voxel_pooling_forward", CASES["voxel_pooling_forward"])
    before = ran(path, fault)
    monkeypatch.setattr(explainer, "hypotheses", broken)
    result = ran(path, fault)
    assert (result["status"], result["beyond_bound"]) == (before["status"], True) == (status, True)
    output = result["outputs"]["output_features"]
    told = output["bound_sentence"] if status == "pass" else result["reason"]
    assert "which raised ZeroDivisionError: no such thing (" in told
    assert output["bound_ratio"] == before["outputs"]["output_features"]["bound_ratio"]


def test_a_large_case_gets_the_cheap_explanations_alone(case: Cases, monkeypatch: pytest.MonkeyPatch) -> None:
    path = case("voxel_pooling_forward", CASES["voxel_pooling_forward"])
    monkeypatch.setattr(explainer, "_RECOMPUTED", 100)

    def words(fault: str) -> list[str]:
        return [each["word"] for each in patterns(ran(path, fault), "voxel_pooling_forward")]

    assert words("one_per_mille") == ["factor"]
    assert words("next_item") == ["mixed batch"]
    assert words("bfloat16_values") == []
    assert "swapped coordinates" not in words("swapped")


def test_an_operator_that_declares_nothing_gets_no_words_of_these(case: Cases, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    operator = operator_named("roi_crop_forward")
    path = case("roi_crop_forward", CASES["roi_crop_forward"])
    silent = replace(operator.contract, coordinates=(), sums=(), relations=())
    monkeypatch.setattr(type(operator), "contract", silent)
    for fault in ("swapped", "edges", "term_missing", "item_0_read"):
        assert "explained by" not in json.dumps(ran(path, fault))
