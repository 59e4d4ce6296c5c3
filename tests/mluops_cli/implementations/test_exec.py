"""`exec:` with the shipped examples, with small scripts that end in every way, and the state they leave behind."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from mluops_cli.implementations.base import AdapterError, BadAnswer, Call, CannotShow, Crashed, OutOfBounds
from mluops_cli.implementations.exec import Exec
from mluops_cli.implementations.registry import implementation_named
from mluops_cli.processes import scratch_dir
from schemas.casefiles.enum_numbering import OLD
from schemas.casefiles.reading import read_case
from schemas.errors import InputError, UnavailableError
from schemas.protos import messages as proto
from schemas.tensor_descriptor import Descriptor
from tests.conftest import PROJECT
from tests.mluops_cli.commands.test_enum_numbering import write_old
from tests.mluops_cli.execution.conftest import write_psamask
from tests.mluops_cli.implementations.calls import make_call, psamask

COMPILER = shutil.which("cc") or shutil.which("gcc")
EXAMPLE = PROJECT / "examples" / "exec_python" / "psamask.py"

# A program on case files: psamask of the written call (COLLECT, 2x3 feature, 3x3 mask) by this project's readers.
FILES = """
import sys
from pathlib import Path
import numpy as np
from schemas.casefiles.reading import read_case, write_case
with read_case(Path(sys.argv[1])) as case:
    assert case.node.psamask_forward_param.h_mask == 3
    x = case.inputs[0].array().reshape(2, 3, 3, 3)
    y = np.zeros((2, 3, 2, 3), np.float32)
    for h, w, p, q in np.ndindex(2, 3, 3, 3):
        if 0 <= p + h - 1 < 2 and 0 <= q + w - 1 < 3:
            y[h, w, p + h - 1, q + w - 1] = x[h, w, p, q]
    write_case(Path(sys.argv[2]), case.node, [None], [y.reshape(1, 2, 3, 6)])
"""

# A program that aborts in one of two cases, and one that starts another and never ends.
SOMETIMES = """
import os, runpy, sys
if "h_mask 1 1" in open(sys.argv[1] + "/case.txt").read():
    print("ouch", flush=True)
    os.abort()
runpy.run_path(EXAMPLE, run_name="__main__")
"""
ENDLESS = """
import os, subprocess, time
started = subprocess.Popen(["sleep", "600"])
open(NOTED, "w").write(f"{os.getpid()} {started.pid}")
time.sleep(600)
"""

# A program that leaves another running in a session of its own, and says if it finds one that it left before.
LEAVES = """
import os, runpy, subprocess, sys
for pid in open(NOTED).read().split() if os.path.exists(NOTED) else []:
    if os.path.exists(f"/proc/{pid}"):
        print("an earlier one runs")
