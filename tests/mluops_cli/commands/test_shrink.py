"""`mluops shrink`: the failing cases of a run, ours and those of others, become small ones that fail alike."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.mluops_cli.conftest import Cli
from tests.mluops_cli.execution.conftest import wait_until
from tests.mluops_cli.search.shrinking.foreign_case import THEIRS

KERNELS = """
import os
import time
from pathlib import Path

from mluops_cli.search.faulty_kernels.psamask import right

def seven(op, inputs, outputs, params, descriptors, handle):
    status = right(op, inputs, outputs, params, descriptors, handle)
    x, y = inputs["x"], outputs["y"]
    if (x == 3.25).any() and (x == 7).any():
        y[y == 7] = 8
    return status

def lost(op, inputs, outputs, params, descriptors, handle):
    status = right(op, inputs, outputs, params, descriptors, handle)
    if not Path(__file__).with_name("mended").exists():
        outputs["y"][...] = 0
    return status

def crash(op, inputs, outputs, params, descriptors, handle):
    if descriptors["x"].dims[2] > 1:
        os.abort()
    return right(op, inputs, outputs, params, descriptors, handle)

def hang(op, inputs, outputs, params, descriptors, handle):
    if descriptors["x"].dims[2] > 1:
        time.sleep(100)
    return right(op, inputs, outputs, params, descriptors, handle)

def slow(op, inputs, outputs, params, descriptors, handle):
    with Path(__file__).with_name("calls").open("a+") as calls:
        calls.write("called\\n")
        calls.seek(0)
        time.sleep(8 if len(calls.readlines()) >= 6 else 0)  # the signal comes while the sixth one sleeps
    return lost(op, inputs, outputs, params, descriptors, handle)

def lax(op, inputs, outputs, params, descriptors, handle):
    return "SUCCESS"
