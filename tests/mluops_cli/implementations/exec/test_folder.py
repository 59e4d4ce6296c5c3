"""`exec:` with a folder: the shipped examples, what stands in the folder, what a program answers, the options."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mluops_cli.implementations.base import BadAnswer, Call, OutOfBounds
from mluops_cli.implementations.exec import Exec
from mluops_cli.implementations.registry import implementation_named
from mluops_cli.search.case_making import make_case
from schemas.errors import InputError
from schemas.tensor_descriptor import Descriptor
from tests.conftest import PROJECT
from tests.mluops_cli.execution.conftest import write_psamask
from tests.mluops_cli.implementations.calls import psamask
from tests.mluops_cli.implementations.exec.conftest import EXAMPLE, node_of, scratch_directories

POOLING = {
    "batch_size": 1,
    "num_points": 20,
    "num_channels": 3,
    "num_voxel_x": 2,
    "num_voxel_y": 2,
    "num_voxel_z": 1,
}
COMPILER = shutil.which("cc") or shutil.which("gcc")


# ---- the examples ----


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
def test_the_c_example_passes_its_suites(suites: Path, run: Callable[..., Any], tmp_path: Path) -> None:
    program, source = tmp_path / "voxel_pooling", PROJECT / "examples" / "exec_c" / "voxel_pooling.c"
    options = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([str(COMPILER), *options, "-o", str(program), str(source)], check=True)
    ran = run(suites / "voxel_pooling_forward", "--impl", f"exec:{program} {{dir}}", "-j", "1")
    assert ran.code == 0
    skips = {case.rpartition("/")[2] for case, status in ran.statuses.items() if status == "skip"}
    assert all(name.endswith("_null_handle") for name in skips)
    assert sum(status == "pass" for status in ran.statuses.values()) > 60
    assert not scratch_directories()


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
def test_the_reader_of_the_c_example_serves_other_operators(tmp_path: Path) -> None:
    """Who copies the example for another operator reads parameters that are floats or lists, and checks layouts."""
    example = (PROJECT / "examples" / "exec_c" / "voxel_pooling.c").read_text(encoding="utf-8")
    source, program = tmp_path / "other.c", tmp_path / "other"
    source.write_text(
        example[: example.index("int main(")]
        + """int main(int argc, char **argv) {
            check(argc == 3, "usage");
            folder = argv[1];
            read_case("other");
            printf("%g %g %g\\n", value_of("scale", 0), value_of("pad", 0), value_of("pad", 2));
            static Tensor tensor;
            read_tensors(&tensor, 1);
            expect(&tensor, "float", argv[2], 2, (long long[]){2, 3});
            require(dense(&tensor), NOT_SUPPORTED);
            value_of("pad", 3);
        }""",
        encoding="utf-8",
    )
    subprocess.run([str(COMPILER), "-std=c11", "-Wno-unused-function", "-o", str(program), str(source)], check=True)
    (tmp_path / "case.txt").write_text("other\nscale 1 -0.0625\npad 3 1 2 7\n", encoding="utf-8")
    (tmp_path / "tensors.txt").write_text("input x float NHWC 2 2 3 3 1 in0.bin\n", encoding="utf-8")
    for layout, code, printed in (("NHWC", 1, "voxel_pooling: pad\n"), ("NCHW", 64 + 3, "")):
        ran = subprocess.run([program, tmp_path, layout], capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stdout, ran.stderr) == (code, "-0.0625 1 7\n", printed)


@pytest.mark.slow
@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
def test_a_read_beyond_an_input_is_named_by_address_sanitizer(run: Callable[..., Any], tmp_path: Path) -> None:
    """The build that docs/exec.md shows: the example passes, and 64 elements read behind its features are named."""
    source = (PROJECT / "examples" / "exec_c" / "voxel_pooling.c").read_text(encoding="utf-8")
    before = "    memset(sum, 0,"
    assert before in source
    reads = "volatile float past = 0; for (int k = 0; k < 64; k++) past += feature[elements(features) + k];\n"
    make_case("voxel_pooling_forward", "general", {"name": "case", "params": POOLING}, tmp_path / "cases")
    for name, text in (("right", source), ("beyond", source.replace(before, f"    {reads}{before}"))):
        path, program = tmp_path / f"{name}.c", tmp_path / name
        path.write_text(text, encoding="utf-8")
        build = [str(COMPILER), "-g", "-O1", "-fsanitize=address", "-o", str(program), str(path)]
        if subprocess.run(build, check=False, capture_output=True).returncode:
            pytest.skip("the compiler has no AddressSanitizer")
        ran = run(tmp_path / "cases", "--impl", f"exec:{program} {{dir}}", "-j", "1", "--out", tmp_path / f"out_{name}")
        (record,) = ran.records.values()
        if name == "right":
            assert record["status"] == "pass", record["reason"]
            continue
        line = text[: text.index(reads)].count("\n") + 1
        assert record["status"] == "crash"
        assert record["reason"] == (
            f"ERROR: AddressSanitizer: heap-buffer-overflow, READ of size 4, {path}:{line} in main; "
            "the program ended with exit code 1: expected 0 or 64 + an operator status"
        )


def test_the_python_example_passes(suites: Path, run: Callable[..., Any]) -> None:
    command = f"exec:{sys.executable} {EXAMPLE} {{dir}}"
    ran = run(suites / "psamask_forward", "--suite", "demo", "--impl", command, "-j", "1")
    assert ran.code == 0
    assert set(ran.statuses.values()) == {"pass", "empty"}
    timed = [record["latency_us"] for record in ran.records.values() if record["operator_status"] == "SUCCESS"]
    assert timed
    assert all(timed)


def test_hand_values_through_the_folder() -> None:
    for psa_type, expected in ((0, [[2, 3], [4, 5]]), (1, [[2, 4], [3, 5]])):
        call = psamask(psa_type)
        assert Exec(f"{sys.executable} {EXAMPLE} {{dir}}").call(call).status == "SUCCESS"
        assert call.outputs["y"].reshape(2, 2).tolist() == expected  # type: ignore[union-attr]


# ---- what stands in the folder ----


def test_the_tables_and_raw_files(script: Callable[[str], str], tmp_path: Path) -> None:
    call = psamask(descriptors={"y": None})
    strided = np.lib.stride_tricks.as_strided(np.arange(8, dtype=np.float32), (2, 2), (16, 8), writeable=False)
    large = Descriptor("ARRAY", "half", (65536, 65536))
    described = {
        "x": call.descriptors["x"],
        "s": Descriptor("ARRAY", "float", (2, 2), (4, 2)),
        "l": large,
        "y": call.descriptors["y"],
    }
    inputs = {**call.inputs, "s": strided, "l": None}
    params = {**call.params, "pad": [1, -2], "scale": 0.5, "nested": {"n": 3, "word": "text"}}
    command = script(f"import shutil, sys; shutil.copytree(sys.argv[1], {str(tmp_path / 'seen')!r})")
    assert Exec(f"{command} {{dir}}").call(Call(call.op, inputs, call.outputs, params, described)).status == "SUCCESS"
    seen = tmp_path / "seen"
    assert (seen / "case.txt").read_text().splitlines() == [
        "psamask_forward", "psa_type 1 0", "h_mask 1 1", "w_mask 1 3", "pad 2 1 -2", "scale 1 0.5", "nested.n 1 3",
    ]  # fmt: skip
    assert (seen / "tensors.txt").read_text().splitlines() == [
        "input x float NHWC 4 1 1 2 3 6 6 3 1 in0.bin",
        "input s float ARRAY 2 2 2 4 2 in1.bin",
        "input l half ARRAY 2 65536 65536 65536 1 -",
        "output y null null 0 out0.bin",
    ]
    assert np.fromfile(seen / "in0.bin", "<f4").tolist() == [1, 2, 3, 4, 5, 6]
    assert np.fromfile(seen / "in1.bin", "<f4").tolist() == [0, 1, 2, 3, 4, 5, 6]  # gaps included, from first to last
    assert np.fromfile(seen / "out0.bin", "<f4").tolist() == [77] * 4  # what the caller filled it with


def test_an_output_called_like_an_input(script: Callable[[str], str], tmp_path: Path) -> None:
    described = {"x": Descriptor("ARRAY", "float", (2,)), "x~2": Descriptor("ARRAY", "int32", (3,))}
    call = Call("some_op", {"x": np.zeros(2, "f4")}, {"x": np.zeros(3, "i4")}, {}, described)
    command = script(f"import shutil, sys; shutil.copytree(sys.argv[1], {str(tmp_path / 'seen')!r})")
    assert Exec(f"{command} {{dir}}").call(call).status == "SUCCESS"
    assert (tmp_path / "seen" / "tensors.txt").read_text().splitlines() == [
        "input x float ARRAY 1 2 1 in0.bin",
        "output x int32 ARRAY 1 3 1 out0.bin",
    ]


def rulebook() -> Call:
    """A call of an operator that has a scalar result, with nothing to read or write."""
    return Call("get_indice_pairs", {}, {}, {}, {})


def test_results_are_told(script: Callable[[str], str]) -> None:
    text = "latency_us 12.5\\n\\nworkspace_bytes\\t64\\nnum_act_out 7\\n"
    command = script(f"import sys; open(sys.argv[1] + '/results.txt', 'w').write('{text}')")
    outcome = Exec(f"{command} {{dir}}").call(rulebook())
    assert (outcome.latency_us, outcome.workspace_bytes, outcome.scalars) == (12.5, 64, {"num_act_out": 7})


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("latency_us fast", "a name and a number of 0 or more"),
        ("latency_us -5", "a name and a number of 0 or more"),
        ("latency_us nan", "a name and a number of 0 or more"),
        ("latency_us inf", "a name and a number of 0 or more"),
        ("latency_us", "a name and a number of 0 or more"),
        ("latency_us 1 2", "a name and a number of 0 or more"),
        ("workspace_bytes -1", "a name and a whole number of 0 or more"),
        ("workspace_bytes 1e3", "a name and a whole number of 0 or more"),
        ("num_act_out 3.7", "a name and a whole number"),
        ("banana 3", "only latency_us, workspace_bytes, num_act_out"),
        ("\\xff", "only latency_us, workspace_bytes, num_act_out"),
    ],
)
def test_other_results_are_bad_answers(line: str, expected: str, script: Callable[[str], str]) -> None:
    text = rf"b'latency_us 1\n\n{line}\n'"
    command = script(f"import sys; open(sys.argv[1] + '/results.txt', 'wb').write({text})")
    with pytest.raises(BadAnswer, match=rf"^results.txt line 3 is '.*', expected {expected}$"):
        Exec(f"{command} {{dir}}").call(rulebook())


def test_an_operator_without_contract_has_any_counts(script: Callable[[str], str]) -> None:
    command = script("import sys; open(sys.argv[1] + '/results.txt', 'w').write('found -3')")
    assert Exec(f"{command} {{dir}}").call(Call("some_op", {}, {}, {}, {})).scalars == {"found": -3}


@pytest.mark.parametrize("end", ["0", "67"])
@pytest.mark.parametrize("change", ["open(f, 'r+b').write(b'12345')", "open(f, 'ab').write(b'1')", "os.remove(f)"])
def test_an_input_is_to_be_left_alone(change: str, end: str, script: Callable[[str], str], tmp_path: Path) -> None:
    command = script(f"import os, sys; f = sys.argv[1] + sys.argv[2]; {change}; sys.exit({end})")
    with pytest.raises(OutOfBounds, match=r"^input 'x' was changed$"):
        Exec(f"{command} {{dir}} /in0.bin").call(psamask())
    call, x = psamask(), np.ones((1, 2, 3, 9), np.float32)
    call = Call(call.op, {"x": x}, call.outputs, {}, call.descriptors, node=node_of(write_psamask(tmp_path, "case")))
    with pytest.raises(OutOfBounds, match=r"^the case file was changed$"):
        Exec(f"{command} {{case}} '' {{out}}").call(call)
    assert not scratch_directories()


def test_an_output_of_another_size_fails(script: Callable[[str], str]) -> None:
    for change in ("open(f, 'ab').write(b'x')", "open(f, 'wb')", "__import__('os').remove(f)"):
        command = script(f"import sys; f = sys.argv[1] + '/out0.bin'; {change}")
        with pytest.raises(OutOfBounds, match=r"output y: its file has \d+ bytes after the run, expected 16"):
            Exec(f"{command} {{dir}}").call(psamask())
        assert not scratch_directories()


def test_a_program_that_writes_nothing_fails(
    script: Callable[[str], str], run: Callable[..., Any], tmp_path: Path
) -> None:
    case = write_psamask(tmp_path / "cases", "case")
    ran = run(case, "--impl", f"exec:{script('')} {{dir}}")
    assert list(ran.statuses.values()) == ["fail"]


# ---- options ----


@pytest.mark.parametrize(
    ("command", "error", "message"),
    [
        ("./program", InputError, "it has none of them"),
        ("./program {case}", InputError, "it has {case}"),
        ("./program {dir} {out}", InputError, "it has {dir}, {out}"),
        ("./program '{dir}", InputError, "can't be split into words"),
        ("no-such-program-here {dir}", InputError, "there is no program 'no-such-program-here'"),
        (f"{__file__} {{dir}}", InputError, "test_folder.py' is not executable"),
    ],
)
def test_wrong_commands(command: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        implementation_named(f"exec:{command}")
    assert message in str(raised.value)


def test_a_missing_program_is_a_wrong_command(run: Callable[..., Any], tmp_path: Path) -> None:
    case = write_psamask(tmp_path / "cases", "case")
    ran = run(case, "--impl", "exec:no-such-program-here {dir}")
    assert ran.code == 2
    assert not (tmp_path / "out").exists()
    assert "there is no program 'no-such-program-here'" in ran.err
    assert "Traceback" not in ran.err
