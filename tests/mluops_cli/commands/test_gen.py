"""`mluops gen`: the same bytes however it is called, nothing half-written, clear words for bad input."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest

from schemas.casefiles.reading import write_case
from schemas.errors import UnavailableError
from schemas.protos import messages as proto
from tests.conftest import PROJECT
from tests.mluops_cli.conftest import Cli

FORWARD = """op: psamask_forward
suites:
  small:
    - name: a
      params: {psa_type: collect, h_mask: 3, w_mask: 2}
      inputs: {x: {shape: [2, 4, 5, 6]}}
      matrix: {params.psa_type: [collect, distribute]}
    - name: hand
      params: {psa_type: collect, h_mask: 1, w_mask: 3}
      inputs: {x: {shape: [1, 1, 2, 3], dist: {sequence: [1, 1]}}}
"""
BACKWARD = """op: psamask_backward
suites:
  other:
    - name: b
      params: {psa_type: distribute, h_mask: 3, w_mask: 2}
      inputs: {dy: {shape: [2, 4, 5, 20], dist: {normal: [0, 1]}}}
"""


@pytest.fixture
def specs(tmp_path: Path) -> Path:
    folder = tmp_path / "specs"
    folder.mkdir()
    (folder / "forward.yaml").write_text(FORWARD)
    (folder / "backward.yaml").write_text(BACKWARD)
    return folder


def tree(folder: Path) -> dict[str, bytes]:
    """Every file's bytes by relative path; the lock is no content."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != ".mluops.lock")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_files_lie_by_operator_suite_and_name_and_the_manifest_lists_them(
    cli: Cli, specs: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    ran = cli("gen", "--spec", specs, "--out", out, "-j", 1)
    assert ran.code == 0
    names = ["psamask_backward/other/b.pb", "psamask_forward/small/a_collect.pb"]
    names += ["psamask_forward/small/a_distribute.pb", "psamask_forward/small/hand.pb"]
    assert sorted(tree(out)) == ["manifest.json", *names]
    text = (out / "manifest.json").read_text()
    assert str(tmp_path) not in text
    entries = json.loads(text)["cases"]
    assert [entry["files"] for entry in entries.values()] == [[name] for name in names]
    node = proto.Node.FromString((out / names[-1]).read_bytes())
    assert list(node.output[0].value_f) == [2, 3, 4, 5]  # worked out by hand


def test_workers_order_and_hash_seed_do_not_change_a_byte(cli: Cli, specs: Path, tmp_path: Path) -> None:
    forward, backward = specs / "forward.yaml", specs / "backward.yaml"
    assert cli("gen", "--spec", forward, "--spec", backward, "--out", tmp_path / "one", "-j", 1).code == 0
    assert cli("gen", "--spec", backward, "--spec", forward, "--out", tmp_path / "two", "-j", 2).code == 0
    command = [
        sys.executable,
        "-m",
        "mluops_cli",
        "gen",
        "--spec",
        str(specs),
        "--out",
        str(tmp_path / "three"),
        "-j",
        "1",
    ]
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "LC_ALL": "C", "TZ": "Asia/Kolkata"}
    subprocess.run(command, check=True, cwd=PROJECT, env=environment, stdout=subprocess.DEVNULL, timeout=120)
    one = tree(tmp_path / "one")
    assert len(one) == 5
    assert tree(tmp_path / "two") == one
    assert tree(tmp_path / "three") == one


def test_another_seed_changes_the_data(cli: Cli, specs: Path, tmp_path: Path) -> None:
    for seed in (1, 2):
        assert (
            cli("gen", "--spec", specs / "forward.yaml", "--out", tmp_path / str(seed), "--seed", seed, "-j", 1).code
            == 0
        )
    path = "psamask_forward/small/a_collect.pb"
    one, two = (proto.Node.FromString((tmp_path / seed / path).read_bytes()) for seed in ("1", "2"))
    assert list(one.input[0].value_f) != list(two.input[0].value_f)


