"""Which criteria a case file asks for."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest

from schemas.casefiles.requested_criteria import baseline_device, criteria_of
from schemas.criteria import Criterion
from schemas.errors import InputError
from schemas.protos import messages as proto
from tests.schemas.casefiles.building import add_output, make_node, number_of, read

MAPE, SMAPE, MAXAPE, DIFF1, DIFF2, DIFF3, DIFF3_2, DIFF4 = 1, 2, 3, 6, 7, 8, 9, 10


def _criteria(folder: Path, node: Any) -> list[tuple[Criterion, ...]]:
    return criteria_of(read(folder, node))


def _two_outputs(**fields: Any) -> Any:
    node = add_output(add_output(make_node(1), 1), 1)
    node.output[0].id, node.output[1].id = "y", "z"
    node.MergeFrom(proto.Node(**fields))
    return node


def test_each_source_and_who_wins(tmp_path: Path) -> None:
    node = _two_outputs(evaluation_criterion=[DIFF1, DIFF3])
    for output, thresholds in zip(node.output, ([1, 2], [3, 4]), strict=True):
        output.thresholds.evaluation_threshold.extend(thresholds)
    source = "thresholds of output "
    assert _criteria(tmp_path, node) == [
        (Criterion("diff1", 1, source + "y"), Criterion("diff3", 2, source + "y")),
        (Criterion("diff1", 3, source + "z"), Criterion("diff3", 4, source + "z")),
    ]
    node.evaluation_threshold.extend([5, 6])
    both = (Criterion("diff1", 5, "evaluation_threshold"), Criterion("diff3", 6, "evaluation_threshold"))
    assert _criteria(tmp_path, node) == [both, both]
    node.test_param.error_func.append(DIFF2)
    node.test_param.error_threshold.append(3e-3)
    assert _criteria(tmp_path, node) == [(Criterion("diff2", 3e-3, "test_param"),)] * 2
    meta = proto.CaseMeta()
    meta.criteria.add(output="z", name="diff3_1", threshold=0.25, source="psamask.yaml:4")
    proto.set_meta(node, meta)
    assert _criteria(tmp_path, node) == [(), (Criterion("diff3_1", 0.25, "psamask.yaml:4"),)]


def test_old_names_mean_new_criteria(tmp_path: Path) -> None:
    node = _two_outputs(evaluation_criterion=[MAPE, MAXAPE, DIFF3_2], evaluation_threshold=[1, 2, 0])
    assert [criterion.name for criterion in _criteria(tmp_path, node)[0]] == ["diff1", "diff3", "diff3_2"]


def test_an_output_is_left_out(tmp_path: Path) -> None:
    node = _two_outputs(evaluation_criterion=[DIFF1], evaluation_threshold=[1])
    node.output[0].threshold_use = 0
    node.output[1].threshold_use = 1
    assert [len(criteria) for criteria in _criteria(tmp_path, node)] == [0, 1]


def test_an_infinite_threshold_leaves_the_criterion_out_for_this_output(tmp_path: Path) -> None:
    """The criteria are listed once for all outputs; one at least has to remain."""
    node = _two_outputs(evaluation_criterion=[DIFF1, DIFF3])
    for output, thresholds in zip(node.output, ([1, math.inf], [math.inf, 0]), strict=True):
        output.thresholds.evaluation_threshold.extend(thresholds)
    found = [[(each.name, each.threshold) for each in criteria] for criteria in _criteria(tmp_path, node)]
    assert found == [[("diff1", 1)], [("diff3", 0)]]
    node.output[1].thresholds.evaluation_threshold[1] = math.inf
    with pytest.raises(InputError, match=r'output\[1\] "z": every threshold is inf, expected a finite one'):
        _criteria(tmp_path, node)


@pytest.mark.parametrize("threshold", [math.nan, -1.0, math.inf])
def test_a_threshold_of_the_metadata_is_checked_too(tmp_path: Path, threshold: float) -> None:
    node = _two_outputs()
    meta = proto.CaseMeta()
    meta.criteria.add(output="z", name="diff1", threshold=threshold, source="psamask.yaml:4")
    proto.set_meta(node, meta)
    with pytest.raises(InputError, match=r"expected a finite number of 0 or more \(psamask.yaml:4\)"):
        _criteria(tmp_path, node)


def test_no_criterion_at_all(tmp_path: Path) -> None:
    assert _criteria(tmp_path, _two_outputs()) == [(), ()]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"evaluation_criterion": [DIFF1, DIFF2], "evaluation_threshold": [1]},
            "2 criteria, but 1 thresholds (evaluation_threshold)",
        ),
        ({"test_param": {"error_func": [DIFF1]}}, "1 criteria, but 0 thresholds (test_param)"),
        ({"test_param": {"error_threshold": [1]}}, "0 criteria, but 1 thresholds (test_param)"),
        ({"evaluation_criterion": [DIFF1]}, 'output[0] "y": 1 criteria, but 0 thresholds (thresholds of output y)'),
        *(
            (fields, f"a threshold is {word}, expected a finite number of 0 or more ({source})")
            for word in ("nan", "-1", "inf")
            for source, fields in {
                "evaluation_threshold": {"evaluation_criterion": [DIFF1], "evaluation_threshold": [float(word)]},
                "test_param": {"test_param": {"error_func": [DIFF1], "error_threshold": [float(word)]}},
            }.items()
        ),
        ({"evaluation_criterion": [SMAPE], "evaluation_threshold": [1]}, "criterion SMAPE can't be judged"),
    ],
)
def test_criteria_that_make_no_sense(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        _criteria(tmp_path, _two_outputs(**fields))
    assert caught.value.place is not None
    assert caught.value.place.file == str(tmp_path / "case.pb")


@pytest.mark.parametrize(
    ("fields", "device"),
    [
        ({}, "CPU"),
        ({"device": 2}, "GPU"),
        ({"test_param": {"baseline_device": 2}}, "GPU"),
        ({"device": 1, "test_param": {"baseline_device": 2}}, "CPU"),
        ({"device": 4}, "GENERATOR_CPU"),
    ],
)
def test_where_the_baseline_comes_from(fields: dict[str, Any], device: str) -> None:
    assert baseline_device(proto.Node(**fields)) == device


def test_imaginary_thresholds_of_each_source(tmp_path: Path) -> None:
    node = _two_outputs(evaluation_criterion=[DIFF1])
    for output in node.output:
        output.dtype = number_of("complex_float")
    for output, both in zip(node.output, ((1, 2), (3, 4)), strict=True):
        output.thresholds.evaluation_threshold.append(both[0])
        output.thresholds.evaluation_threshold_imag.append(both[1])

    def found() -> list[tuple[float, float | None]]:
        return [(each.threshold, each.imaginary) for output in _criteria(tmp_path, node) for each in output]

    assert found() == [(1, 2), (3, 4)]
    node.evaluation_threshold.append(5)
    assert found() == [(5, None), (5, None)]
    node.evaluation_threshold_imag.append(6)
    assert found() == [(5, 6), (5, 6)]
    node.test_param.error_func.append(DIFF2)
    node.test_param.error_threshold.append(7)
    node.test_param.error_threshold_imag.append(8)
    assert found() == [(7, 8), (7, 8)]
    node.test_param.error_threshold_imag.append(9)
    with pytest.raises(InputError, match=r"1 thresholds, but 2 imaginary ones \(test_param\)"):
        found()


def _noted(folder: Path, node: Any) -> tuple[list[tuple[str, float, float | None]], list[str]]:
    """(name, threshold, imaginary) of the first output's criteria, and the notes."""
    notes: list[str] = []
    first = criteria_of(read(folder, node), lambda place, text: notes.append(f"{place.key}: {text}"))[0]
    return [(each.name, each.threshold, each.imaginary) for each in first], notes


