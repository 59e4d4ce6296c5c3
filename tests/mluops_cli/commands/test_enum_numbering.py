"""--generation on the commands that read case files; files that are too large to be."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

from schemas.casefiles.reading import read_case
from schemas.protos import messages as proto
from tests.mluops_cli.conftest import Cli
from tests.mluops_cli.execution.conftest import write_psamask
from tests.schemas.casefiles.building import add_output, make_node
from tests.schemas.casefiles.test_enum_numbering import field, tensor

COPY = "def copy(op, inputs, outputs, params):\n    outputs['y'][...] = inputs['x']\n"
VALUES = np.arange(8, dtype=np.float64)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The file of write_old, with a kernel beside it that passes it."""
    (tmp_path / "copy.py").write_text(COPY)
    return write_old(tmp_path)


def write_old(folder: Path) -> Path:
    """Write a file of the older numbering with its baseline: x, a list of doubles, is y."""
    VALUES.tofile(folder / "v.bin")
    x, y = (tensor(name, "double", "ARRAY", (8,), field(11, b"v.bin")) for name in "xy")
    criterion = field(10, field(1, 3) + b"\x11" + bytes(8))  # DIFF3 <= 0
    (folder / "old.pb").write_bytes(field(5, b"abs") + field(6, x) + field(7, y) + field(3, 2) + criterion)
    return folder / "old.pb"


def test_run_refuses_an_old_file_and_reads_it_when_told(cli: Cli, old: Path, tmp_path: Path) -> None:
    options = ("--impl", f"python:{tmp_path / 'copy.py'}:copy", "--out", tmp_path / "out", "-j", "1")
    assert cli("run", old, *options).code == 2
    record = json.loads((tmp_path / "out" / "results.jsonl").read_text())
    assert record["status"] == "error"
    assert "--generation old" in record["reason"]
    ran = cli("run", old, *options, "--generation", "old")
    record = json.loads((tmp_path / "out" / "results.jsonl").read_text())
    assert (ran.code, record["status"]) == (0, "pass"), record
    assert record["tensors"]["x"]["dtype"] == "double"


def test_show_says_so_and_reads_it_when_told(cli: Cli, old: Path) -> None:
    ran = cli("show", old)
    assert ran.code == 0
    assert "--generation old reads it" in ran.err
    told = json.loads(cli("show", "--json", "--generation", "old", old).out)
    assert [(each["dtype"], each["max"]) for each in told["tensors"]] == [("double", 7.0)] * 2
    assert told["criteria"] == {"y": [["diff3", 0.0, "test_param"]]}
    assert told["warnings"] == []


def test_gen_completes_an_old_file_when_told(cli: Cli, tmp_path: Path) -> None:
    x = tensor("x", "float", "NHWC", (1, 1, 1, 1), field(7, np.float32(5).tobytes()))
    y = tensor("y", "float", "NHWC", (1, 1, 1, 1))
    message = proto.Node(op_name="psamask_forward")
    message.psamask_forward_param.h_mask = message.psamask_forward_param.w_mask = 1
    message.psamask_forward_param.psa_type = 0
    content = message.SerializeToString() + field(6, x) + field(7, y) + field(14, 3)
    (tmp_path / "old.pb").write_bytes(content + b"\x79" + bytes(8))
    options = ("--from", tmp_path / "old.pb", "--out", tmp_path / "out", "-j", "1")
    ran = cli("gen", *options)
    assert ran.code == 2
    assert "--generation old" in ran.err
    assert cli("gen", *options, "--generation", "old").code == 0
    (made,) = (tmp_path / "out").rglob("*.pb")
    with read_case(made) as case:
        assert case.outputs[0].layout == "NHWC"
        assert case.outputs[0].array().item() == 5


def test_e_import_reads_an_old_file_when_told(cli: Cli, old: Path, tmp_path: Path) -> None:
    """It refused ambiguous files, which gen and run take with a warning, and named an option that it didn't have."""
    ran = cli("import", old, "--out", tmp_path / "specs")
    assert (ran.code, "--generation old reads it" in ran.err) == (2, True)
    assert cli("import", old, "--out", tmp_path / "specs", "--generation", "old").code == 0
    (spec,) = (tmp_path / "specs").glob("*.yaml")
    assert "dtype: double" in spec.read_text()
    either = write_psamask(tmp_path, "either", suite="")
    ran = cli("import", either, "--out", tmp_path / "either")
    assert ran.code == 0
    assert "warning: " in ran.err
    assert "ambiguous: it may be of the current or of the older enum numbering" in ran.err


def test_vast_tensors_are_refused_at_once(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "copy.py").write_text(COPY)
    node = add_output(make_node(2**40, random_data={"seed": 1}), 1, value_f=[1])
    node.device = 2
    node.test_param.error_func.append(8)
    node.test_param.error_threshold.append(0)
    (tmp_path / "vast.pb").write_bytes(node.SerializeToString())
    assert cli("show", tmp_path / "vast.pb").code == 0  # imports what the clock isn't for
    begin = time.process_time()
    options = ("--impl", f"python:{tmp_path / 'copy.py'}:copy", "--out", tmp_path / "out", "-j", "1")
    assert cli("run", tmp_path / "vast.pb", *options).code == 2
    assert "1099511627776 elements are to be drawn" in (tmp_path / "out" / "results.jsonl").read_text()
    assert cli("check", tmp_path / "vast.pb").code == 1
    assert time.process_time() - begin < 1