def test_foreign_files_survive_and_earlier_cases_stay_in_the_manifest(cli: Cli, specs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "psamask_forward/small").mkdir(parents=True)
    stray = [
        out / "thesis.txt",
        out / "psamask_forward/small/notes.pb",
        out / "psamask_forward/small/.a_collect.pb.part",
    ]
    for path in stray:
        path.write_text("mine")
    assert cli("gen", "--spec", specs / "forward.yaml", "--out", out, "-j", 1).code == 0
    assert cli("gen", "--spec", specs / "backward.yaml", "--out", out, "-j", 1).code == 0
    assert cli("gen", "--spec", specs / "forward.yaml", "--out", out, "-j", 1).code == 0
    assert [path.read_text() for path in stray] == ["mine"] * 3
    assert len(json.loads((out / "manifest.json").read_text())["cases"]) == 4


@pytest.mark.parametrize("name", ["a_collect.pb", "a_collect.prototxt", "hand.in0.bin"])
def test_a_file_of_others_is_never_replaced(cli: Cli, specs: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "out"
    theirs = out / "psamask_forward/small" / name
    theirs.parent.mkdir(parents=True)
    theirs.write_text("mine")
    ran = cli("gen", "--spec", specs, "--out", out, "-j", 1)
    assert (ran.code, ran.err) == (2, f"{theirs}: not made by mluops, and a case would replace it\n")
    assert tree(out) == {theirs.relative_to(out).as_posix(): b"mine"}


def test_our_own_files_are_replaced_without_a_manifest_too(cli: Cli, specs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ("gen", "--spec", specs, "--out", out, "-j", 1, "--inline-limit", "64")
    assert cli(*command).code == 0
    assert len([name for name in tree(out) if name.endswith(".bin")]) > 0
    (out / "manifest.json").unlink()
    assert cli(*command).code == 0


def test_the_other_format_does_not_stay_behind(cli: Cli, specs: Path, tmp_path: Path) -> None:
    """A run prefers a .pb: the old one would win over the text file that was made later."""
    out, spec = tmp_path / "out", specs / "forward.yaml"
    assert cli("gen", "--spec", specs, "--out", out, "-j", 1, "--inline-limit", "64").code == 0
    ran = cli("gen", "--spec", spec, "--out", out, "-j", 1, "--seed", 2, "--format", "prototxt")
    assert ran.code == 0
    assert "removed" in ran.err
    names = [f"psamask_forward/small/{name}.prototxt" for name in ("a_collect", "a_distribute", "hand")]
    other = [name for name in tree(out) if name.startswith("psamask_backward/other/b.")]
    assert sorted(tree(out)) == ["manifest.json", *sorted(other), *names]
    assert len(other) > 1
    ran = cli("gen", "--spec", spec, "--out", out, "-j", 1, "--format", "prototxt")
    assert (ran.code, ran.err) == (0, "")


def test_a_parameter_beyond_its_field_is_the_specs_fault(cli: Cli, tmp_path: Path) -> None:
    text = FORWARD.replace("w_mask: 3}", "w_mask: 4294967296}").replace("[1, 1, 2, 3]", "[1, 0, 2, 4294967296]")
    (tmp_path / "s.yaml").write_text(text.replace(", dist: {sequence: [1, 1]}", ""))
    ran = cli("gen", "--spec", tmp_path / "s.yaml", "--out", tmp_path / "out", "-j", 1)
    assert ran.code == 2
    assert ran.err.startswith("s.yaml:8: psamask_forward/small/hand doesn't fit into a case file: ")


def test_a_seed_that_no_case_file_holds_is_refused(cli: Cli, specs: Path, tmp_path: Path) -> None:
    ran = cli("gen", "--spec", specs, "--out", tmp_path / "out", "--seed", 2**64)
    assert ran.code == 2
    assert "0<=x<=18446744073709551615" in ran.err
    assert cli("gen", "--spec", specs, "--out", tmp_path / "out", "--seed", 2**64 - 1, "-j", 1).code == 0


def test_both_formats_hold_the_same_case(cli: Cli, specs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert cli("gen", "psamask_forward", "--spec", specs, "--out", out, "--format", "both", "-j", 1).code == 0
    stem = out / "psamask_forward/small/a_collect"
    binary = proto.Node.FromString(stem.with_suffix(".pb").read_bytes())
    text: Any = proto.parse_text(stem.with_suffix(".prototxt").read_text(), proto.Node(), "text")
    assert proto.get_meta(text) is None
    for role in ("input", "output"):
        assert [list(each.value_f) for each in getattr(text, role)] == [
            list(each.value_f) for each in getattr(binary, role)
        ]


def test_dry_run_counts_and_writes_nothing(cli: Cli, specs: Path, tmp_path: Path) -> None:
    ran = cli("gen", "--spec", specs, "--out", tmp_path / "out", "--dry-run")
    assert ran.code == 0
    assert not (tmp_path / "out").exists()
    rows = [line.split() for line in ran.out.splitlines()]
    assert [row[:3] for row in rows[1:3]] == [["psamask_backward", "other", "1"], ["psamask_forward", "small", "3"]]
    assert rows[3][:2] == ["all", "4"]
    assert cli("gen", "--spec", specs, "--out", tmp_path / "out", "-j", 1).code == 0
    written = sum(len(data) for name, data in tree(tmp_path / "out").items() if name != "manifest.json")
    assert abs(int(rows[3][2]) - written) < 0.05 * written


def test_too_little_disk_is_told_before_anything_is_written(
    cli: Cli, specs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage(10**6, 10**6 - 900, 900))
    ran = cli("gen", "--spec", specs, "--out", tmp_path / "out", "-j", 1)
    assert ran.code == 3
    assert "the disk has 900 B free" in ran.err
    assert not (tmp_path / "out").exists()


def test_a_disk_that_fills_up_stops_at_the_first_case_and_keeps_what_is_done(
    cli: Cli, specs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = write_case

    def write_one(path: Path, *arguments: Any, **options: Any) -> Any:
        if len(list(tmp_path.rglob("*.pb"))) == 1:
            raise UnavailableError(f"{path}: can't write: No space left on device")
        return write(path, *arguments, **options)

    monkeypatch.setattr("generators.casegen.case_writer.write_case", write_one)
    ran = cli("gen", "--spec", specs, "--out", tmp_path / "out", "-j", 1)
    assert (ran.code, ran.err.count("No space left"), ran.err.count("\n")) == (3, 1, 1)
    entries = json.loads((tmp_path / "out/manifest.json").read_text())["cases"]
    assert [file for entry in entries.values() for file in entry["files"]] == [
        path.relative_to(tmp_path / "out").as_posix() for path in tmp_path.rglob("*.pb")
    ]


def test_nothing_selected_is_code_5_and_an_unknown_suite_code_2(cli: Cli, specs: Path, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "out")
    assert cli("gen", "psamask_forward", "--spec", specs, "--suite", "other", *out).code == 5
    ran = cli("gen", "--spec", specs, "--suite", "smal", *out)
    assert (ran.code, ran.err) == (2, "unknown suite 'smal': did you mean 'small'?\n")
    assert cli("gen", "psamask_sideways", *out).code == 2
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("params:", "prams:", r"forward.yaml:5:7: .*unknown key 'prams': did you mean 'params'"),
        ("h_mask: 3", "h_mask: 1e-3", r"forward.yaml:5:\d+.*h_mask"),
        ("h_mask: 3", "h_mask: no", r"forward.yaml:5:\d+.*h_mask"),
        ("h_mask: 3", "h_mask: [3]", r"forward.yaml:5:\d+.*h_mask"),
        ("psa_type: collect, ", "", r"forward.yaml:\d+:\d+.*psa_type"),
        ("h_mask: 3", "h_mask: 3, h_mask: 3", r"forward.yaml:5:\d+.*h_mask"),
        ("    - name: a", "\t- name: a", r"forward.yaml:4:"),
        ("[2, 4, 5, 6]", "[2, 4, 5, 7]", r"forward.yaml:6:\d+.*7.*6"),
        ("[2, 4, 5, 6]", "[2, 4611686018427387904, 5, 6]", r"forward.yaml:6:\d+"),
        ("psamask_forward", "psamask_fwd", r"forward.yaml:1:\d+.*unknown operator 'psamask_fwd'"),
    ],
)
def test_a_bad_spec_is_one_message_with_the_place_and_nothing_is_written(
    cli: Cli, specs: Path, tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in FORWARD
    (specs / "forward.yaml").write_text(FORWARD.replace(old, new))
    ran = cli("gen", "--spec", specs, "--out", tmp_path / "out", "-j", 1)
    assert ran.code == 2, ran.err
    assert re.search(message, ran.err), ran.err
    assert "Traceback" not in ran.err
    assert not (tmp_path / "out").exists()


def test_a_missing_spec_and_a_foreign_manifest_are_refused(cli: Cli, specs: Path, tmp_path: Path) -> None:
    ran = cli("gen", "--spec", tmp_path / "none.yaml", "--out", tmp_path / "out")
    assert ran.code == 2
    assert "none.yaml" in ran.err
    (tmp_path / "manifest.json").write_text("{}")
    ran = cli("gen", "--spec", specs, "--out", tmp_path)
    assert ran.code == 2
    assert "manifest.json" in ran.err
    assert not (tmp_path / "psamask_forward").exists()
    (tmp_path / "plain").write_text("")
    assert cli("gen", "--spec", specs, "--out", tmp_path / "plain").code == 2


PLUGIN = """
import numpy as np
from generators.contracts.model import Contract, TensorSpec
from generators.contracts.operator import Operator
from schemas.criteria import Criterion
from pathlib import Path

class Negate(Operator):
    contract = Contract(op="negate", category="pure_io",
        inputs=(TensorSpec("x", ("float",), "ARRAY", "N", values={"uniform": [-1, 1]}),),
        outputs=(TensorSpec("y", ("float",), "ARRAY", "N", criteria=(Criterion("diff3", 0.0),)),))
    cases = Path(__file__).with_name("negate.yaml")
    def reference(self, inputs, env):
        return {"y": -inputs["x"]}

OPERATORS = (Negate(),)
"""


def test_an_operator_of_a_plug_in_is_made_in_the_workers_too(tmp_path: Path) -> None:
    (tmp_path / "negate_plugin.py").write_text(PLUGIN)
    entries = "\n".join(f"    - {{name: n{size}, inputs: {{x: {{shape: [{size}]}}}}}}" for size in (3, 4))
    (tmp_path / "negate.yaml").write_text(f"op: negate\nsuites:\n  demo:\n{entries}\n")
    # In a process of its own: a plug-in stays registered for as long as the process lives.
    command = [sys.executable, "-m", "mluops_cli", "gen", "negate", "--plugin", str(tmp_path / "negate_plugin.py")]
    command += ["--out", str(tmp_path / "out"), "-j", "2"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=PROJECT, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    node = proto.Node.FromString((tmp_path / "out/negate/demo/n3.pb").read_bytes())
    assert len(node.input[0].value_f) == 3
    assert list(node.output[0].value_f) == [-value for value in node.input[0].value_f]


def test_public_files_keep_their_stem_and_get_a_baseline(cli: Cli, shared: Path, tmp_path: Path) -> None:
    public = shared / "public_cases/prototxt"
    sources = [word for op in ("masked_im2col_forward", "psamask_forward") for word in ("--from", public / op)]
    ran = cli("gen", *sources, "--out", tmp_path, "-j", 1)
    assert ran.code == 0, ran.err
    names = {name for name in tree(tmp_path) if name != "manifest.json"}
    assert names == {
        "masked_im2col_forward/external/case_0.pb",
        "masked_im2col_forward/external/case_1.pb",
        "psamask_forward/external/case_0.pb",
    }
    node = proto.Node.FromString((tmp_path / "masked_im2col_forward/external/case_0.pb").read_bytes())
    assert [each.id for each in node.input] == ["input", "mask_h_idx", "mask_w_idx"]
    assert list(node.input[1].value_i) == [-4, -1, -1, -1, 3, 3, 2, 7, 7, 7]
    feature, column = list(node.input[0].value_f), list(node.output[0].value_f)
    # Mask 4 is at (3, -1), the kernel 4x4 with pad 1: tap (i, j) = (0, 2) reads feature[2, 0] of channel 0.
    assert column[(0 * 4 + 2) * 10 + 4] == feature[2 * 8 + 0]
    # Its tap (0, 1) is left of the feature, and mask 0 at (-4, -4) is outside altogether.
    assert column[(0 * 4 + 1) * 10 + 4] == 0
    assert not any(column[0::10])


def test_files_that_cannot_be_completed_are_all_told_and_the_others_made(cli: Cli, specs: Path, tmp_path: Path) -> None:
    assert cli("gen", "--spec", specs / "forward.yaml", "--out", tmp_path / "in", "-j", 1).code == 0
    folder = tmp_path / "in"
    good = (folder / "psamask_forward/small/hand.pb").read_bytes()
    (folder / "cut.pb").write_bytes(good[:-5])
    node = proto.Node.FromString(good)
    node.op_name = "bessel"
    (folder / "unknown.pb").write_bytes(node.SerializeToString())
    ran = cli("gen", "--from", folder, "--out", tmp_path / "out", "-j", 1)
    assert ran.code == 2
    assert "cut.pb" in ran.err
    assert "unknown.pb" in ran.err
    assert "unknown operator 'bessel'" in ran.err
    assert len(tree(tmp_path / "out")) == 4  # three cases and the manifest
    remade = proto.Node.FromString((tmp_path / "out/psamask_forward/small/hand.pb").read_bytes())
    assert list(remade.output[0].value_f) == [2, 3, 4, 5]
    assert cli("gen", "--from", tmp_path / "none", "--out", tmp_path / "out").code == 2
    assert cli("gen", "psamask_forward", "--from", folder, "--out", tmp_path / "out").code == 2


def test_an_interrupt_leaves_whole_files_and_code_130(tmp_path: Path) -> None:
    sizes = "\n".join(
        # 20 to 80 MB each: there is something to interrupt
        f"    - {{name: c{n}, params: {{psa_type: 0, h_mask: 9, w_mask: 9}}, sizes: {{N: {n}, H: 16, W: 16}}}}"
        for n in range(20, 60)
    )
    (tmp_path / "many.yaml").write_text(f"op: psamask_forward\nsuites:\n  many:\n{sizes}\n")
    out = tmp_path / "out"
    command = [
        sys.executable,
        "-m",
        "mluops_cli",
        "gen",
        "--spec",
        str(tmp_path / "many.yaml"),
        "--out",
        str(out),
        "-j",
        "2",
    ]
    started = subprocess.Popen(
        command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    until = time.monotonic() + 60
    while not list(out.rglob("*.pb")) and time.monotonic() < until:
        time.sleep(0.02)
    os.killpg(started.pid, signal.SIGINT)  # as a terminal does: to all processes
    _, err = started.communicate(timeout=60)
    assert (started.returncode, err.splitlines()[-1]) == (130, "interrupted")  # heartbeats may stand before it
    done = list(out.rglob("*.pb"))
    assert 0 < len(done) < 40
    for path in done:
        assert len(proto.Node.FromString(path.read_bytes()).output) == 1
    names = {path.name for path in out.rglob("*") if path.is_file()} - {path.name for path in done}
    assert names <= {"manifest.json", ".mluops.lock"}
