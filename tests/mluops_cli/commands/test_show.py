"""`mluops show`: tensors, figures, parameters, criteria, metadata; warnings where values and shape disagree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash

from mluops_cli.inspection import statistics as metrics
from schemas.protos import messages as proto
from schemas.wire import codec as wire
from tests.mluops_cli.commands.peak_memory import peak
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
    assert f"psamask_forward {file} (baseline: computed by the reference kernel in each run)" in lines
    digits = xxhash.xxh3_128_hexdigest(np.array([0, 2, np.nan, -4, np.inf, 6], "<f4").tobytes())[:12]
    assert f"input x in float NHWC [1, 1, 2, 3] -4 6 1 1 1 1 value_f {digits}" in lines
    assert "output y out float NHWC [1, 1, 2, 2] none" in lines
    assert "param psa_type = 1" in lines
    assert "criterion out: diff3 <= 0.5 (test_param)" in lines


def test_figures_are_the_same_in_any_blocks(cli: Cli, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for block in (1, 4, 6):
        monkeypatch.setattr(metrics, "_BLOCK", block)
        tensor = described(cli, file)["tensors"][0]
        found = {key: tensor[key] for key in ("min", "max", "mean", "zeros", "nan", "inf")}
        assert found == {"min": -4, "max": 6, "mean": 1, "zeros": 1, "nan": 1, "inf": 1}


def described(cli: Cli, file: Path, *options: str) -> Any:
    ran = cli("show", "--json", file, *options)
    assert ran.code == 0
    return json.loads(ran.out, parse_constant=pytest.fail)


def test_error_bounds_are_told_by_their_size(cli: Cli, tmp_path: Path) -> None:
    """The bytes themselves were printed, and --json ended with an internal error."""
    words = ("gen", "voxel_pooling_forward", "--suite", "demo", "-k", "few_points", "--out")
    assert cli(*words, tmp_path / "inline").code == 0
    case = tmp_path / "inline/voxel_pooling_forward/demo/few_points.pb"
    (bound,) = described(cli, case)["meta"]["error_bounds"]
    assert bound == {"output": "output_features", "values": f"{2 * 9 * 8 * 5 * 4} bytes", "path": ""}
    assert "\nerror bound output_features: 2880 bytes\n" in cli("show", case).out
    assert cli(*words, tmp_path / "beside", "--inline-limit", "0").code == 0
    shown = cli("show", tmp_path / "beside/voxel_pooling_forward/demo/few_points.pb").out
    assert "\nerror bound output_features: few_points.bound0." in shown


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


def test_slices_of_values(cli: Cli, file: Path) -> None:
    file.write_text(CASE.replace("[0, 2, nan, -4, inf, 6]", "[0, 0.1, nan, -4, inf, 6]"))
    tenth = float(np.float32(0.1))
    for text, expected in (
        ("x[0, 0, 1]", [-4, None, 6]),
        ("in[..., 1]", [[[tenth, None]]]),
        ("input0[0,0,:,::2]", [[0, None], [-4, 6]]),
        ("x[0,0,-1,-2]", None),
        ("x", [[[[0, tenth, None], [-4, None, 6]]]]),
    ):
        assert described(cli, file, "--values", text)["values"] == {text: expected}
    ran = cli("show", file, "--values", "x[0, 0, 0]", "--values", "x[...,2]")
    assert ran.code == 0
    assert "x[0, 0, 0]  float32 [3]\n[0. , 0.1, nan]" in ran.out
    assert "x[...,2]  float32 [1, 1, 2]\n[[[nan,  6.]]]" in ran.out


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("z", "no tensor 'z'"),
        ("inn[0]", "no tensor 'inn': did you mean 'in'?"),
        ("x[9]", "out of bounds"),
        ("x[0,0,0,0,0]", "too many indices"),
        ("x[a]", "'a' is no index"),
        ("x[0", "no tensor 'x[0'"),
        ("x[::0]", "slice step cannot be zero"),
        ("y", "no values in the file"),
    ],
)
def test_slices_that_make_no_sense(cli: Cli, file: Path, text: str, told: str) -> None:
    ran = cli("show", file, "--values", text)
    assert ran.code == 2
    assert told in ran.err


def test_slices_of_values_that_disagree_with_the_shape_are_flat(cli: Cli, file: Path) -> None:
    file.write_text(CASE.replace("[0, 2, nan, -4, inf, 6]", "[0, 2, 5, -4]"))
    assert described(cli, file, "--values", "x[1:3]")["values"] == {"x[1:3]": [2, 5]}


def test_what_is_odd_is_told_in_words(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "case.prototxt"
    path.write_text(
        'op_name: "abs"\n'
        'input { id: "h" shape { dims: 2 } layout: LAYOUT_ARRAY dtype: DTYPE_FLOAT value_h: ["0", "3F800000"]\n'
        "        random_data { seed: 4 } }\n"
        'input { id: "c" shape { dims: 1 } layout: LAYOUT_ARRAY dtype: DTYPE_COMPLEX_HALF value_i: [15360, 48128] }\n'
        'input { id: "s" shape { dims: [2, 2] dim_stride: [1, 2] } layout: LAYOUT_ARRAY dtype: DTYPE_INT32\n'
        "        value_i: [1, 2, 3, 4] }\n"
        'input { id: "e" shape { dims: 0 } layout: LAYOUT_ARRAY dtype: DTYPE_INT8 }\n'
        'input { id: "NULL_bias" shape { dims: 3 } layout: LAYOUT_ARRAY dtype: DTYPE_FLOAT }\n'
        'input { id: "q" shape { dims: 3 } layout: LAYOUT_ARRAY dtype: DTYPE_FLOAT8_E8M0FNU value_i: [1, 2, 3] }\n'
        'output { id: "y" shape {} layout: LAYOUT_ARRAY dtype: DTYPE_COMPLEX_FLOAT\n'
        "         thresholds { evaluation_threshold: 0.1 evaluation_threshold_imag: 0.2 } }\n"
        "evaluation_criterion: DIFF2"
    )
    ran = cli("show", path)
    assert ran.code == 0
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert any(
        line.startswith("input h float ARRAY [2] 0 1 0.5 1 0 0 value_h (wins over random_data) ") for line in lines
    )
    assert any(line.startswith("input c complex_half ARRAY [1] -1 1 0 0 0 0 value_i ") for line in lines)
    assert any(line.startswith("input s int32 ARRAY [2, 2] strides [1, 2] 1 4 2.5 0 0 0 value_i ") for line in lines)
    assert "input e int8 ARRAY [0] no elements" in lines
    assert "input NULL_bias float ARRAY [3] absent" in lines
    assert "criterion y: diff2 <= 0.1, imaginary part 0.2 (thresholds of output y)" in lines
    assert ran.err.count("warning") == 1
    assert "value_i can't hold values of float8_e8m0fnu" in ran.err


def _sparse_case(folder: Path, size: int) -> Path:
    """Two tensors of size bytes each, one in external data, one inline if a message holds it, all zeros and no disk."""
    node = proto.Node(op_name="abs")
    node.input.add(id="s", shape={"dims": [size // 4]}, layout=5, dtype=2, path="s.bin")
    with (folder / "s.bin").open("wb") as file:
        file.truncate(size)
    inline = proto.Tensor(id="i", shape={"dims": [size // 4]}, layout=5, dtype=2)
    if size < 1 << 30:
        head = inline.SerializeToString() + b"\x3a" + wire.encode_varint(size)
        content = node.SerializeToString() + b"\x32" + wire.encode_varint(len(head) + size) + head
    else:
        node.input.add().CopyFrom(node.input[0])
        content, size = node.SerializeToString(), 0
    with (folder / "case.pb").open("wb") as file:
        file.write(content)
        file.truncate(len(content) + size)
    return folder / "case.pb"


def test_figures_take_constant_memory(tmp_path: Path) -> None:
    assert peak("show", "--stats", _sparse_case(tmp_path, 200 << 20)) < 150


@pytest.mark.slow
def test_figures_of_three_gigabytes(tmp_path: Path) -> None:
    assert peak("show", "--stats", _sparse_case(tmp_path, 3 << 29)) < 300


def test_a_vast_shape_is_shown_at_once(tmp_path: Path) -> None:
    node = proto.Node(op_name="abs")
    node.input.add(id="x", shape={"dims": [2**20, 2**20]}, layout=5, dtype=2, value_f=[1, 2])
    (tmp_path / "case.pb").write_bytes(node.SerializeToString())
    assert peak("show", tmp_path / "case.pb") < 200


def test_d14_the_origin_of_the_baseline_is_told_truly(cli: Cli, tmp_path: Path) -> None:
    """Device GPU, which means that the file carries the baseline, was shown for what the CPU reference had made."""
    cases, again = tmp_path / "cases", tmp_path / "again"
    assert cli("gen", "psamask_forward", "--suite", "demo,invalid,zero_element", "--out", cases).code == 0

    def origin(path: Path) -> str:
        return str(described(cli, path)["baseline"])

    made = cases / "psamask_forward"
    assert origin(made / "demo/square_collect.pb") == "stored in the file, computed by the reference kernel"
    assert origin(made / "demo/empty.pb") == "none, no output has elements that are compared"
    assert origin(next((made / "invalid").glob("*.pb"))) == "none, the operator must refuse the case"
    stored = CASE.replace("dims: [1, 1, 2, 2] }", "dims: [1, 1, 2, 2] } value_f: [9, 9, 9, 9]")
    assert stored != CASE
    foreign = tmp_path / "foreign.prototxt"
    foreign.write_text(stored + "device: GPU")
    assert origin(foreign) == "stored in the file, not computed by mluops"
    assert cli("gen", "--from", foreign, "--out", again).code == 0
    assert cli("gen", "--from", made / "demo/square_collect.pb", "--out", again).code == 0
    found = {path.stem: origin(path) for path in again.rglob("*.pb")}
    assert found == {
        "foreign": "stored in the file, not computed by mluops",
        "square_collect": "stored in the file, computed by the reference kernel",
    }
    foreign.write_text(stored.replace('"psamask_forward"', '"stranger"') + "device: CPU")
    assert origin(foreign) == "stored in the file, not computed by mluops"
    foreign.write_text(CASE.replace('"psamask_forward"', '"stranger"'))
    assert origin(foreign) == "missing, and there is no reference kernel"


def test_f14_names_with_newlines_and_escapes_stay_in_one_line(cli: Cli, file: Path) -> None:
    file.write_text(CASE.replace('"in"', r'"in\n\033[31m\342\200\256"').replace("[0, 2, nan, -4, inf, 6]", "[1, 2]"))
    ran = cli("show", file)
    assert r"in\n\x1b[31m\u202e" in ran.out
    assert r"in\n\x1b[31m\u202e" in ran.err
    assert len(ran.err.splitlines()) == 1
    ran = cli("check", file)
    assert r"in\n\x1b[31m\u202e" in ran.out
    assert all(line.isprintable() for line in ran.out.splitlines())
    ran = cli("convert", file, file.with_name("a.pb"))
    assert (len(ran.err.splitlines()), ran.err.strip().isprintable()) == (1, True)


@pytest.mark.parametrize("name", ["x.bin", "x.bin.zst"])
def test_f8_external_data_of_the_wrong_size_are_not_read(cli: Cli, tmp_path: Path, name: str) -> None:
    """1 TiB that takes no space would be read for hours."""
    node = proto.Node(op_name="abs")
    node.input.add(id="x", shape={"dims": [36]}, layout=5, dtype=2, path="x.bin")
    (tmp_path / "case.pb").write_bytes(node.SerializeToString())
    with (tmp_path / name).open("wb") as file:
        if name.endswith(".zst"):
            zstandard = pytest.importorskip("zstandard")
            file.write(zstandard.ZstdCompressor().compress(bytes(1 << 28)))
        else:
            file.truncate(1 << 40)
    ran = cli("show", tmp_path / "case.pb", "--stats")
    assert ran.code == 0
    assert "expected 144 for shape [36] of float" in ran.err
    ran = cli("check", tmp_path / "case.pb")
    assert "expected 144 for shape [36] of float" in ran.out


def test_d24_a_criterion_that_is_named_twice_is_reported(cli: Cli, file: Path) -> None:
    file.write_text(
        CASE.replace("error_func: DIFF3 error_threshold: 0.5", "error_func: [DIFF3, DIFF3] error_threshold: [0.5, 0.1]")
    )
    ran = cli("show", file)
    assert "criterion out: diff3 <= 0.1 (test_param)" in ran.out
    assert "diff3 is named twice, with 0.5 and 0.1: the stricter 0.1 counts" in ran.err
