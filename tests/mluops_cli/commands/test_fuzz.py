"""`mluops fuzz` from outside: what it finds, saves, prints, and its exit codes."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mluops_cli.search import faulty_kernels
from tests.mluops_cli.conftest import Cli
from tests.mluops_cli.execution.conftest import wait_until

FAULTY = Path(faulty_kernels.__file__).parent

KERNELS = """
import os
import time

def crash(op, inputs, outputs, params):
    os.abort()

def hang(op, inputs, outputs, params):
    if inputs["x"].shape[2] > 2:
        time.sleep(100)
    return "NOT_SUPPORTED"

def refuse(op, inputs, outputs, params):
    return "NOT_SUPPORTED"

def late(op, inputs, outputs, params):
    if not os.path.exists(__file__ + ".late"):
        open(__file__ + ".late", "w").close()
        time.sleep(100)
    return "NOT_SUPPORTED"

def zeros(op, inputs, outputs, params):
    for array in outputs.values():
        array[...] = 0
"""


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS)
    return path


def test_a_right_kernel_has_no_findings(cli: Cli) -> None:
    ran = cli("fuzz", "psamask_forward", "--impl", f"python:{FAULTY}/psamask.py:right", "--cases", 150, "-j", 2)
    assert ran.code == 0, ran.out + ran.err
    assert "0 findings" in ran.out
    assert "pairs of classes covered" in ran.out


@pytest.mark.parametrize(
    ("op", "module", "name"),
    [
        ("psamask_backward", "psamask", "writes_nothing"),
        pytest.param("psamask_backward", "psamask", "half_of_even_mask_rounded_up", marks=pytest.mark.slow),
        pytest.param("get_indice_pairs", "get_indice_pairs", "pad_of_axis_0", marks=pytest.mark.slow),
    ],
)
def test_a_finding_is_saved_and_is_the_same_case_again(
    cli: Cli, tmp_path: Path, op: str, module: str, name: str
) -> None:
    impl = f"python:{FAULTY}/{module}.py:{name}"
    save = tmp_path / "found.yaml"
    ran = cli("fuzz", op, "--impl", impl, "--cases", 120, "--findings", 1, "--save", save, "-j", 1)
    assert ran.code == 1, ran.out + ran.err
    assert f"finding 1: {op}" in ran.out
    assert re.search(r"\n  [\dx, ]+ -> [\dx, ]+, \d+ runs?\n    - name: seed1_", ran.out)
    assert re.search(r"# [\dx, ]+ -> [\dx, ]+, \d+ runs?\n    - name: seed1_", save.read_text())
    assert cli("gen", "--spec", save, "--out", tmp_path / "cases").code == 0
    again = cli("run", tmp_path / "cases", "--impl", impl, "--out", tmp_path / "out")
    assert again.code == 1
    right = cli("run", tmp_path / "cases", "--impl", f"python:{FAULTY}/{module}.py:right", "--out", tmp_path / "right")
    assert right.code == 0


@pytest.mark.slow
def test_findings_that_shrink_to_one_call_are_told_and_saved_once(cli: Cli, tmp_path: Path) -> None:
    """The kernel leaves zeros unwritten: most symptoms of other regions shrink to one of two calls of one element."""
    impl = f"python:{FAULTY}/psamask.py:no_zero_fill"
    save = tmp_path / "found.yaml"
    ran = cli("fuzz", "psamask_backward", "--impl", impl, "--cases", 40, "--save", save, "-j", 1)
    told, saved = (re.findall(r"- name: \S+\n((?: {6}.*\n)+)", text) for text in (ran.out, save.read_text()))
    assert told == saved
    assert len(told) == len(set(told))
    counts = re.search(r"cases in .*: (\d+) fail,[^!]*\n(\d+) findings, (\d+) further failures like them", ran.out)
    assert counts is not None, ran.out
    failed, findings, again = map(int, counts.groups())
    assert (findings, again) == (len(told), failed - len(told))


@pytest.mark.slow
def test_a_crash_is_a_finding(cli: Cli, kernels: Path) -> None:
    ran = cli("fuzz", "roi_crop_forward", "--impl", f"python:{kernels}:crash", "--cases", 2, "-j", 1)
    assert ran.code == 1
    assert "finding 1: roi_crop_forward, crash: its process died of signal N (SIGABRT)" in ran.out
    assert "1 finding, 1 further failure like them" in ran.out


@pytest.mark.slow
def test_a_hang_is_shrunk(cli: Cli, kernels: Path) -> None:
    ran = cli("fuzz", "psamask_forward", "--impl", f"python:{kernels}:hang", "--cases", 12, "--timeout", 3, "-j", 2)
    assert ran.code == 1
    assert "finding 1: psamask_forward, timeout: no answer within N s" in ran.out
    assert re.search(r"-> \dx\dx3x1, \d+ runs", ran.out)


@pytest.mark.slow
def test_a_call_that_is_in_time_alone_is_no_finding(cli: Cli, kernels: Path) -> None:
    ran = cli("fuzz", "psamask_forward", "--impl", f"python:{kernels}:late", "--cases", 12, "--timeout", 2, "-j", 2)
    assert Path(f"{kernels}.late").exists()
    assert "12 skip" in ran.out, ran.out
    assert "0 findings" in ran.out


def test_what_is_not_shrunk_is_printed_as_it_was_drawn(cli: Cli, kernels: Path) -> None:
    ran = cli("fuzz", "psamask_forward", "--impl", f"python:{kernels}:zeros", "--cases", 4, "-j", 1, "--no-shrink")
    assert ran.code == 1
    assert "finding 1: psamask_forward: y, zero" in ran.out
    assert "->" not in ran.out


def test_one_that_refuses_everything_has_proven_nothing(cli: Cli, kernels: Path) -> None:
    ran = cli("fuzz", "roi_crop_forward", "--impl", f"python:{kernels}:refuse", "--cases", 10, "-j", 1)
    assert ran.code == 1
    assert "roi_crop_forward: of 10 valid cases none was judged, 10 skipped" in ran.out


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["psamask_forwards"], 2, "did you mean 'psamask_forward'?"),
        (["psamask_forward", "--impl", "nothing"], 2, "unknown implementation"),
        (["psamask_forward", "--time", "soon"], 2, "expected one such as 90s, 5m or 1.5h"),
        (
            ["psamask_forward", "--compare", "y=canonical"],
            2,
            "--compare y=canonical: no output 'y' can be: expected one of indice_num, indice_pairs, out_indices\n",
        ),
        (["psamask_forward", "--max-bytes", "1", "--cases", "20"], 5, "no legal case was drawn"),
    ],
)
def test_wrong_commands(cli: Cli, arguments: list[str], code: int, text: str) -> None:
    ran = cli("fuzz", *arguments, "-j", 1)
    assert ran.code == code, ran.out + ran.err
    assert text in ran.err


def test_an_interrupt_loses_no_finding(kernels: Path, tmp_path: Path) -> None:
    save = tmp_path / "found.yaml"
    command = ["fuzz", "psamask_forward", "--impl", f"python:{kernels}:zeros", "--time", "10m", "--findings", "1000"]
    process = subprocess.Popen(
        [sys.executable, "-m", "mluops_cli", *command, "--save", save, "-j", "1"], stdout=subprocess.PIPE, text=True
    )
    wait_until(save.exists)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "saved in" in out
    assert save.read_text().count("- name:") == out.count("- name:")
