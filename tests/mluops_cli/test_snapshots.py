"""What every command prints: on a terminal of 80 and of 120 columns, and where there is no terminal.

`pytest --snapshot-update tests/mluops_cli/test_snapshots.py` writes them anew. Read the difference before you
commit it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from mluops_cli.core.hardware.machine import platform_name, processor
from mluops_cli.main import COMMANDS
from tests.mluops_cli.conftest import Cli
from tests.mluops_cli.terminal import show, steady

KERNEL = """
import numpy as np


def right(op, inputs, outputs, params):
    outputs["y"][...] = 0
    n, h, w, _ = inputs["x"].shape
    rows, columns = params["h_mask"], params["w_mask"]
    for i in range(h):
        for j in range(w):
            for p in range(rows):
                for q in range(columns):
                    y, x = i + p - (rows - 1) // 2, j + q - (columns - 1) // 2
                    if 0 <= y < h and 0 <= x < w:
                        value = inputs["x"][:, i, j, p * columns + q]
                        to = (i, j, y * w + x) if params["psa_type"] == 0 else (y, x, i * w + j)
                        outputs["y"][(slice(None), *to)] = value


def wrong(op, inputs, outputs, params):
    right(op, inputs, outputs, params)
    outputs["y"].reshape(-1)[3::7] += 1


def raises(op, inputs, outputs, params):
    raise ValueError("no such mask")
"""
CHECKED = """
from kernel import right


def checked(op, inputs, outputs, params):
    if params["psa_type"] > 1:
        return "BAD_PARAM"
    return right(op, inputs, outputs, params)


def unused(op, inputs, outputs, params):
    return "SUCCESS"
"""
CONFIG = '{"op_name": "roi_crop_forward", "inputs": [], "outputs": []}'
MUTATED = ["--impl", "python:checked.py:checked", "--cases", "cases"]

# Per command: what succeeds, what fails, what is typed wrong. Folders are those of `prepared`.
SCENES: dict[str, dict[str, list[str]]] = {
    "gen": {
        "success": ["gen", "psamask_forward", "--suite", "demo", "--out", "new"],
        "failure": ["gen", "--spec", "bad.yaml", "--out", "new"],
        "typo": ["gen", "psamask_forwrad", "--out", "new"],
    },
    "run": {
        "success": ["run", "cases", "--impl", "python:kernel.py:right", "-j", "1", "--out", "new"],
        "failure": ["run", "cases", "--impl", "python:kernel.py:wrong", "-j", "1", "--out", "new"],
        "raises": ["run", "cases", "--impl", "python:kernel.py:raises", "-j", "1", "--out", "new"],
        "typo": ["run", "cases", "--impl", "pyhton:kernel.py:wrong", "-j", "1"],
    },
    "fuzz": {
        "success": ["fuzz", "psamask_forward", "--impl", "python:kernel.py:right", "--cases", "12", "-j", "1"],
        "failure": ["fuzz", "psamask_forward", "--impl", "python:kernel.py:wrong", "--cases", "1", "-j", "1"],
        "typo": ["fuzz", "psamask_forwrad"],
    },
    "list": {
        "success": ["list", "psamask_forward"],
        "typo": ["list", "psamask_forwrad"],
    },
    "show": {
        "success": ["show", "cases/psamask_forward/demo/square_collect.pb"],
        "failure": ["show", "kernel.py"],
        "typo": ["show", "cases", "--vlaues", "x"],
    },
    "convert": {
        "success": ["convert", "cases/psamask_forward/demo/square_collect.pb", "new.prototxt"],
        "failure": ["convert", "none.pb", "new.prototxt"],
        "typo": ["convert", "cases", "new", "--fromat", "pb"],
    },
    "check": {
        "success": ["check", "cases"],
        "failure": ["check", "odd.prototxt"],
        "typo": ["check", "cases", "--quite"],
    },
    "import": {
        "failure": ["import", "config.json", "--out", "new"],
        "typo": ["import", "none.json", "--out", "new"],
    },
    "merge": {
        "success": ["merge", "sharded", "--out", "new"],
        "failure": ["merge", "passed", "failed", "--out", "new"],
        "typo": ["merge", "none", "--out", "new"],
    },
    "report": {
        "success": ["report", "failed", "--md", "-"],
        "failure": ["report", "cases"],
        "typo": ["report", "failed", "--makrdown", "-"],
    },
    "gate": {
        "success": ["gate", "passed"],
        "failure": ["gate", "failed"],
        "typo": ["gate", "none"],
    },
    "compare": {
        "success": ["compare", "passed", "passed"],
        "failure": ["compare", "passed", "failed"],
        "typo": ["compare", "passed"],
    },
    "history": {
        "success": ["history", "add", "passed", "--ref", "abc123"],
        "failure": ["history", "trend"],
        "typo": ["history", "ad"],
    },
    "replay": {
        "failure": ["replay", "failed", "--impl", "python:kernel.py:wrong"],
        "fixed": ["replay", "failed", "--impl", "python:kernel.py:right"],
        "typo": ["replay", "none"],
    },
    "diff": {
        "failure": ["diff", "failed", "square_collect"],
        "typo": ["diff", "failed", "sqare_collect"],
    },
    "unpack": {
        "success": ["unpack", "cases/psamask_forward/demo/square_collect.pb", "new"],
        "failure": ["unpack", "cases/psamask_forward/demo/square_collect.pb", "cases"],
        "typo": ["unpack", "none.pb", "new"],
    },
    "shrink": {
        "success": ["shrink", "failed", "square_collect", "--impl", "python:kernel.py:wrong"],
        "failure": ["shrink", "failed", "square_collect", "--impl", "python:kernel.py:right"],
        "typo": ["shrink", "failed", "sqare_collect"],
    },
    "selftest": {
        "success": ["selftest", "cases"],
        "typo": ["selftest", "none"],
    },
    "mutate": {  # of a kernel of two lines: each mutant costs a process
        "success": ["mutate", *MUTATED, "-j", "1", "--out", "new"],
        "failure": ["mutate", *MUTATED, "-k", "collect", "--drawn", "4", "-j", "1", "--out", "new"],
        "typo": ["mutate", "--impl", "exec:./kernel", "--out", "new"],
    },
    "subset": {"typo": ["subset", "cases", "--by", "mutants", "--mutants", "none"]},
    "implementations": {"typo": ["implementations", "--jsno"]},
    "new-operator": {
        "success": ["new-operator", "ball_query", "--from", "ball.prototxt", "--out", "new"],
        "failure": ["new-operator", "ball_query", "--from", "odd.prototxt"],
        "typo": ["new-operator", "ball-query"],
    },
    "docs": {
        "success": ["docs", "psamask_forward", "--out", "new"],
        "typo": ["docs", "psamask_forwrad", "--out", "new"],
    },
    "doctor": {"typo": ["doctor", "now"]},
}
CALLS = [
    pytest.param(arguments, id=f"{command}-{scene}")
    for command, scenes in SCENES.items()
    for scene, arguments in {"help": [command, "--help"], **scenes}.items()
]
FOLDER = Path(f"/tmp/mluops-{os.getpid():09}")  # of this process, and as long as any: lines break depending on it
VARYING = {"FOLDER": str(FOLDER), "MACHINE": f"{processor()}, {platform_name()}"}
ODD = """op_name: "psamask_forward"
input { id: "x" shape { dims: [1, 1, 2, 3] } layout: LAYOUT_NHWC dtype: DTYPE_FLOAT value_f: [1, 2] }
output { id: "y" shape { dims: [1, 1, 2, 2] } layout: LAYOUT_NHWC dtype: DTYPE_FLOAT }
psamask_forward_param { h_mask: 1 w_mask: 3 psa_type: 0 }
"""
BALL = """op_name: "ball_query"
input { id: "new_xyz" shape { dims: [2, 5, 3] } layout: LAYOUT_ARRAY dtype: DTYPE_FLOAT
        random_data { distribution: UNIFORM lower_bound: 0 upper_bound: 1 } }
