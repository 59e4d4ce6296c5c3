"""`exec:` with case files, and what the adapter itself can't do, which is no fault of the program."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mluops_cli.implementations.base import AdapterError, Call, CannotShow
from mluops_cli.implementations.exec import Exec
from schemas.casefiles.enum_numbering import OLD
from schemas.casefiles.reading import read_case
from schemas.errors import InputError
from schemas.protos import messages as proto
from tests.conftest import PROJECT
from tests.mluops_cli.commands.test_enum_numbering import write_old
from tests.mluops_cli.execution.conftest import write_psamask
from tests.mluops_cli.implementations.calls import make_call, psamask
from tests.mluops_cli.implementations.exec.conftest import EXAMPLE, node_of, scratch_directories

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
    assert [*meta.expect, *meta.origins, *meta.tags, *meta.omitted] == []


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
