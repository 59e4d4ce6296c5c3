"""`mluops doctor`: says what is there, and fails where something is missing."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path

import numpy as np
import pytest

from mluops_cli.execution.kernel_process import shared_memory
from tests.mluops_cli.conftest import Cli


def test_a_sound_machine_is_code_0_and_versions_are_told(cli: Cli) -> None:
    ran = cli("doctor")
    assert ran.code == 0, ran.out
    rows = {tuple(line.split()[:2]): line for line in ran.out.splitlines()}
    assert rows["ok", "numpy"].endswith(np.__version__)
    for what in ("python", "cores", "memory", "disk", "protobuf", "inputs", "BLAS", "operators"):
        assert ("ok", what) in rows


@pytest.mark.parametrize(
    ("requirement", "line"),
    [
        ("numpy>=99.1", "MISSING  numpy"),
        ("no-such-package>=1.0", "MISSING  no-such-package"),
    ],
)
def test_a_package_that_is_missing_or_too_old_is_code_3(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, requirement: str, line: str
) -> None:
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: [requirement, "torch>=2.1; extra == 'torch'"])
    ran = cli("doctor")
    assert ran.code == 3
    assert line in ran.out


def test_a_part_that_does_not_load_is_code_3(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from schemas.protos import messages as proto

    proto._pool.cache_clear()
    monkeypatch.setattr(proto, "DESCRIPTOR", tmp_path / "lost.desc")
    ran = cli("doctor")
    monkeypatch.undo()
    assert ran.code == 3
    assert "lost.desc" in ran.out


def test_the_extras_are_those_of_the_package(cli: Cli) -> None:
    """An extra that is told to be installed with pip must be one."""
    text = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    part = text.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    extras = set(re.findall(r"^(\w+) = ", part, re.M)) - {"dev", "site"}  # for work on mluops itself
    told = set(re.findall(r"\[(\w+)\]  ", cli("doctor").out))
    assert told == extras


def test_memory_that_a_control_group_leaves(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("generators.casegen.worker_pool.memory_left", lambda: 500 << 20)
    ran = cli("doctor")
    assert ran.code == 3
    assert re.search(r"MISSING +memory +500.0 MiB available of .*, a network suite needs 1.0 GiB", ran.out)


def test_inputs_that_can_be_written_to_are_told(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_memory, "fixed_inputs_are_safe", lambda: False)
    ran = cli("doctor")
    assert ran.code == 0
    (row,) = (line for line in ran.out.splitlines() if line.split()[1] == "inputs")
    assert row.startswith("-  ")
    assert "/proc/self/fd is refused" in row
