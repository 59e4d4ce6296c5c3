"""Faults planted in implementations are named rightly in the record of the run: the pattern and the coordinates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from generators.casegen.generate import generate
from generators.casegen.write_options import WriteOptions
from generators.specs.expansion import expand_operator
from mluops_cli.core.case_options import CaseOptions, WorkerSettings
from mluops_cli.execution.case import judgement
from mluops_cli.execution.case.case_run import run_case
from mluops_cli.implementations.python import Python
from mluops_cli.search.faulty_kernels.catalogue import kernel_file
from schemas.casefiles.reading import write_case
from tests.mluops_cli.execution.conftest import add_tensor, case_node

from . import diagnosed

PLUGIN = Path(diagnosed.__file__)
SETTINGS = WorkerSettings(CaseOptions("python"))
N, H, W = 3, 6, 7
SHAPE = (N, H, W, H * W)
H_MASK, W_MASK = 2 * H - 1, 2 * W - 1  # covers the feature: no zero in the output

# fault -> pattern word, part of its text, regions (kind, axis, first, last)
NAMED: dict[str, tuple[str, str, list[tuple[Any, ...]]]] = {
    "writes_nothing": ("never written", "never written", []),
    "last_channels_unwritten": ("never written", "never written", [("tail", 3, 37, 41)]),
    "all_zero": ("zero", "zeros instead of values", []),
    "last_batch_zero": ("zero", "zeros instead of values", [("index", 0, 2, 2)]),
    "other_mode": ("result of another mode", "the result of psa_type = distribute", []),
    "shifted_channels": ("shifted", "shifted by 1 along axis 3", []),
    "axes_swapped": ("transposed", "axes 1 and 2 are swapped", []),
    "batch_offset_lost": ("mixed batch", "every item holds item 0", [("tail", 0, 1, 2)]),
    "through_half": ("rounded through half", "rounded through half", []),
    "through_bfloat16": ("rounded through bfloat16", "rounded through bfloat16", []),
    "scaled": ("factor", "times 1.01", []),
    "biased": ("one-sided", "always above the baseline", []),
    "not_a_number": ("not finite", "NaN or Inf where", [("index", 1, 2, 2), ("index", 2, 3, 3), ("block", 3, 4, 9)]),
    "rows_exchanged": ("swapped", "indices 1 and 4 of axis 1", [("block", 1, 1, 4)]),
}


@pytest.fixture(scope="module")
def x() -> Any:
    return np.random.default_rng(3).uniform(0.5, 1, (N, H, W, H_MASK * W_MASK)).astype(np.float32)


@pytest.fixture(scope="module")
def case(x: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    node = case_node(suite="general", name="case")
    node.psamask_forward_param.psa_type = 0
    node.psamask_forward_param.h_mask, node.psamask_forward_param.w_mask = H_MASK, W_MASK
    add_tensor(node.input, "x", x.shape)
    add_tensor(node.output, "y", SHAPE)
    path = tmp_path_factory.mktemp("cases") / "case.pb"
    write_case(path, node, [x], [None])
    return path


def output_of(fault: str, x: Any) -> Any:
    """What the implementation writes, over NaN, which no comparison calls equal."""
    y = np.full(SHAPE, np.nan, np.float32)
    params = {"psa_type": 0, "h_mask": H_MASK, "w_mask": W_MASK}
    diagnosed.FAULTS[fault]("psamask_forward", {"x": x}, {"y": y}, params)
    return y


def test_at_least_ten() -> None:
    assert len({word for word, _, _ in NAMED.values()}) >= 10
    assert set(NAMED) == set(diagnosed.FAULTS) - {"right"}


@pytest.mark.parametrize("fault", NAMED)
def test_a_planted_fault_is_named(fault: str, case: Path, x: Any) -> None:
    word, text, regions = NAMED[fault]
    task = {"file": str(case), "manifest_meta": None}
    result = run_case(task, Python(f"{PLUGIN}:{fault}"), SETTINGS)
    assert result["status"] == "fail"
    found = result["outputs"]["y"]["diagnosis"]
    assert [pattern["word"] for pattern in found["patterns"]] == [word]
    assert text in found["patterns"][0]["text"]
    assert text in found["words"]
    kinds = ("index", "head", "tail", "block")
    places = [tuple(region.values()) for region in found["regions"] if region["kind"] in kinds]
    assert [place for place in places if place[1] is not None][: len(regions)] == regions
    expected, got = diagnosed.compute(x, {"h_mask": H_MASK, "w_mask": W_MASK}, 0), output_of(fault, x)
    wrong = np.argwhere(expected != got)
    assert found["wrong"] == len(wrong)
    assert [each["at"] for each in found["first"]] == wrong[:4].tolist()
    for each in found["first"]:
        assert each["baseline"] == expected[tuple(each["at"])]
        value = got[tuple(each["at"])]
        assert np.isnan(value) or each["output"] == value
    if np.isfinite(got).all():
        worst = np.unravel_index(np.argmax(np.abs(got.astype("f8") - expected)), SHAPE)
        assert found["worst"][0]["at"] == [int(index) for index in worst]


def test_the_right_one_has_no_diagnosis(case: Path) -> None:
    result = run_case({"file": str(case), "manifest_meta": None}, Python(f"{PLUGIN}:right"), SETTINGS)
    assert result["status"] == "pass"
    assert "diagnosis" not in result["outputs"]["y"]


def test_a_diagnosis_that_fails_leaves_the_verdict(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_mode() -> Any:
        raise ZeroDivisionError("no such mode")

    monkeypatch.setattr(judgement, "_other_modes", lambda *_: {"psa_type = distribute": no_mode})
    result = run_case({"file": str(case), "manifest_meta": None}, Python(f"{PLUGIN}:scaled"), SETTINGS)
    assert result["status"] == "fail"
    assert result["reason"].startswith("y: diff3")
    assert "; no diagnosis, which raised ZeroDivisionError: no such mode (" in result["reason"]
    assert "diagnosis" not in result["outputs"]["y"]


def test_the_console_says_it_in_a_line(case: Path, run: Any) -> None:
    ran = run(case, "--impl", f"python:{PLUGIN}:axes_swapped", "-j", "1")
    assert ran.code == 1
    (line,) = [line for line in ran.out.splitlines() if line.startswith("FAIL psamask_forward/general/case: y: ")]
    assert line.count("elements wrong") == 1
    assert "axes 1 and 2 are swapped" in line
    assert "first [0, 0, 1, 0]: " in line
    record = ran.records["psamask_forward/general/case"]
    assert record["outputs"]["y"]["diagnosis"]["patterns"][0]["word"] == "transposed"


def test_a_mode_that_takes_no_such_values_is_none_to_compare_with(tmp_path: Path) -> None:
    """With sub_m pairs have to be (j, j) in the middle; those of this case are not."""
    (case,) = (each for each in expand_operator("indice_convolution_forward", {"demo"}) if each.name == "nan_inf")
    generate(case, WriteOptions(tmp_path))
    kernel = Python(f"{kernel_file(case.op, 'last_output_lost')}:last_output_lost")
    result = run_case({"file": str(tmp_path / f"{case.id}.pb"), "manifest_meta": None}, kernel, SETTINGS)
    assert "zeros instead of values" in result["reason"]


def test_no_other_mode_where_it_would_break_the_contract(tmp_path: Path) -> None:
    """An alternative is made only of a legal choice, so it can't raise."""
    from mluops_cli.execution.case.case_run import prepare
    from mluops_cli.execution.case.judgement import _other_modes, outputs_under_test
    from schemas.casefiles.reading import read_case

    node = case_node("get_indice_pairs", name="case")
    message = node.get_indice_pairs_param
    for name, value in {"dimnb": 5, "batch": 1, "sub_m": 0, "transpose": 0, "inverse": 0, "num_act_out": 1}.items():
        setattr(message, name, value)
    spaces = {"input_space": (4, 4, 4), "output_space": (2, 2, 2), "filter_space": (3, 3, 3)}
    for name, values in {**spaces, "pad": (1, 1, 1), "stride": (2, 2, 2), "dilation": (1, 1, 1)}.items():
        getattr(message, name).extend(values)
    add_tensor(node.input, "indices", (1, 4), "INT32", "ARRAY")
    for name, dims in (("out_indices", (1, 4)), ("indice_pairs", (27, 2, 1)), ("indice_num", (27,))):
        add_tensor(node.output, name, dims, "INT32", "ARRAY")
    write_case(tmp_path / "case.pb", node, [np.zeros((1, 4), np.int32)], [None, None, None])
    with read_case(tmp_path / "case.pb") as file:
        prepared = prepare(file)
        items = outputs_under_test(prepared.bound, prepared.baseline, prepared.outputs, CaseOptions())
        assert all(not _other_modes(prepared.bound, prepared.call.inputs, item) for item in items)