input { id: "xyz" shape { dims: [2, 9, 3] } layout: LAYOUT_ARRAY dtype: DTYPE_FLOAT
        random_data { distribution: UNIFORM lower_bound: 0 upper_bound: 1 } }
output { id: "idx" shape { dims: [2, 5, 4] } layout: LAYOUT_ARRAY dtype: DTYPE_INT32 }
ball_query_param { max_radius: 0.4 nsample: 4 }
"""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with cases, a kernel, and the results of a run that passed and one that failed."""
    folder = tmp_path_factory.mktemp("snapshots")
    (folder / "kernel.py").write_text(KERNEL)
    (folder / "checked.py").write_text(CHECKED)
    (folder / "config.json").write_text(CONFIG)
    (folder / "odd.prototxt").write_text(ODD)
    (folder / "ball.prototxt").write_text(BALL)
    (folder / "bad.yaml").write_text("op: psamask_forward\nsuites:\n  s:\n    - name: a\n      parms: {h_mask: 3}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for arguments in (
            ["gen", "psamask_forward", "--suite", "demo", "--out", "cases"],
            ["run", "cases", "--impl", "python:kernel.py:right", "-j", "1", "--out", "passed"],
            ["run", "cases", "--impl", "python:kernel.py:wrong", "-j", "1", "--out", "failed"],
            ["run", "cases", "--impl", "python:kernel.py:right", "-j", "1", "--shard", "1/1", "--out", "sharded"],
        ):
            show(arguments, 80)
    return folder


@pytest.fixture
def folder(prepared: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the prepared folder, the current one."""
    copy = FOLDER
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(prepared, copy)
    monkeypatch.chdir(copy)
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CI", "GITHUB_ACTIONS", "GITLAB_CI"):
        monkeypatch.delenv(name, raising=False)
    yield copy
    shutil.rmtree(copy, ignore_errors=True)


def test_every_command_has_scenes() -> None:
    assert set(SCENES) == set(COMMANDS)


@pytest.mark.parametrize("arguments", [*CALLS, pytest.param(["--help"], id="mluops-help")])
@pytest.mark.parametrize("columns", [80, 120])
def test_on_a_terminal(arguments: list[str], columns: int, folder: Path, snapshot: SnapshotAssertion) -> None:
    code, text = show(arguments, columns)
    assert max(map(len, text.splitlines())) <= columns
    assert f"exit code {code}\n{steady(text, **VARYING)}" == snapshot


@pytest.mark.parametrize("arguments", CALLS)
def test_without_a_terminal(arguments: list[str], folder: Path, cli: Cli, snapshot: SnapshotAssertion) -> None:
    ran = cli(*arguments)
    text = f"exit code {ran.code}\n--- stdout\n{ran.out}--- stderr\n{ran.err}"
    assert steady(text, **VARYING) == snapshot
