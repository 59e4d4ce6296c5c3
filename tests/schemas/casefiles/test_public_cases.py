"""The teams' own case files, read from beside the project."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from schemas.casefiles.reading import read_case, write_case
from schemas.casefiles.requested_criteria import baseline_device, criteria_of
from schemas.casefiles.tensors import TensorRecord
from schemas.errors import InputError
from schemas.protos import messages as proto

# values that disagree with the shape: told, not read (CASE_FORMAT)
_ODD = "dynamic_point_to_voxel_backward/case_1.prototxt"


def _arrays(records: list[TensorRecord]) -> list[np.ndarray | None]:
    """The values; None where there are none, or no elements, which are written alike."""
    return [record.array() if record.has_values and record.elements else None for record in records]


def _bits(arrays: list[np.ndarray | None]) -> list[bytes | None]:
    return [None if array is None else array.tobytes() for array in arrays]


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
        for ours, theirs in zip((*case.inputs, *case.outputs), (*binary.inputs, *binary.outputs), strict=True):
            assert (ours.source, ours.shape, ours.dtype) == (
                theirs.source,
                theirs.shape,
                theirs.dtype,
            )
        if str(file).endswith(_ODD):
            continue
        inputs, outputs = _arrays(case.inputs), _arrays(case.outputs)
        assert _bits(_arrays([*binary.inputs, *binary.outputs])) == _bits([*inputs, *outputs]), file
        write_case(tmp_path / "again.pb", case.node, inputs, outputs)
        again = read_case(tmp_path / "again.pb")
        assert _bits(_arrays([*again.inputs, *again.outputs])) == _bits([*inputs, *outputs]), file


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
