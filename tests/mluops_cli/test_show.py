"""`mluops show`: tensors, figures, parameters, criteria, metadata; warnings where values and shape disagree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash

from mluops_cli.inspection import figures
from tests.mluops_cli.conftest import Cli

CASE = """op_name: "psamask_forward"
input { id: "in" shape { dims: [1, 1, 2, 3] } layout: LAYOUT_NHWC dtype: DTYPE_FLOAT
        value_f: [0, 2, nan, -4, inf, 6] }
output { id: "out" shape { dims: [1, 1, 2, 2] } layout: LAYOUT_NHWC dtype: DTYPE_FLOAT }
psamask_forward_param { h_mask: 1 w_mask: 3 psa_type: 1 }
test_param { error_func: DIFF3 error_threshold: 0.5 }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "case.prototxt"
    path.write_text(CASE)
    return path


def test_the_table_names_every_tensor_parameter_and_criterion(cli: Cli, file: Path) -> None:
    ran = cli("show", file)
    assert (ran.code, ran.err) == (0, "")
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert f"psamask_forward {file} (baseline: CPU)" in lines
    digits = xxhash.xxh3_128_hexdigest(np.array([0, 2, np.nan, -4, np.inf, 6], "<f4").tobytes())[:12]
    assert f"input x in float NHWC [1, 1, 2, 3] -4 6 1 1 1 1 value_f {digits}" in lines
    assert "output y out float NHWC [1, 1, 2, 2] none" in lines
    assert "param psa_type = 1" in lines
    assert "criterion out: diff3 <= 0.5 (test_param)" in lines


def test_figures_are_the_same_in_any_blocks(cli: Cli, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for block in (1, 4, 6):
        monkeypatch.setattr(figures, "_BLOCK", block)
        tensor = described(cli, file)["tensors"][0]
        found = {key: tensor[key] for key in ("min", "max", "mean", "zeros", "nan", "inf")}
        assert found == {"min": -4, "max": 6, "mean": 1, "zeros": 1, "nan": 1, "inf": 1}


def described(cli: Cli, file: Path, *options: str) -> Any:
    ran = cli("show", "--json", file, *options)
    assert ran.code == 0
    return json.loads(ran.out, parse_constant=pytest.fail)


def test_json_holds_no_nan(cli: Cli, file: Path) -> None:
    file.write_text(CASE.replace("[0, 2, nan, -4, inf, 6]", "[nan, nan, nan, nan, nan, nan]"))
    tensor = described(cli, file)["tensors"][0]
    assert (tensor["min"], tensor["mean"], tensor["nan"]) == (None, None, 6)


def test_large_tensors_are_not_looked_into(cli: Cli, file: Path) -> None:
    assert "min" not in described(cli, file, "--limit", "23B")["tensors"][0]
    assert "min" in described(cli, file, "--limit", "24B")["tensors"][0]


def test_a_value_count_that_disagrees_is_a_warning(cli: Cli, file: Path) -> None:
    file.write_text(CASE.replace("-4, inf, 6", "-4"))
    ran = cli("show", file)
    assert ran.code == 0
    assert ran.err.startswith("warning: ")
    assert "case.prototxt" in ran.err
    assert "4 values, expected 6" in ran.err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("dtype: DTYPE_FLOAT", "dtype: DTYPE_FLAOT", "case.prototxt:2:"),
        ("dims: [1, 1, 2, 3]", "dims: [1, 1, 2, -3]", "negative"),
        ("dims: [1, 1, 2, 3]", "dims: [4294967296, 4294967296, 4294967296]", "elements"),
        ('id: "in"', "", "id"),
    ],
)
def test_a_file_that_is_no_case_is_one_message(cli: Cli, file: Path, old: str, new: str, message: str) -> None:
    file.write_text(CASE.replace(old, new, 1))
    ran = cli("show", file)
    assert (ran.code, ran.out) == (2, "")
    assert "case.prototxt" in ran.err
    assert message in ran.err
    assert ran.err.count("\n") == 1


def test_a_missing_file_is_named(cli: Cli, tmp_path: Path) -> None:
    ran = cli("show", tmp_path / "none.pb")
    assert ran.code == 2
    assert "none.pb" in ran.err


def test_public_files_of_every_operator_can_be_shown(cli: Cli, shared: Path) -> None:
    files = sorted((shared / "public_cases/prototxt").glob("*/*.prototxt"))[::5]
    assert files
    for path in files:
        assert cli("show", path).code == 0
