"""A pass proves nothing where the kernel's process has used what holds the answer; other files are no matter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mluops_cli.execution.case.calls import KNOWN
from tests.mluops_cli.execution.conftest import write_psamask
from tests.mluops_cli.execution.kernel_process import answering

KERNELS = answering.__file__


@pytest.fixture
def cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.pb").write_bytes(b"\x0a\x03abc")
    return write_psamask(tmp_path / "cases", "one")


@pytest.mark.parametrize(
    "impl", [f"python:{KERNELS}:{name}" for name in ("right", "reads_a_model", "reads_its_own_source")] + ["tiled"]
)
def test_right_kernels_pass(impl: str, cases: Path, run: Any) -> None:
    ran = run(cases, "--impl", impl, "--repeat", "2")
    (record,) = ran.records.values()
    assert (record["status"], record["reason"]) == ("pass", "")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("opens_the_case", "{cases}"),
        ("calls_the_reference", "the reference kernel of psamask_forward"),
        ("imports_tiled", "mluops_cli/implementations/tiled/__init__.py, mluops_cli/implementations/tiled/"),
    ],
)
def test_what_holds_the_answer_is_named(name: str, found: str, cases: Path, run: Any) -> None:
    ran = run(cases, "--impl", f"python:{KERNELS}:{name}")
    (record,) = ran.records.values()
    assert (record["status"], ran.code) == ("mistrusted", 1)  # nothing was validated
    assert record["reason"].startswith(KNOWN + found.format(cases=cases))
