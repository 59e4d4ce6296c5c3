"""Case files of others: their tensors are reduced, and what comes of it is written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from generators.specs.expansion import expand
from generators.specs.loader import load_spec
from mluops_cli.core.discovery import PlannedCase
from mluops_cli.search.shrinking.failing_case import case_of_file
from mluops_cli.search.shrinking.reduction import symptom_judge
from mluops_cli.search.shrinking.shrinker import Shrinker
from mluops_cli.search.shrinking.side_by_side import tensor_lines
from mluops_cli.search.shrinking.smallest_case import Shown, run_written, write
from schemas.casefiles.reading import read_case
from schemas.errors import InputError
from tests.mluops_cli.search.shrinking.foreign_case import THEIRS
from tests.mluops_cli.search.shrinking.in_process import InProcess

KERNEL = """
from mluops_cli.search.faulty_kernels.psamask import right

def seven(op, inputs, outputs, params, descriptors, handle):
    status = right(op, inputs, outputs, params, descriptors, handle)
    if (inputs["x"] == 3.25).any():
        outputs["y"][outputs["y"] == 7] = 8
    return status
"""


def planned(folder: Path, text: str = THEIRS) -> PlannedCase:
    file = folder / "Their Case.prototxt"
    file.write_text(text)
    return PlannedCase("psamask_forward/external/Their Case", "psamask_forward", "external", str(file), 0)


def test_tensors_are_reduced_and_written(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)
    runner = InProcess(f"python:{tmp_path}/kernel.py:seven", tmp_path)
    suite, start = case_of_file(planned(tmp_path))
    shrunk = Shrinker(runner, symptom_judge()).shrink(start, suite)
    assert shrunk is not None
    assert shrunk.elements == 2
    written = write(shrunk, suite, ("why",), tmp_path / "shrunk")
    assert written.case == "psamask_forward/external/their_case"
    assert written.text.stat().st_size < 1000
    assert sorted(np.load(written.spec.with_name("their_case.x.npy")).reshape(-1)) == [3.25, 7]
    (case,) = expand(load_spec(written.spec))
    assert case.id == written.case
    assert case.criteria["y"][0].threshold == 0.001
    record, shown = run_written(runner, written)
    assert record is not None
    assert record.status == "fail"
    assert sorted(shown.inputs["x"].reshape(-1)) == [3.25, 7]
    assert 7 in shown.expected["y"]
    with read_case(written.binary) as file:
        assert file.meta is not None


def test_values_that_a_dist_says_need_no_file(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL.replace('if (inputs["x"] == 3.25).any()', "if True"))
    runner = InProcess(f"python:{tmp_path}/kernel.py:seven", tmp_path)
    suite, start = case_of_file(planned(tmp_path))
    shrunk = Shrinker(runner, symptom_judge()).shrink(start, suite)
    assert shrunk is not None
    assert shrunk.candidate.entry()["inputs"] == {"x": {"dist": {"constant": 7}}}
    write(shrunk, suite, (), tmp_path / "shrunk")
    assert list(tmp_path.rglob("shrunk/**/*.npy")) == []


def test_an_operator_without_a_contract_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="operator unheard_of has no contract here"):
        case_of_file(planned(tmp_path, THEIRS.replace('"psamask_forward"', '"unheard_of"')))


def test_tensors_stand_side_by_side() -> None:
    x = np.array([[1, 2], [3, 4.5]], np.float32)
    y, got = np.array([1, 0], np.float32), np.array([1, -0.0], np.float32)
    assert list(tensor_lines(Shown({"x": x}, {"y": y}, {"y": got}))) == [
        "x 2x2      expected y 2    got 2",
        "  1   2    1 0               1 -0*",
        "  3 4.5",
    ]


def test_large_tensors_are_not_shown() -> None:
    (line,) = tensor_lines(Shown({"x": np.zeros(129)}, {}, {}))
    assert line == "tensors of up to 129 elements are not shown; `mluops show` does"


def test_wide_tensors_stand_below_each_other() -> None:
    lines = list(tensor_lines(Shown({"x": np.full((1, 60), 0.125)}, {"y": np.zeros(1)}, {})))
    assert [line.split()[0] for line in lines] == ["x", "0.125", "expected", "0"]
