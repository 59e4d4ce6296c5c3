"""A pass proves nothing where the kernel's process has used what holds the answer; other files are no matter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mluops_cli.execution.case.calls import KNOWN
from mluops_cli.execution.kernel_process.known_answers import folders_of_answers
from tests.mluops_cli.execution.conftest import write_psamask
from tests.mluops_cli.execution.kernel_process import answering

KERNELS = answering.__file__
OTHERS = ("right", "reads_a_model", "reads_its_own_source", "opens_its_own_memory", "opens_a_long_name")


@pytest.fixture
def cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.pb").write_bytes(b"\x0a\x03abc")
    return write_psamask(tmp_path / "cases", "one")


@pytest.mark.parametrize("impl", [f"python:{KERNELS}:{name}" for name in OTHERS] + ["tiled"])
def test_right_kernels_pass(impl: str, cases: Path, run: Any) -> None:
    ran = run(cases, "--impl", impl, "--repeat", "2")
    (record,) = ran.records.values()
    assert (record["status"], record["reason"]) == ("pass", "")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("opens_the_case", "{cases}"),
        ("calls_the_reference", "the reference kernel of psamask_forward"),
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
