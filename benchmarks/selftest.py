"""`mluops selftest` of a network case, against judging that case once per planted fault and three times more."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.measure import Row, seconds
from generators.casegen.case_data import case_bytes
from generators.casegen.generate import generate
from generators.casegen.write_options import WriteOptions
from generators.specs.expansion import expand_operator
from mluops_cli.core.case_options import CaseOptions
from mluops_cli.execution.case.case_run import prepare
from mluops_cli.execution.case.fault_trials import selftest_case
from mluops_cli.execution.case.judgement import judge, outputs_under_test
from schemas.casefiles.reading import read_case

_OPS: Final = ("roi_crop_forward", "voxel_pooling_forward")


def rows() -> Iterator[Row]:
    """One row per operator: its largest network case."""
    for op in _OPS:
        with tempfile.TemporaryDirectory() as folder:
            case = max(expand_operator(op, {"network"}), key=case_bytes)
            generate(case, WriteOptions(Path(folder)))
            (path,) = Path(folder).rglob("*.pb")
            yield _row(case.id, path)


def _row(name: str, path: Path) -> Row:
    """The judged output is right but for the last bit, as another implementation's is."""
    without_bounds = CaseOptions(bound="off")  # as selftest_case prepares a large case
    with read_case(path) as file:
        prepared = prepare(file, without_bounds)
        bound, baseline, outputs = prepared.bound, prepared.baseline, prepared.outputs
        for output, array in baseline.items():
            np.copyto(outputs[output].array, np.nextafter(array, np.inf) if array.dtype.kind == "f" else array)

        def judging() -> None:
            judged = outputs_under_test(bound, baseline, outputs, CaseOptions())
            assert judge(bound, judged, CaseOptions()).status == "pass"

        planted = sum(trial.injected for trial in selftest_case(file).trials)
        reading, testing, judged_once = (
            min(seconds(action) for _ in range(5))
            for action in (lambda: prepare(file, without_bounds), lambda: selftest_case(file), judging)
        )
    value = (testing - reading) / (judged_once * (planted + 3))
    note = f"{testing:.3f} s, {reading:.3f} s of it reading, against {judged_once:.4f} s"
    return Row(f"{name}: selftest / ({planted} planted + 3) judgings", value, "x", 1, note=note)
