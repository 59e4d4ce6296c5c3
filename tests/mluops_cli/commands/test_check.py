"""`mluops check`: each rule, planted and found; exit codes; the teams' own files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash

from schemas.protos import messages as proto
from schemas.wire import codec as wire
from tests.mluops_cli.commands.peak_memory import peak
from tests.mluops_cli.conftest import Cli
from tests.schemas.casefiles.building import number_of

PSAMASK = """op_name: "psamask_forward"
input { id: "in" shape { dims: [1, 2, 2, 9] } layout: LAYOUT_NHWC dtype: DTYPE_FLOAT
        random_data { seed: 3 lower_bound: -1 upper_bound: 1 } }
output { id: "out" shape { dims: [1, 2, 2, 4] } layout: LAYOUT_NHWC dtype: DTYPE_FLOAT }
psamask_forward_param { h_mask: 3 w_mask: 3 psa_type: 0 }
test_param { error_func: DIFF3 error_threshold: 0 }
"""
ABS = """op_name: "abs"
device: GPU
input { id: "x" shape { dims: 2 } layout: LAYOUT_ARRAY dtype: DTYPE_FLOAT value_f: [1, -2] }
output { id: "y" shape { dims: 2 } layout: LAYOUT_ARRAY dtype: DTYPE_FLOAT value_f: [1, 2] }
test_param { error_func: DIFF1 error_threshold: 0.003 }
"""
SITES = """op_name: "get_indice_pairs"
input { id: "i" shape { dims: [3, 4] } layout: LAYOUT_ARRAY dtype: DTYPE_INT32
        value_i: [0, 0, 0, 0,  0, 0, 0, 1,  0, 1, 1, 1] }
output { id: "o" shape { dims: [3, 4] } layout: LAYOUT_ARRAY dtype: DTYPE_INT32 }
output { id: "p" shape { dims: [27, 2, 3] } layout: LAYOUT_ARRAY dtype: DTYPE_INT32 }
output { id: "n" shape { dims: 27 } layout: LAYOUT_ARRAY dtype: DTYPE_INT32 }
get_indice_pairs_param { dimnb: 5 batch: 1 pad: [1, 1, 1] stride: [1, 1, 1] dilation: [1, 1, 1]
  input_space: [2, 2, 2] filter_space: [3, 3, 3] output_space: [2, 2, 2] sub_m: 1 transpose: 0 inverse: 0 }