"""
NAME = "psamask_forward/external/theirs"


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS)
    (tmp_path / "theirs.prototxt").write_text(THEIRS)
    return path


def failed(cli: Cli, kernels: Path, name: str, *options: object) -> Path:
    """The folder of a run in which the case of others failed."""
    folder = kernels.parent
    impl = f"python:{kernels}:{name}"
    ran = cli("run", folder / "theirs.prototxt", "--impl", impl, "-j", 1, "--out", folder / "out", *options)
    assert ran.code == 1, ran.out
    return folder / "out"


@pytest.mark.slow
def test_the_tensors_of_others_are_reduced(cli: Cli, kernels: Path) -> None:
    out = failed(cli, kernels, "seven")
    ran = cli("shrink", out, "theirs")
    assert ran.code == 0, ran.out + ran.err
    assert f"{NAME}: psamask_forward: y, wrong values" in ran.out
    assert "1x2x2x3 -> 1x1x1x2, " in ran.out or "1x2x2x3 -> 1x1x2x1, " in ran.out
    assert "8*" in ran.out
    own = out / "shrunk" / "psamask_forward" / "external"
    assert {7.0, 3.25} == set(np.load(own / "theirs.x.npy").reshape(-1).tolist())
    assert (own / "theirs.prototxt").stat().st_size < 1000
    for number, path in enumerate((own / "theirs.pb", own / "theirs.prototxt")):
        again = cli("run", path, "--impl", f"python:{kernels}:seven", "--out", kernels.parent / f"again{number}")
        assert again.code == 1
    cases = kernels.parent / "cases"
    assert cli("gen", "--spec", own / "theirs.yaml", "--out", cases).code == 0
    assert cli("run", cases, "--impl", f"python:{kernels}:seven", "--out", kernels.parent / "of_spec").code == 1
    assert "criteria: {y: {diff3: 0.001}}" in ran.out


def test_inputs_expected_and_got_stand_side_by_side(cli: Cli, kernels: Path) -> None:
    out = failed(cli, kernels, "lost")
    ran = cli("shrink", out, NAME, "--to", kernels.parent / "small")
    assert ran.code == 0, ran.out + ran.err
    assert "x 1x1x1x1    expected y 1x1x1x1    got 1x1x1x1\n1            1                     0*\n" in ran.out
    assert (kernels.parent / "small" / "psamask_forward" / "external" / "theirs.yaml").is_file()


@pytest.mark.slow
def test_an_illegal_case(cli: Cli, kernels: Path, tmp_path: Path) -> None:
    cases, out = tmp_path / "cases", tmp_path / "out"
    cli("gen", "psamask_forward", "--suite", "invalid", "--out", cases)
    cli("run", cases, "-k", "y_dim3_13", "--impl", f"python:{kernels}:lax", "-j", 1, "--out", out)
    ran = cli("shrink", out, "y_dim3_13")
    assert ran.code == 0, ran.out + ran.err
    assert "expected BAD_PARAM, got SUCCESS" in ran.out
    assert "x: {shape: [1, 2, 1, 1]" in ran.out
    assert "y: {shape: [1, 2, 1, 1]" in ran.out


def test_a_mended_kernel(cli: Cli, kernels: Path) -> None:
    out = failed(cli, kernels, "lost")
    kernels.with_name("mended").touch()
    ran = cli("shrink", out, NAME)
    assert ran.code == 1
    assert f"{NAME} doesn't fail again: pass" in ran.err


@pytest.mark.slow
def test_what_only_the_baseline_of_a_file_fails(cli: Cli, kernels: Path) -> None:
    theirs = kernels.with_name("theirs.prototxt")
    theirs.write_text(THEIRS.replace("DTYPE_FLOAT }", f"DTYPE_FLOAT value_f: [{'5, ' * 15}5] }}").replace("CPU", "GPU"))
    out = failed(cli, kernels, "right")
    ran = cli("shrink", out, NAME)
    assert ran.code == 1
    assert "but not as a case of a spec: the cause may be the baseline that its file carries" in ran.err


def test_wrong_commands(cli: Cli, kernels: Path) -> None:
    out = failed(cli, kernels, "lost")
    ran = cli("shrink", out, "thiers")
    assert ran.code == 2
    assert "no failing case of this run is called thiers: did you mean 'theirs'?" in ran.err
    assert cli("shrink", kernels.parent, NAME).code == 2


@pytest.mark.slow
def test_an_operator_without_a_contract(cli: Cli, kernels: Path) -> None:
    theirs = kernels.with_name("theirs.prototxt")
    values = f"DTYPE_FLOAT value_f: [{'5, ' * 15}5] }}"
    text = THEIRS.replace("DTYPE_FLOAT }", values).replace("CPU", "GPU").replace('"psamask_forward"', '"unheard_of"')
    theirs.write_text("\n".join(line for line in text.splitlines() if "_param { h_mask" not in line))
    kernels.write_text(f"{KERNELS}\ndef ones(op, inputs, outputs, params):\n    outputs['output'][...] = 1\n")
    out = failed(cli, kernels, "ones")
    ran = cli("shrink", out, "theirs")
    assert ran.code == 2
    assert "operator unheard_of has no contract here" in ran.err


@pytest.mark.slow
@pytest.mark.parametrize(("name", "text"), [("crash", "crash (its process died"), ("hang", "timeout (no answer")])
def test_one_that_crashes_or_hangs(cli: Cli, kernels: Path, name: str, text: str) -> None:
    ran = cli("shrink", failed(cli, kernels, name, "--timeout", 3), NAME)
    assert ran.code == 0, ran.out + ran.err
    assert "-> 0x0x2x1, " in ran.out or "-> 1x1x2x1, " in ran.out
    assert text in ran.out


@pytest.mark.slow
def test_an_interrupt_leaves_the_smallest_case_so_far(cli: Cli, kernels: Path) -> None:
    out = failed(cli, kernels, "slow")
    process = subprocess.Popen(
        [sys.executable, "-m", "mluops_cli", "shrink", str(out), NAME], stdout=subprocess.PIPE, text=True
    )
    calls = kernels.with_name("calls")
    wait_until(lambda: calls.read_text().count("called") >= 6)  # the run, the case again, and four smaller ones
    process.send_signal(signal.SIGINT)
    told, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "(interrupted)" in told
    assert (out / "shrunk" / "psamask_forward" / "external" / "theirs.pb").is_file()
