"""The teams' own case files, read from beside the project."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from schemas import proto
from schemas.casefile import read_case, write_case
from schemas.criteria import baseline_device, criteria_of
from schemas.errors import InputError

# values that disagree with the shape: told, not read (CASE_FORMAT)
_ODD = "dynamic_point_to_voxel_backward/case_1.prototxt"


def test_every_public_case_reads_and_goes_through_binary(shared: Path, tmp_path: Path) -> None:
    files = sorted((shared / "public_cases" / "prototxt").rglob("*.prototxt"))
    assert len(files) >= 83
    for file in files:
        case = read_case(file)
        assert len(criteria_of(case)) == len(case.outputs)
        assert baseline_device(case.node) in ("CPU", "GPU")
        whole = proto.parse_text(file.read_bytes().decode("utf-8-sig"), proto.Node(), str(file))
        (tmp_path / "case.pb").write_bytes(whole.SerializeToString())
        binary = read_case(tmp_path / "case.pb")
        arrays: dict[str, list[np.ndarray | None]] = {"input": [], "output": []}
        odd = False
        for role, tensors in (("input", "inputs"), ("output", "outputs")):
            for ours, theirs in zip(getattr(case, tensors), getattr(binary, tensors), strict=True):
                assert (ours.source, ours.shape, ours.dtype) == (theirs.source, theirs.shape, theirs.dtype)
                try:
                    arrays[role].append(ours.array() if ours.has_values else None)
                except InputError as error:
                    assert str(file).endswith(_ODD), error
                    odd = True
                    continue
                if ours.has_values:
                    assert ours.array().tobytes() == theirs.array().tobytes()
        assert odd == str(file).endswith(_ODD)
        if not odd:
            write_case(tmp_path / "again.pb", case.node, arrays["input"], arrays["output"])
            again = read_case(tmp_path / "again.pb")
            for role, tensors in (("input", "inputs"), ("output", "outputs")):
                for record, array in zip(getattr(again, tensors), arrays[role], strict=True):
                    if array is not None and array.size:
                        assert record.array().tobytes() == array.tobytes()


def test_the_odd_public_case_says_what_is_wrong(shared: Path) -> None:
    record = read_case(shared / "public_cases" / "prototxt" / _ODD).inputs[0]
    with pytest.raises(InputError, match="value_i holds 150 values, expected 170"):
        record.array()
    assert record.value_count() == 150


def test_the_public_fft_case(shared: Path) -> None:
    case = read_case(shared / "public_cases" / "prototxt" / "fft" / "fft_0.prototxt")
    signal, spectrum = case.inputs[0], case.outputs[0]
    assert signal.source == "value_h"  # wins over random_data
    assert (signal.strides, spectrum.dtype.name) == (None, "complex_float")  # its strides are dense
    expected = np.fft.rfft(signal.array().astype(np.float64), axis=-1)
    assert np.abs(spectrum.array() - expected).max() < 1e-5