"""


@pytest.fixture
def check(cli: Cli, tmp_path: Path) -> Any:
    """The findings on a text (or bytes, a .pb), as (severity, rule, message)."""

    def run(content: Any, *options: str) -> list[tuple[str, str, str]]:
        path = tmp_path / ("case.pb" if isinstance(content, bytes) else "case.prototxt")
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        ran = cli("check", "--json", path, *options)
        told = json.loads(ran.out)
        assert ran.code == (1 if told["error"] + told["warning"] else 0)
        assert all(each["place"].startswith(str(path)) for each in told["findings"])
        return [(each["severity"], each["rule"], each["message"]) for each in told["findings"]]

    return run


def test_a_good_file_has_no_findings(check: Any) -> None:
    assert check(PSAMASK) == []
    assert check(ABS) == []
    assert check(SITES) == []


RULES = [
    (ABS, "value_f: [1, -2]", "value_f: 1", "error", "count", "1 value, expected 2"),
    (ABS, "value_f: [1, -2]", 'value_h: ["1", "xyz"]', "error", "values", "'xyz'"),
    (ABS, "value_f: [1, -2]", "value_ui: [1, 2]", "error", "values", "can't hold values of float"),
    (ABS, "value_f: [1, -2]", 'path: "../x.bin"', "error", "path", "leads outside"),
    (ABS, "value_f: [1, -2]", 'path: "/etc/passwd"', "error", "path", "is absolute"),
    (ABS, "value_f: [1, -2]", 'path: "none.bin"', "error", "path", "does not exist"),
    (ABS, "value_f: [1, -2]", "value_f: [1, 2] random_data {}", "note", "sources", "value_f wins over random_data"),
    (ABS, "dims: 2 } layout: LAYOUT_ARRAY dtype: DTYPE_FLOAT value_f: [1, -2]",
     "dims: 0 } layout: LAYOUT_ARRAY dtype: DTYPE_FLOAT", "note", "empty", "zero elements"),
    (ABS, "dims: 2 } layout: LAYOUT_ARRAY dtype: DTYPE_FLOAT value_f: [1, -2]",
     "dims: 2 dim_stride: 2 } layout: LAYOUT_ARRAY dtype: DTYPE_FLOAT value_f: [1, 0, -2]", "note", "strides",
     "spans 3"),
    (ABS, "dims: 2 } layout: LAYOUT_ARRAY dtype: DTYPE_FLOAT value_f: [1, -2]",
     "dims: [65536, 65536] } layout: LAYOUT_ARRAY dtype: DTYPE_INT8 random_data {}", "warning", "size", "2^31 or more"),
    (ABS, "dims: 2 } layout: LAYOUT_ARRAY dtype: DTYPE_FLOAT value_f: [1, -2]",
     "dims: 500000000 } layout: LAYOUT_ARRAY dtype: DTYPE_FLOAT random_data {}", "warning", "size", "near or beyond"),
    (PSAMASK, "lower_bound: -1", "lower_bound: 5", "warning", "bounds", "inverted bounds: lower_bound 5"),
    (PSAMASK, "lower_bound: -1", "lower_bound: 1", "warning", "bounds", "equal bounds: every value is 1"),
    (PSAMASK, "lower_bound: -1", "lower_bound: nan", "error", "bounds", "not both finite"),
    (PSAMASK, "lower_bound: -1", "lower_bound_double: 7", "warning", "bounds", "inverted bounds: lower_bound 7"),
    (PSAMASK, "seed: 3", "seed: 3 distribution: BINOMIAL", "error", "distribution", "random_data of BINOMIAL: "),
    (PSAMASK, "seed: 3", "distribution: GAUSSIAN sigma: 0", "warning", "bounds", "sigma is 0"),
    (PSAMASK, "h_mask: 3", "h_mask: 4", "error", "contract", "expected h_mask*w_mask = 12"),
    (PSAMASK, "psa_type: 0", "psa_type: 2", "error", "contract", "psa_type is 2"),
    (PSAMASK, "LAYOUT_NHWC dtype: DTYPE_FLOAT\n", "LAYOUT_NCHW dtype: DTYPE_FLOAT\n", "error", "contract", "NCHW"),
    (PSAMASK, "error_threshold: 0", "error_threshold: 0.1", "warning", "threshold", "0 of category pure_io"),
    (PSAMASK, "error_threshold: 0", "error_threshold: nan", "error", "criteria", "a threshold is nan"),
    (PSAMASK, "error_threshold: 0", "error_threshold: [0, 1]", "error", "criteria", "1 criteria, but 2 thresholds"),
    (PSAMASK, "DIFF3", "NRMSE", "error", "criteria", "NRMSE can't be judged"),
    (PSAMASK, "DIFF3 error_threshold: 0", "[DIFF3, DIFF3] error_threshold: [0, 0]", "warning", "criteria", "twice"),
    (ABS, "0.003", "0.5", "warning", "threshold", "looser than that of any category"),
    (ABS, "0.003", "0.003 error_threshold_imag: -1", "warning", "criteria", "imaginary thresholds [-1.0] don't count"),
    (ABS, "DIFF1 error_threshold: 0.003", "[DIFF1, DIFF4] error_threshold: [0.003, -1]", "warning", "criteria",
     "DIFF4 with threshold -1 is not judged"),
    (ABS, "DIFF1 error_threshold: 0.003", "[DIFF1, MAPE] error_threshold: [0.003, 0.001]", "warning", "criteria",
     "the stricter 0.001 counts"),
    (ABS, "value_f: [1, 2]", "value_f: [0, 0]", "warning", "baseline", "all of the baseline is 0"),
    (ABS, "value_f: [1, -2]", "value_f: [1, 2] random_data { lower_bound: 5 upper_bound: 5 }", "note", "sources",
     "value_f wins over random_data"),
    (PSAMASK, "LAYOUT_NHWC dtype: DTYPE_FLOAT }", "LAYOUT_NHWC dtype: DTYPE_FLOAT random_data { lower_bound: 5 } }",
     "note", "sources", "values of an output are never drawn"),
    (PSAMASK, "dtype: DTYPE_FLOAT\n        random_data { seed: 3 lower_bound: -1 upper_bound: 1 }",
     "dtype: DTYPE_HALF value_f: [" + ", ".join(["70000"] * 36) + "]", "error", "values", "value_f[0] is 70000"),
    (ABS, "value_f: [1, 2] }\n", "}\n", "error", "baseline", 'no values for "y"'),
    (ABS, "GPU", "CPU", "note", "baseline", "other runners ignore the stored outputs"),
    (ABS, 'id: "y"', 'id: "x"', "warning", "tensors", "2 tensors have the id 'x'"),
    (ABS, "value_f: [1, 2] }\n", "value_f: [1, 2] threshold_use: 0 }\n", "warning", "baseline", "nothing is judged"),
    (ABS, "test_param { error_func: DIFF1 error_threshold: 0.003 }", "", "warning", "criteria", "no criteria"),
    (ABS, "input {", "input {{", "error", "unreadable", "Expected"),
    (SITES, "0, 0, 0, 1,", "0, 0, 0, 2,", "error", "indices", "row 1: w is 2, expected 0 to 1"),
    (SITES, "0, 0, 0, 1,", "0, -1, 0, 1,", "error", "indices", "row 1: d is -1"),
    (SITES, "0, 0, 0, 1,", "0, 0, 0, 0,", "error", "indices", "[0, 0, 0, 0] is there twice"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "old", "new", "severity", "rule", "message"), RULES)
def test_each_rule_finds_what_is_planted(
    check: Any, text: str, old: str, new: str, severity: str, rule: str, message: str
) -> None:
    assert old in text
    found = check(text.replace(old, new, 1))
    assert any((each[0], each[1]) == (severity, rule) and message in each[2] for each in found), found


def test_a_baseline_that_nobody_knows(check: Any) -> None:
    found = check(ABS.replace("GPU", "CPU").replace("value_f: [1, 2] }\n", "}\n"))
    assert [each[:2] for each in found] == [("warning", "baseline"), ("error", "case")][:1]


def test_equal_seeds_are_told_with_the_default_one(check: Any) -> None:
    one, two = (f'input {{ id: "{name}" shape {{ dims: 2 }} layout: LAYOUT_ARRAY dtype: DTYPE_FLOAT ' for name in "ab")
    text = one + "random_data { seed: 23 } }\n" + two + "random_data {} }\n"
    (found,) = [each for each in check(ABS + text) if each[1] == "seed"]
    assert found[2] == '2 inputs are drawn with the same seed 23 (the default for 1 of them): "a", "b"'
    assert not [each for each in check(ABS + text.replace("23", "24")) if each[1] == "seed"]


def test_a_message_near_its_limit(cli: Cli, tmp_path: Path) -> None:
    """A sparse file of 2 GB: five tensors of 400 MB each."""
    node = proto.Node(op_name="abs")
    head = node.SerializeToString()
    size = 390 << 20
    with (tmp_path / "case.pb").open("wb") as file:
        file.write(head)
        for index in range(5):
            tensor = proto.Tensor(id=f"t{index}", shape={"dims": [size // 4]}, layout=5, dtype=2).SerializeToString()
            tensor += b"\x3a" + _varint(size)
            file.write(b"\x32" + _varint(len(tensor) + size) + tensor)
            file.seek(size, 1)
        file.truncate()
    ran = cli("check", tmp_path / "case.pb")
    assert ran.code == 1
    assert "bytes of values in one message" in ran.out


def _varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value % 128 + 128]) + _varint(value // 128)


def test_the_older_numbering_and_the_ambiguous(check: Any) -> None:
    tensor = b"\x0a\x01x\x12\x02\x08\x02\x18\x04\x20\x03\x8a\x01\x03\x01\xff\x7f"  # ARRAY 4, DOUBLE 3, value_l 1, 16383
    old = b"\x2a\x03abs\x32" + bytes([len(tensor)]) + tensor
    ((severity, rule, message),) = check(old)
    assert (severity, rule) == ("error", "numbering")
    assert "values are double, not int8" in message
    assert ("error", "numbering") not in [each[:2] for each in check(old, "--generation", "old")]
    tensor = b"\x0a\x01x\x12\x08\x08\x01\x08\x01\x08\x01\x08\x01\x18\x01\x20\x02\x3a\x04" + np.float32(1).tobytes()
    found = check(b"\x2a\x03abs\x32" + bytes([len(tensor)]) + tensor)
    assert [each[2].startswith("ambiguous") for each in found if each[:2] == ("warning", "numbering")] == [True]


def test_folders_tables_and_exit_codes(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    assert cli("check", tmp_path / "in").code == 5
    (tmp_path / "in" / "good one.prototxt").write_text(ABS)
    assert cli("check", tmp_path / "in").out == "1 case file: 0 errors, 0 warnings, 0 notes\n"
    (tmp_path / "in" / "noted.prototxt").write_text(ABS.replace("GPU", "CPU"))
    ran = cli("check", tmp_path / "in")
    assert ran.code == 0
    assert "note" in ran.out
    assert "stored outputs" not in cli("check", "-q", tmp_path / "in").out
    (tmp_path / "in" / "bad.pb").write_bytes(b"no case")
    ran = cli("check", tmp_path / "in", tmp_path / "in" / "bad.pb")
    assert ran.code == 1
    assert ran.out.splitlines()[-1] == "3 case files: 1 error, 0 warnings, 1 note"
    assert "bad.pb" in ran.out
    assert cli("check", tmp_path / "none").code == 2


def test_our_own_files_have_no_findings(cli: Cli, tmp_path: Path) -> None:
    options = ("--suite", "demo,invalid", "--out", tmp_path, "-j", "1")
    assert cli("gen", "psamask_forward", "masked_im2col_forward", *options).code == 0
    ran = cli("check", tmp_path)
    assert [line for line in ran.out.splitlines() if line.startswith(("error", "warning"))] == []
    assert ran.code == 0


def test_public_files_by_hand(cli: Cli, shared: Path) -> None:
    """Ten files looked at by eye: what each of them holds is what is found."""
    folder = shared / "public_cases" / "prototxt"
    told = json.loads(cli("check", "--json", folder).out)
    assert told["files"] >= 83
    assert told["error"] == 1
    found: dict[str, set[str]] = {}
    for each in told["findings"]:
        found.setdefault(str(Path(each["place"].split(": ")[0]).relative_to(folder)), set()).add(each["rule"])
    expected = {
        "roi_crop_forward/case_0.prototxt": {"bounds"},  # 5 to -5, 1 to -1
        "psamask_forward/case_0.prototxt": set(),
        "masked_im2col_forward/case_0.prototxt": set(),
        "dynamic_point_to_voxel_backward/case_1.prototxt": {"count", "sources"},  # 150 values for 34 x 5
        "fft/fft_0.prototxt": {"sources"},  # value_h and random_data, baseline stored
        "abs/case_1_with_stride.prototxt": {"strides", "baseline"},
        "div/case_0.prototxt": {"bounds", "baseline"},  # 1 to 1
        "yolo_box/case_0.prototxt": {"bounds", "seed", "baseline"},  # 10 to 0, seed 23 three times
        "log/log_10_fp16_1.prototxt": {"threshold", "baseline"},  # 0.02 and 0.1
        "bbox_overlaps/case_0.prototxt": {"tensors", "seed", "baseline"},  # two tensors "input", seed 23 both
    }
    for name, rules in expected.items():
        assert found.get(name, set()) - {"empty"} == rules, name


def test_dynamic_thresholds_are_not_odd(cli: Cli, tmp_path: Path) -> None:
    options = ("--suite", "general", "--out", tmp_path, "-j", "1", "--dynamic-thresholds")
    assert cli("gen", "voxel_pooling_forward", *options).code == 0
    shown = [cli("show", path).out for path in sorted(tmp_path.rglob("*.pb"))[:9]]
    assert any("(dynamic" in text for text in shown)
    told = json.loads(cli("check", "--json", tmp_path).out)
    assert "threshold" not in {each["rule"] for each in told["findings"]}


def test_e9_random_data_that_nobody_draws_has_no_bounds_to_be_wrong(check: Any) -> None:
    bounds = "random_data { lower_bound: 5 upper_bound: 5 }"
    beaten = ABS.replace("value_f: [1, -2]", f"value_f: [1, -2] {bounds}")
    output = ABS.replace("value_f: [1, 2]", f"value_f: [1, 2] {bounds}")
    undrawn = PSAMASK.replace("DTYPE_FLOAT }", f"DTYPE_FLOAT {bounds} }}")
    for text in (beaten, output, undrawn, undrawn.replace("5 upper", "7 upper")):
        assert [each for each in check(text) if each[0] != "note"] == []


@pytest.mark.parametrize(
    "asked",
    ["lower_bound: nan", "lower_bound_double: inf", "distribution: BINOMIAL", "distribution: GAUSSIAN sigma: inf"],
)
def test_e9_what_can_not_be_drawn_is_told_as_gen_does(check: Any, cli: Cli, tmp_path: Path, asked: str) -> None:
    found = check(PSAMASK.replace("seed: 3 lower_bound: -1", f"seed: 3 {asked}"))
    (message,) = [each[2] for each in found if each[0] == "error"]
    ran = cli("gen", "--from", tmp_path / "case.prototxt", "--out", tmp_path / "out", "-j", 1)
    assert ran.code == 2
    assert ran.err.splitlines()[0].endswith(f'case.prototxt: input[0] "in": {message}')


def test_e9_rows_that_the_data_do_not_give(check: Any) -> None:
    """A kernel of 3 reaches all 8 cells of the space from any site."""
    wrong = SITES.replace("sub_m: 1", "sub_m: 0")
    right = wrong.replace('"o" shape { dims: [3, 4] }', '"o" shape { dims: [8, 4] }')
    assert check(right) == []
    assert check(wrong) == [
        ("error", "indices", "output out_indices has capacity for 3 rows in dim 0, the baseline has 8")
    ]


def test_e9_a_constant_baseline_is_told_as_run_does(cli: Cli, tmp_path: Path) -> None:
    """The check finds it in exactly the cases that run mistrusts."""
    for name, numbers in (("zero", [0] * 16), ("same", [3] * 16), ("varied", list(range(16)))):
        text = ABS.replace("dims: 2", "dims: 16").replace("[1, -2]", str(numbers)).replace("[1, 2]", str(numbers))
        (tmp_path / f"{name}.prototxt").write_text(text)
    told = json.loads(cli("check", "--json", tmp_path).out)
    found = {Path(each["place"].split(":")[0]).stem for each in told["findings"] if each["rule"] == "baseline"}
    assert found == {"zero", "same"}


def test_f1_names_that_lead_elsewhere(check: Any) -> None:
    text = PSAMASK + '[mluops.mluops_case] { suite: "../../../victim" name: "x" }'
    ((severity, rule, message),) = check(text)
    assert (severity, rule) == ("error", "unreadable")
    assert "suite '../../../victim' can't be part of a path" in message


def test_f7_values_that_are_not_those_of_the_manifest(cli: Cli, tmp_path: Path) -> None:
    for folder, seed in (("one", "1"), ("two", "2")):
        options = ("--suite", "demo", "--format", "both", "--out", tmp_path / folder, "-j", "1", "--seed", seed)
        assert cli("gen", "psamask_forward", *options).code == 0
    assert cli("check", tmp_path / "one").code == 0
    for path in sorted((tmp_path / "two").rglob("square_collect.*")):
        path.replace(tmp_path / "one" / path.relative_to(tmp_path / "two"))
    ran = cli("check", "--json", "-q", tmp_path / "one")
    told = json.loads(ran.out)
    assert ran.code == 1
    assert {each["rule"] for each in told["findings"]} == {"manifest"}
    assert {Path(each["place"]).name for each in told["findings"]} == {"square_collect.pb", "square_collect.prototxt"}
    assert "the manifest says" in told["findings"][0]["message"]
    manifest = tmp_path / "one" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"files": [', '"files": [7, ', 1))
    told = json.loads(cli("check", "--json", "-q", tmp_path / "one").out)
    messages = [each["message"] for each in told["findings"] if each["rule"] == "manifest"]
    assert len(messages) == told["files"]
    assert all("the manifest is damaged" in message for message in messages)


@pytest.mark.slow
def test_the_hashes_of_large_tensors_take_constant_memory(cli: Cli, tmp_path: Path) -> None:
    """Values inline (integers, which are decoded) and in external data, of 120 MB each."""
    size = 120 << 20
    node = proto.Node(op_name="abs")
    node.input.add(id="e", shape={"dims": [size]}, layout=5, dtype=number_of("int8"), path="e.bin")
    head = proto.Tensor(id="i", shape={"dims": [size]}, layout=5, dtype=number_of("int8")).SerializeToString()
    head += b"\x42" + wire.encode_varint(size)
    folder = tmp_path / "abs" / "s"
    folder.mkdir(parents=True)
    start = node.SerializeToString() + b"\x3a" + wire.encode_varint(len(head) + size) + head
    (folder / "x.pb").write_bytes(start)
    os.truncate(folder / "x.pb", len(start) + size)
    (folder / "e.bin").touch()
    os.truncate(folder / "e.bin", size)
    zeros = xxhash.xxh3_128_hexdigest(bytes(size))
    tensors = [{"name": name, "hash": zeros} for name in "ei"]
    entry = {"files": ["abs/s/x.pb"], "tensors": tensors}
    (tmp_path / "manifest.json").write_text(json.dumps({"mluops": "0", "cases": {"abs/s/x": entry}}))
    assert peak("check", tmp_path, code=1) < 150
    told = json.loads(cli("check", "--json", tmp_path).out)
    assert {each["rule"] for each in told["findings"]}.isdisjoint({"manifest", "count", "unreadable"})
