"""`mluops mutate`: a kernel whose mutants are known, on cases that are known to be weak or strong."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mluops_cli.commands.mutate import _Progress
from mluops_cli.search.mutation import records
from mluops_cli.search.mutation.records import read_mutants
from schemas.casefiles.reading import write_case
from tests.mluops_cli.conftest import Cli
from tests.mluops_cli.execution.conftest import add_tensor, case_node, wait_until, write_psamask

KERNEL = textwrap.dedent("""
    def psamask(op, inputs, outputs, params):
        if params["psa_type"] not in (0, 1):
            return "BAD_PARAM"
        x, y = inputs["x"], outputs["y"]
        N, H, W, _ = x.shape
        h_mask, w_mask = params["h_mask"], params["w_mask"]
        top, left = (h_mask - 1) // 2, (w_mask - 1) // 2
        mask = x.reshape(N, H, W, h_mask, w_mask)
        cells = y.reshape(N, H, W, H, W)
        y[...] = 0
        h = 0
        while h < H:
            for w in range(W):
                for i in range(max(0, h - top), min(H, h - top + h_mask)):
                    for j in range(max(0, w - left), min(W, w - left + w_mask)):
                        if params["psa_type"] == 0:
                            cells[:, h, w, i, j] = mask[:, h, w, i - h + top, j - w + left]
                        else:
                            cells[:, i, j, h, w] = mask[:, h, w, i - h + top, j - w + left]
            h += 1
        return "SUCCESS"
""").lstrip()
CHECKED = textwrap.dedent("""
    from mutated_kernel import psamask

    def checked(op, inputs, outputs, params):
        if params["psa_type"] > 1:
            return "BAD_PARAM"
        return psamask(op, inputs, outputs, params)