left = subprocess.Popen(["sleep", "600"], start_new_session=True, env={}, cwd=sys.argv[1])
print(left.pid, file=open(NOTED, "a"))
runpy.run_path(EXAMPLE, run_name="__main__")
"""


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], str]:
    """A command that runs this Python source with what follows it."""

    def write(source: str) -> str:
        path = tmp_path / f"program_{len(list(tmp_path.iterdir()))}.py"
        path.write_text(source)
        return f"{sys.executable} {path}"

    return write


def node_of(path: Path) -> Any:
    """The Node of a case file, as the runner puts it into a call."""
    with read_case(path) as case:
        return case.node


def scratch_directories() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("*mluops-exec-*"))


@pytest.fixture(autouse=True)
def _own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scratch directories of other runs on this machine must not count."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)


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


# ---- how it ends ----


@pytest.mark.parametrize(
    ("code", "status"), [(0, "SUCCESS"), (67, "BAD_PARAM"), (71, "NOT_SUPPORTED"), (72, "NUMERICAL_OVERFLOW")]
)
def test_exit_codes_are_statuses(code: int, status: str, script: Callable[[str], str]) -> None:
    assert Exec(f"{script(f'raise SystemExit({code})')} {{dir}}").call(psamask()).status == status


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise SystemExit(1)", "ended with exit code 1: expected 0 or 64"),
        ("raise SystemExit(73)", "ended with exit code 73"),
        ("raise SystemExit(255)", r"ended with exit code 255: expected 0 or 64"),
        ("raise SystemExit(139)", r"exit code 139, signal 11 \(SIGSEGV\) of what it ran"),
        ("import os; os.abort()", r"died of signal 6 \(SIGABRT\)"),
        ("import os; os.kill(os.getpid(), 11)", r"died of signal 11 \(SIGSEGV\)"),
    ],
)
def test_any_other_end_is_a_crash(source: str, reason: str, script: Callable[[str], str]) -> None:
    with pytest.raises(Crashed, match=reason):
        Exec(f"{script(source)} {{dir}}").call(psamask())


def test_a_crash_is_the_case_s_and_the_run_goes_on(
    script: Callable[[str], str], run: Callable[..., Any], tmp_path: Path
) -> None:
    for h_mask in (1, 3):
        write_psamask(tmp_path / "cases", f"case_{h_mask}", h_mask)
    command = script(f"EXAMPLE = {str(EXAMPLE)!r}{SOMETIMES}")
    ran = run(tmp_path / "cases", "--impl", f"exec:{command} {{dir}}", "-j", "1")
    assert ran.code == 1
    crash, passed = (ran.records[f"psamask_forward/general/case_{h_mask}"] for h_mask in (1, 3))
    assert (crash["status"], passed["status"]) == ("crash", "pass")
    assert "SIGABRT" in crash["reason"]
    assert "ouch" in crash["printed"]


def test_a_timeout_ends_all_it_started_and_its_folder_goes(
    script: Callable[[str], str], run: Callable[..., Any], tmp_path: Path
) -> None:
    case = write_psamask(tmp_path / "cases", "case")
    noted = tmp_path / "pids"
    command = script(f"NOTED = {str(noted)!r}{ENDLESS}")
    ran = run(case, "--impl", f"exec:{command} {{dir}}", "--timeout", "3")
    assert list(ran.statuses.values()) == ["timeout"]
    deadline = time.monotonic() + 5
    pids = [int(word) for word in noted.read_text().split()]
    while any(map(running, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(running, pids))
    assert not scratch_directories()


def running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_sweeping_leaves_alone_what_is_in_use() -> None:
    with scratch_dir.scratch_directory() as used:
        scratch_dir.sweep()
        assert used.is_dir()
    assert not scratch_directories()


def test_a_directory_that_was_written_to_while_it_was_removed_is_swept() -> None:
    left = Path(tempfile.gettempdir()) / "mluops-exec-left"
    (left / "deep").mkdir(parents=True)
    scratch_dir.sweep()
    assert not scratch_directories()


def test_what_a_program_left_running_ends_with_the_call(
    script: Callable[[str], str], run: Callable[..., Any], tmp_path: Path
) -> None:
    for number in range(2):
        write_psamask(tmp_path / "cases", f"case{number}")
    noted = tmp_path / "pids"
    command = script(f"NOTED, EXAMPLE = {str(noted)!r}, {str(EXAMPLE)!r}{LEAVES}")
    ran = run(tmp_path / "cases", "--impl", f"exec:{command} {{dir}}", "-j", "1")
    assert set(ran.statuses.values()) == {"pass"}
    assert len(noted.read_text().split()) == 2
    assert "an earlier one runs" not in "".join(record["printed"] for record in ran.records.values())
    assert not scratch_directories()


# ---- case files ----


def test_case_files(script: Callable[[str], str], run: Callable[..., Any], tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    case = write_psamask(tmp_path / "cases", "case")
    ran = run(case, "--impl", f"exec:{script(FILES)} {{case}} {{out}}")
    assert list(ran.statuses.values()) == ["pass"]


def test_an_answer_in_text_format(script: Callable[[str], str], tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    path = write_psamask(tmp_path / "cases", "case")
    call = psamask()
    inputs = {"x": np.arange(1, 55, dtype=np.float32).reshape(1, 2, 3, 9)}
    outputs = {"y": np.full((1, 2, 3, 6), 77, np.float32)}
    made = Call(call.op, inputs, outputs, call.params, call.descriptors, node=node_of(path))
    assert Exec(f"{script(FILES)} {{case}} {{out}}.prototxt").call(made).status == "SUCCESS"
    # Position (0, 0): cells (0, 0), (0, 1), (1, 0), (1, 1) are mask cells 4, 5, 7, 8 of 1..9.
    assert outputs["y"][0, 0, 0].tolist() == [5, 6, 0, 8, 9, 0]


def test_a_case_file_tells_no_answers(
    script: Callable[[str], str], run: Callable[..., Any], cli: Any, tmp_path: Path
) -> None:
    made = cli("gen", "psamask_forward", "--suite", "demo", "--out", tmp_path / "cases")
    assert made.code == 0
    kept = tmp_path / "kept.pb"
    command = script(f"import shutil, sys; [shutil.copy(sys.argv[1], t) for t in (sys.argv[2], {str(kept)!r})]")
    case = tmp_path / "cases" / "psamask_forward" / "demo" / "square_collect.pb"
    with read_case(case) as original:
        assert original.outputs[0].has_values
    ran = run(case, "--impl", f"exec:{command} {{case}} {{out}}")
    assert "pass" not in ran.statuses.values()
    with read_case(kept) as told:
        assert told.inputs[0].has_values
        assert not told.outputs[0].has_values
        meta = proto.get_meta(told.node)
    assert meta is not None
    assert meta.name
    assert [*meta.expect, *meta.origins, *meta.tags, *meta.withheld] == []


def test_case_files_that_are_not_what_was_asked_for(script: Callable[[str], str], tmp_path: Path) -> None:
    call = make_call("psamask_forward", dict(psamask().inputs), dict(psamask().outputs), {}, "NHWC")
    path = write_psamask(tmp_path, "case")
    call = Call(
        call.op, {"x": np.ones((1, 2, 3, 9), np.float32)}, call.outputs, {}, call.descriptors, node=node_of(path)
    )
    with pytest.raises(ValueError, match=r"wrote no \{out\}"):
        Exec(f"{script('')} {{case}} {{out}}").call(call)
    copies = script("import shutil, sys; shutil.copy(sys.argv[1], sys.argv[2])")
    with pytest.raises(InputError, match="no values are stored"):
        Exec(f"{copies} {{case}} {{out}}").call(call)


@pytest.mark.parametrize("fault", ["null_handle", "workspace:null", "workspace:short", "null_workspace_size"])
def test_faults_that_no_program_sees(fault: str) -> None:
    with pytest.raises(CannotShow, match=fault):
        Exec("true {dir}").call(psamask(faults=(fault,)))


def test_faults_that_only_a_folder_shows(tmp_path: Path) -> None:
    program = f"{sys.executable} {EXAMPLE} {{dir}}"
    null = psamask(faults=("null_pointer:x",))
    null = Call(null.op, {"x": None}, null.outputs, null.params, null.descriptors, null.faults)
    for call in (null, psamask(faults=("null_descriptor:y",), descriptors={"y": None})):
        assert Exec(program).call(call).status == "BAD_PARAM"
        with pytest.raises(CannotShow, match="a case file can't show the fault"):
            Exec("true {case} {out}").call(call)


# ---- B10: what the adapter itself can't do is no fault of the program ----


def test_b10_a_file_of_the_older_numbering_is_not_read_again(
    script: Callable[[str], str], run: Callable[..., Any], tmp_path: Path
) -> None:
    command = script("import shutil, sys; shutil.copy(sys.argv[1], sys.argv[3]); shutil.copy(sys.argv[1], sys.argv[2])")
    seen = tmp_path / "seen.pb"
    ran = run(write_old(tmp_path), "--impl", f"exec:{command} {{case}} {{out}} {seen}", "--generation", OLD)
    (record,) = ran.records.values()
    assert "no values are stored" in record["reason"]  # of y in the copy: the program ran
    with read_case(seen) as written:
        assert written.inputs[0].dtype.name == "double"
        assert written.inputs[0].array().tolist() == list(range(8))


@pytest.mark.parametrize("exchange", ["{dir}", "{case} {out}"])
def test_b10_files_that_cannot_be_written_are_the_adapter_s(exchange: str, tmp_path: Path) -> None:
    call = psamask()
    path = write_psamask(tmp_path, "case", h_mask=4001)
    x = np.ones((1, 2, 3, 3 * 4001), np.float32)
    call = Call(call.op, {"x": x}, call.outputs, {}, call.descriptors, node=node_of(path))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, hard))  # as a full disk: a write ends short
    try:
        with pytest.raises(AdapterError, match=r"^exec: can't write the program's files: (?!.*shape)"):
            Exec(f"true {exchange}").call(call)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not scratch_directories()


def test_b10_an_adapter_error_is_exit_code_3_and_blames_the_tool(run: Callable[..., Any], tmp_path: Path) -> None:
    case = write_psamask(tmp_path / "cases", "case")
    (tmp_path / "broken.py").write_text(
        "from mluops_cli import AdapterError, Implementation\n"
        "class Broken(Implementation):\n"
        "    name = 'broken'\n"
        "    def call(self, call): raise AdapterError('broken: the disk is full')\n"
        "IMPLEMENTATIONS = (Broken,)\n"
    )
    ran = run(case, "--plugin", tmp_path / "broken.py", "--impl", "broken")
    (record,) = ran.records.values()
    assert (ran.code, record["status"], record["blame"]) == (3, "error", "tool")
    assert record["reason"] == "broken: the disk is full"


# ---- options ----


@pytest.mark.parametrize(
    ("command", "error", "message"),
    [
        ("./program", InputError, "it has none of them"),
        ("./program {case}", InputError, "it has {case}"),
        ("./program {dir} {out}", InputError, "it has {dir}, {out}"),
        ("./program '{dir}", InputError, "can't be split into words"),
        ("no-such-program-here {dir}", UnavailableError, "there is no program 'no-such-program-here'"),
    ],
)
def test_wrong_commands(command: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        implementation_named(f"exec:{command}")
    assert message in str(raised.value)


def test_a_missing_program_is_exit_code_3(run: Callable[..., Any], tmp_path: Path) -> None:
    case = write_psamask(tmp_path / "cases", "case")
    ran = run(case, "--impl", "exec:no-such-program-here {dir}")
    assert ran.code == 3
    assert "there is no program 'no-such-program-here'" in ran.err
    assert "Traceback" not in ran.err


def test_a_killed_supervisor_takes_the_program_along(script: Callable[[str], str], tmp_path: Path) -> None:
    case = write_psamask(tmp_path / "cases", "case")
    noted = tmp_path / "pid"
    source = f"import os, time; open({str(noted)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    command = [sys.executable, "-m", "mluops_cli", "run", str(case), "--impl", f"exec:{script(source)} {{dir}}"]
    supervisor = subprocess.Popen(
        [*command, "--out", str(tmp_path / "out")], env={**os.environ, "PYTHONPATH": str(PROJECT)}
    )
    deadline = time.monotonic() + 60
    while not (noted.exists() and noted.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    pid = int(noted.read_text())
    supervisor.kill()
    supervisor.wait()
    deadline = time.monotonic() + 5
    while running(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not running(pid)
