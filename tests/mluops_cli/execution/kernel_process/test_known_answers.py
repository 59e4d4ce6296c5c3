"""A pass proves nothing where the kernel's process has used what holds the answer; other files are no matter."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from mluops_cli.execution.case.calls import KNOWN
from mluops_cli.execution.kernel_process import forked_notes
from mluops_cli.execution.kernel_process.forked_notes import ForkedNotes
from mluops_cli.execution.kernel_process.known_answers import folders_of_answers
from tests.mluops_cli.execution.conftest import write_psamask
from tests.mluops_cli.execution.kernel_process import answering
from tests.mluops_cli.implementations.exec.conftest import EXAMPLE

KERNELS = answering.__file__
OTHERS = (
    "right", "reads_a_model", "reads_its_own_source", "opens_its_own_memory", "opens_a_long_name", "computes_in_a_fork",
    "starts_a_compiler", "uses_shared_memory", "asks_for_the_compiler",
)  # fmt: skip


@pytest.fixture
def cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.pb").write_bytes(b"\x0a\x03abc")
    return write_psamask(tmp_path / "cases", "one")


@pytest.mark.parametrize("impl", [f"python:{KERNELS}:{name}" for name in OTHERS] + ["tiled"])
def test_right_kernels_pass(impl: str, cases: Path, run: Any) -> None:
    ran = run(cases, "--impl", impl, "--repeat", "2")
    (record,) = ran.records.values()
    assert (record["status"], record["reason"], record["programs"]) == ("pass", "", [])


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("opens_the_case", "{cases}"),
        ("calls_the_reference", "the reference kernel of psamask_forward"),
        ("opens_the_case_in_a_fork", "{cases}"),
        ("opens_a_link", "{cases}"),
        ("opens_a_hard_link", "{cases}"),
        ("opens_it_while_it_has_another_name", "{cases}"),
        ("opens_many_files_first", "more than 256 files whose names end as those of case files do"),
        ("opens_memory_of_the_judge", "/proc/"),
        ("imports_tiled", "mluops_cli/implementations/tiled/psamask.py"),
    ],
)
def test_what_holds_the_answer_is_named(name: str, found: str, cases: Path, run: Any) -> None:
    ran = run(cases, "--impl", f"python:{KERNELS}:{name}")
    (record,) = ran.records.values()
    assert (record["status"], ran.code) == ("mistrusted", 1)  # nothing was validated
    assert record["reason"].startswith(KNOWN + found.format(cases=cases))


@pytest.mark.parametrize(
    ("name", "program"),
    [
        ("starts_a_program_after_a_tool", "sh, true"),
        ("starts_many_programs", ", ".join([*(f"missing{number}" for number in range(8)), "2 more"])),
        ("starts_python", Path(sys.executable).name),
        ("starts_a_shell", "true"),
        ("starts_a_pool", "a process of multiprocessing"),
        ("starts_a_program_in_a_fork", "true"),
        ("starts_a_program_in_c", "system() of C"),
    ],
)
def test_programs_are_named_and_fail_nothing(name: str, program: str, cases: Path, run: Any) -> None:
    ran = run(cases, "--impl", f"python:{KERNELS}:{name}", "--strict")
    (record,) = ran.records.values()
    assert (record["status"], record["reason"], ", ".join(record["programs"]), ran.code) == ("pass", "", program, 0)
    assert (
        f"STARTS psamask_forward/general/one: the kernel's process has started {program}: a program can use what"
        in ran.out
    )


def test_an_implementation_that_is_a_program_is_not_named(cases: Path, run: Any) -> None:
    ran = run(cases, "--impl", f"exec:{sys.executable} {EXAMPLE} {{dir}}")
    (record,) = ran.records.values()
    assert (record["status"], record["programs"]) == ("pass", [])


def test_notes_of_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A note that does not fit its slot is lost, and costs no other its own; so is a note without a slot."""
    monkeypatch.setattr(forked_notes, "_SLOTS", 3)
    notes = ForkedNotes()
    assert notes.read() == []
    for texts in (["a", "b"], ["c", "x" * (1 << 20), "d\udcff"], ["a long one", "e"], ["f"]):
        if not (process := os.fork()):
            for text in texts:
                notes.write(text)
            os._exit(0)
        os.waitpid(process, 0)
    assert notes.read()[:4] == ["a", "b", "c", "d\udcff"]
    assert notes.read()[4:] == ["f"]  # the last slot is the one of all that came too late


@pytest.mark.parametrize(
    ("impl", "own"), [("torch", True), ("torch:device=cpu", True), ("torch:k.py:f", False), ("python:k.py:f", False)]
)
def test_a_bundled_kernel_may_use_its_own_folder_and_a_callable_none(impl: str, own: bool) -> None:
    found = {each.name for each in folders_of_answers(impl)}
    assert found == {"operators", "tiled", "triton"} | (set() if own else {"torch"})


def test_a_callable_of_torch_that_calls_the_bundled_kernel_is_named(cases: Path, run: Any) -> None:
    pytest.importorskip("torch")
    ran = run(cases, "--impl", f"torch:{KERNELS}:calls_torch")
    (record,) = ran.records.values()
    assert record["status"] == "mistrusted"
    assert record["reason"].startswith(f"{KNOWN}mluops_cli/implementations/torch/psamask.py")