""").lstrip()  # few mutants
OP = "psamask_forward"


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    for h_mask in (1, 3, 4):
        write_psamask(tmp_path / "cases", f"mask{h_mask}", h_mask=h_mask)
    return path


def arguments(kernel: Path, *more: object) -> list[object]:
    folder = kernel.parent
    impl = f"python:{kernel}:psamask"
    chosen = ["--impl", impl, "--cases", folder / "cases", "--out", folder / "out"]
    return ["mutate", *chosen, "-j", 2, "--drawn", 0, *more]


def by_status(out: Path) -> dict[str, list[records.MutantRecord]]:
    found: dict[str, list[records.MutantRecord]] = {}
    for each in read_mutants(out)[OP].mutants.values():
        found.setdefault(each.status, []).append(each)
    return found


@pytest.mark.slow
def test_killed_survived_and_unreached(kernel: Path, cli: Cli) -> None:
    ran = cli(*arguments(kernel, "--keep", kernel.parent / "kept"))
    assert ran.code == 1
    found = by_status(kernel.parent / "out")
    killed = {"".join(each.diff): each for each in found["killed"]}
    # A zero fill that is left out, an endless loop, a swapped index: all are killed, and the loop by its time.
    assert {killed["-    y[...] = 0+    pass"].kind} == {"zero_fill"}
    endless = killed["-        h += 1+        pass"]
    assert endless.reason == "timeout: no answer within its time limit"
    assert (
        "-    top, left = (h_mask - 1) // 2, (w_mask - 1) // 2+    left, top = (h_mask - 1) // 2, (w_mask - 1) // 2"
        in (killed)
    )
    # No case has another mode: its line isn't run, and the check of the mode could be anything.
    lines = KERNEL.splitlines()
    assert {lines[each.line - 1].split("[")[0].strip() for each in found["not_reached"]} == {"cells"}
    equivalent = {"".join(each.diff) for each in found["equivalent"]}
    assert '-    if params["psa_type"] not in (0, 1):-        return "BAD_PARAM"+    pass' in equivalent
    # What is kept is the mutants that survive, whole sources that differ in one line.
    kept = sorted(kernel.parent.joinpath("kept").rglob("*.py"))
    assert len(kept) == len(found["not_reached"]) + len(found.get("survived", []))
    assert {sum(a != b for a, b in zip(each.read_text().splitlines(), lines, strict=True)) for each in kept} == {1}
    assert f"kernel.py:{endless.line - 1}: no case runs this line" in ran.out


@pytest.mark.slow
def test_a_case_of_the_other_mode_kills_what_survived(kernel: Path, cli: Cli) -> None:
    cli("gen", OP, "--suite", "boundary", "-k", "centre or row or column", "--out", kernel.parent / "cases")
    ran = cli(*arguments(kernel))
    assert "no case runs this line" not in ran.out
    assert not [
        each for each in by_status(kernel.parent / "out").get("survived", []) if "cells[:, i, j" in str(each.diff)
    ]


@pytest.mark.slow
def test_drawn_calls_tell_what_the_cases_do_not(kernel: Path, cli: Cli) -> None:
    ran = cli(*arguments(kernel, "--drawn", 40))
    assert ran.code == 1
    found = by_status(kernel.parent / "out")
    assert "not_reached" not in found
    # The cases are of one mode; a call of the other one shows what they miss, as an entry of a spec.
    lines = KERNEL.splitlines()
    shown = [each for each in found["survived"] if "cells[:, i, j, h, w]" in lines[each.line - 1]]
    assert shown
    for each in shown:
        assert each.shown_by is not None
        assert each.shown_by["params"]["psa_type"] in (1, "distribute")
    assert json.dumps(shown[0].shown_by) in ran.out
    # A legal call has one of the two modes: without the check of the mode nothing changes.
    assert "psa_type" in str(found["equivalent"][0].diff)
    assert all(each.drawn > 20 for each in found["equivalent"])


@pytest.mark.slow
def test_matrix(kernel: Path, cli: Cli) -> None:
    write_psamask(kernel.parent / "cases", "again", h_mask=3)
    ran = cli(*arguments(kernel, "--matrix"))
    rows = read_mutants(kernel.parent / "out")[OP].mutants.values()
    zero = next(each for each in rows if each.kind == "zero_fill")
    half = next(each for each in rows if "top, left = (h_mask - 1) * 2" in str(each.diff))
    ids = {name: f"{OP}/general/{name}" for name in ("mask1", "mask3", "mask4", "again")}
    assert set(zero.killed_by) == set(ids.values())
    assert set(half.killed_by) == set(ids.values()) - {ids["mask1"]}  # of a single row half is 0 either way
    assert (zero.run, half.run) == (4, 4)
    # One of two cases that kill the same is enough.
    chosen = ran.out.split("kill all that any kills")[1]
    assert ("general/again" in chosen) != ("general/mask3" in chosen)


@pytest.mark.slow
def test_resume_judges_only_what_is_left(kernel: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    out = kernel.parent / "out"
    cli(*arguments(kernel))
    whole = (out / records.MUTANTS).read_bytes().splitlines(keepends=True)
    table = {name: each.status for name, each in read_mutants(out)[OP].mutants.items()}
    (out / records.MUTANTS).write_bytes(b"".join(whole[:-3]) + whole[-3][:20])
    judged: list[str] = []
    add = records.MutantFile.add

    def noted(file: records.MutantFile, record: records.MutantRecord | records.CasesRecord) -> None:
        judged.append(type(record).__name__)
        add(file, record)

    monkeypatch.setattr(records.MutantFile, "add", noted)
    ran = cli(*arguments(kernel, "--resume"))
    assert judged.count("MutantRecord") == 3
    assert {name: each.status for name, each in read_mutants(out)[OP].mutants.items()} == table
    assert ran.code == 1
    kernel.write_text(KERNEL.replace("h = 0", "h = 00"))  # another source: nothing is kept
    judged.clear()
    cli(*arguments(kernel, "--resume"))
    assert judged.count("MutantRecord") == len(table)


def test_what_an_interrupt_leaves(kernel: Path) -> None:
    out = kernel.parent / "out"
    command = [sys.executable, "-m", "mluops_cli", *map(str, arguments(kernel, "-j", 1))]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: (out / records.MUTANTS).exists() and len((out / records.MUTANTS).read_bytes().splitlines()) > 5)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "--resume goes on" in error
    lines = [json.loads(line) for line in (out / records.MUTANTS).read_bytes().splitlines()]
    assert len(lines) > 5


def test_what_the_death_of_the_fork_server_leaves(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command says so and what to do; the mutants judged before are in the file, and --resume judges the others."""
    (tmp_path / "mutated_kernel.py").write_text(KERNEL)  # no name of a module that another test has imported
    (tmp_path / "checked.py").write_text(CHECKED)
    write_psamask(tmp_path / "cases", "case")
    judged: list[str] = []
    begun: list[tuple[int, int]] = []  # mutants, and those that have a record before
    add, begins = records.MutantFile.add, _Progress.begins

    def noted(file: records.MutantFile, record: records.MutantRecord | records.CasesRecord) -> None:
        add(file, record)
        if isinstance(record, records.CasesRecord):
            return
        judged.append(record.mutant)
        if len(judged) == 3:
            for child in multiprocessing.active_children():
                child.kill()

    def begin(progress: _Progress, op: str, mutants: int, done: int) -> None:
        begun.append((mutants, done))
        begins(progress, op, mutants, done)

    monkeypatch.setattr(records.MutantFile, "add", noted)
    monkeypatch.setattr(_Progress, "begins", begin)
    impl, out = f"python:{tmp_path}/checked.py:checked", tmp_path / "out"
    words = ["mutate", "--impl", impl, "--cases", tmp_path / "cases", "-j", 1, "--drawn", 0, "--out", out]
    ran = cli(*words)
    assert (ran.code, "the process that runs the mutants ended" in ran.err) == (3, True), ran.err
    assert "--resume goes on" in ran.err
    before = read_mutants(out)[OP].mutants
    assert set(judged) == set(before)
    assert len(judged) == 3
    ran = cli(*words, "--resume")
    assert ran.code in (0, 1), ran.err
    after = read_mutants(out)[OP].mutants
    assert begun == [(len(after), 0), (len(after), 3)]
    assert sorted(judged) == sorted(after)  # each once
    assert {name: after[name] for name in before} == before