def test_e3_an_imaginary_threshold_of_a_real_output_is_not_read(tmp_path: Path) -> None:
    node = add_output(make_node(1), 1)
    for imaginary in ([-1.0], [math.nan], [1.0, 2.0]):
        node.ClearField("test_param")
        node.test_param.error_func.append(DIFF1)
        node.test_param.error_threshold.append(0.5)
        node.test_param.error_threshold_imag.extend(imaginary)
        node.output[0].dtype = number_of("float")
        found, notes = _noted(tmp_path, node)
        assert found == [("diff1", 0.5, None)]
        assert len(notes) == (0 if imaginary == [1.0, 2.0] else 1)
        node.output[0].dtype = number_of("complex_float")
        with pytest.raises(InputError, match="threshold"):
            _noted(tmp_path, node)


def test_e3_diff4_with_threshold_minus_1_is_not_judged(tmp_path: Path) -> None:
    node = add_output(make_node(1), 1)
    node.MergeFrom(proto.Node(evaluation_criterion=[DIFF4, DIFF1], evaluation_threshold=[-1, 0.5]))
    found, notes = _noted(tmp_path, node)
    assert found == [("diff1", 0.5, None)]
    assert notes == [
        'output[0] "y": DIFF4 with threshold -1 is not judged: '
        "it always passes in the public runner (evaluation_threshold)"
    ]
    node.evaluation_threshold[0] = -0.5
    with pytest.raises(InputError, match=r"a threshold is -0\.5"):
        _noted(tmp_path, node)


def test_d24_of_a_criterion_that_is_named_twice_the_stricter_threshold_counts(tmp_path: Path) -> None:
    node = add_output(make_node(1), 1)
    node.MergeFrom(proto.Node(evaluation_criterion=[DIFF1, DIFF3, MAPE], evaluation_threshold=[0.5, 1, 0.25]))
    for thresholds in ([0.5, 1, 0.25], [0.25, 1, 0.5]):
        node.evaluation_threshold[:] = thresholds
        found, notes = _noted(tmp_path, node)
        assert found == [("diff1", 0.25, None), ("diff3", 1, None)]
        assert len(notes) == 1
        assert "diff1 is named twice" in notes[0]
        assert "the stricter 0.25 counts (evaluation_threshold)" in notes[0]
    node.output[0].dtype = number_of("complex_float")
    node.evaluation_threshold_imag.extend([3, 1, 2])
    assert _noted(tmp_path, node)[0][0] == ("diff1", 0.25, 2)
    meta = proto.CaseMeta()
    for threshold in (2.0, 1.0, 3.0):
        meta.criteria.add(output="y", name="diff2", threshold=threshold, source="spec")
    proto.set_meta(node, meta)
    assert _noted(tmp_path, node)[0] == [("diff2", 1, None)]