def test_progress_is_shown_while_mutants_are_judged_and_compared(capsys: pytest.CaptureFixture[str]) -> None:
    seconds = iter(range(0, 1000, 6))
    progress = _Progress(lambda: float(next(seconds)))
    record = records.MutantRecord(OP, "", "m", "k.py", 1, "comparison", "killed")
    progress.begins(OP, 5, 1)
    progress.judged(record)
    progress.judged(record)
    progress.compares(2)
    progress.compared(record)
    record.shown_by = {"name": "seed1_0"}
    progress.compared(record)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        f"{OP}: 3 of 5 mutants, 2 killed",
        f"{OP}: 2 of 2 mutants compared on drawn calls, 1 of them differ",
    ]


@pytest.mark.slow
def test_a_kernel_that_ends_its_process_costs_no_other_mutant(tmp_path: Path, cli: Cli) -> None:
    body = KERNEL.replace("    y[...] = 0\n", "    y[...] = 0\n    if len(params) > 9:\n        os._exit(3)\n")
    kernel = tmp_path / "kernel.py"
    kernel.write_text("import os\n" + body)
    write_psamask(tmp_path / "cases", "case")
    cli(*arguments(kernel))
    killed = [each for each in by_status(tmp_path / "out")["killed"] if each.line == 13 - 1]
    crashes = [each.reason for each in killed if each.reason.startswith("crash")]
    assert crashes == ["crash: its process ended with exit code 3"] * len(crashes)
    assert crashes


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        (["--impl", "exec:./a"], 2, "only the source of python:FILE.py:NAME, tiled, torch can be mutated"),
        (["--impl", "python:missing.py:f"], 2, "no such Python file"),
        (["--impl", "python:kernel.py"], 2, "names no object"),
        (["-k", "nothing"], 5, "no case is selected"),
        (["psamask_forwards"], 2, "psamask_forward"),
    ],
)
def test_what_is_typed_wrong(
    kernel: Path, cli: Cli, more: list[Any], code: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(kernel.parent)
    ran = cli(*arguments(kernel), *more)
    assert (ran.code, message in ran.err) == (code, True), ran.err


def test_a_kernel_that_is_wrong_itself(kernel: Path, cli: Cli) -> None:
    kernel.write_text(KERNEL.replace("y[...] = 0", "y[...] = 1"))
    ran = cli(*arguments(kernel))
    assert ran.code == 2
    assert "no case passes" in ran.err


@pytest.mark.slow
def test_a_case_that_the_right_source_fails_is_left_out(kernel: Path, cli: Cli) -> None:
    kernel.write_text(KERNEL.replace("(h_mask - 1) // 2", "h_mask // 2"))
    ran = cli(*arguments(kernel))
    assert f"{OP}/general/mask4 is left out" in ran.err
    assert set(read_mutants(kernel.parent / "out")[OP].cases.cases) == {f"{OP}/general/mask{n}" for n in (1, 3)}


def test_a_file_that_is_not_ours_is_left_alone(kernel: Path, cli: Cli) -> None:
    out = kernel.parent / "out"
    out.mkdir()
    (out / records.MUTANTS).write_text("precious\n")
    ran = cli(*arguments(kernel))
    assert ran.code == 2
    assert "expected a line of mluops mutate" in ran.err
    assert (out / records.MUTANTS).read_text() == "precious\n"
    assert os.listdir(out) == [records.MUTANTS]


@pytest.mark.slow
def test_tiled_with_generated_cases(tmp_path: Path, cli: Cli) -> None:
    ran = cli("mutate", "psamask_backward", "--suite", "zero_element", "--out", tmp_path / "out", "--drawn", 0)
    found = read_mutants(tmp_path / "out")["psamask_backward"]
    assert ran.code == 1
    assert len(found.cases.cases) == len(list(tmp_path.rglob("*.pb"))) > 3
    files = {each.file.rpartition("implementations/")[2] for each in found.mutants.values()}
    assert files == {"preconditions/base.py", "preconditions/psamask.py", "tiled/base.py"} & files
    assert "preconditions/psamask.py" in files


def test_the_catalogue_needs_no_source(tmp_path: Path, cli: Cli) -> None:
    write_psamask(tmp_path / "cases", "odd", h_mask=3)
    arguments = ["mutate", "--catalogue", "--cases", tmp_path / "cases", "--out", tmp_path / "out", "-j", 2]
    ran = cli(*arguments)
    assert ran.code == 1
    found = {name.partition(":")[2]: each for name, each in read_mutants(tmp_path / "out")[OP].mutants.items()}
    assert found["no_zero_fill"].killed_by == [f"{OP}/general/odd"]
    assert found["nan_dropped"].status == "survived"  # the case has no NaN
    # With a height of 3 the rounding of an even mask is never asked for.
    assert found["half_of_even_mask_rounded_up"].status == "survived"
    write_psamask(tmp_path / "cases", "even", h_mask=4)
    cli(*arguments)
    found = {name.partition(":")[2]: each for name, each in read_mutants(tmp_path / "out")[OP].mutants.items()}
    assert found["half_of_even_mask_rounded_up"].killed_by == [f"{OP}/general/even"]


def test_the_catalogue_goes_without_an_implementation(kernel: Path, cli: Cli) -> None:
    ran = cli(*arguments(kernel, "--catalogue"))
    assert (ran.code, "--impl can't be given" in ran.err) == (2, True)


def test_an_operator_without_a_contract(tmp_path: Path, cli: Cli) -> None:
    node = case_node("alien_op", suite="")
    add_tensor(node.input, "in", (4,), layout="ARRAY")
    add_tensor(node.output, "out", (4,), layout="ARRAY")
    node.evaluation_criterion.append(node.DESCRIPTOR.fields_by_name["evaluation_criterion"].enum_type.values[0].number)
    node.evaluation_threshold.append(0)
    given = np.arange(4, dtype=np.float32)
    (tmp_path / "cases").mkdir()
    write_case(tmp_path / "cases" / "alien.pb", node, [given], [given + 2])
    kernel = tmp_path / "kernel.py"
    kernel.write_text("def kernel(op, inputs, outputs, params):\n    outputs['out'][...] = inputs['in'] + 2\n")
    ran = cli("mutate", "--impl", f"python:{kernel}:kernel", "--cases", tmp_path / "cases", "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    kinds = {each.kind: each.status for each in read_mutants(tmp_path / "out")["alien_op"].mutants.values()}
    assert kinds == {"arithmetic": "killed", "off_by_one": "killed", "removed_statement": "killed"}
