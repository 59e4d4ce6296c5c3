"""`convert` and `import` that are killed, or have no disk to write to (rows A4, B12, F7, F9).

Afterwards every file is old and whole, or new and whole, and the next command goes on without help.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import numpy as np
import pytest
import yaml

from schemas.casefiles.reading import read_case, write_case
from tests.conftest import PROJECT
from tests.mluops_cli.conftest import Cli
from tests.mluops_cli.execution.conftest import add_tensor, case_node

CASES: Final = 12
# The command, with a pause before each file that is written and each that is renamed: the kill meets any of them.
SLOWLY: Final = """
import os, sys, time
from schemas import atomic_files
from mluops_cli.main import main
fill, replace = atomic_files._fill, os.replace
def slow(function):
    return lambda *arguments, **options: (time.sleep(0.002), function(*arguments, **options))[1]
atomic_files._fill, os.replace = slow(fill), slow(replace)
print("ready", flush=True)
main(sys.argv[1:])
"""


def dumps(folder: Path, value: int) -> Path:
    """Case files of psamask_forward whose inputs are stored: all have the value."""
    folder.mkdir(parents=True)
    for number in range(1, CASES + 1):
        node = case_node(suite="")
        node.psamask_forward_param.psa_type = 0
        node.psamask_forward_param.h_mask = node.psamask_forward_param.w_mask = 3
        add_tensor(node.input, "x", (number, 2, 3, 9))
        add_tensor(node.output, "y", (number, 2, 3, 6))
        x, y = (np.full((number, 2, 3, last), value, np.float32) for last in (9, 6))
        write_case(folder / f"c{number}.pb", node, [x], [y])
    return folder


def values_of(path: Path) -> set[float]:
    """The values of all tensors of a case file."""
    with read_case(path) as case:
        return {float(each) for record in (*case.inputs, *case.outputs) for each in record.array().flat}


def values_in(spec: Path) -> set[float]:
    """The values of all files that a spec names."""
    entries = yaml.safe_load(spec.read_text())["suites"]["imported"]
    files = [tensor["dist"]["file"] for entry in entries for tensor in entry["inputs"].values()]
    assert len(files) == CASES
    return {float(each) for file in files for each in np.load(spec.parent / file).flat}


def converted(out: Path) -> dict[Path, set[float]]:
    return {path: values_of(path) for path in out.glob("*.pb")}


def imported(out: Path) -> dict[Path, set[float]]:
    return {path: values_in(path) for path in out.glob("*.yaml")}


Check = Callable[[Path], dict[Path, set[float]]]
# Words of a command, what its output holds, the number of files, and about how many seconds it writes.
COMMANDS: Final[dict[str, tuple[Callable[[Path, Path], list[object]], Check, int, float]]] = {
    "convert": (lambda source, out: ["convert", source, out, "--to", "pb", "--inline-limit", 0], converted, CASES, 0.2),
    "import": (lambda source, out: ["import", source, "--out", out], imported, 1, 0.06),
}


@pytest.mark.parametrize("moments", [4, pytest.param(50, marks=pytest.mark.slow)])
@pytest.mark.parametrize("command", COMMANDS)
def test_f7_killed_at_random_moments(cli: Cli, tmp_path: Path, command: str, moments: int) -> None:
    """Over the output of another source: each file is one of the two, with the values that belong to it."""
    words, check, number, duration = COMMANDS[command]
    sources = [dumps(tmp_path / f"source{value}", value) for value in (1, 2)]
    out, rng = tmp_path / "out", random.Random(moments)
    assert cli(*words(sources[0], out)).code == 0
    killed = 0
    for moment in range(moments):
        arguments = map(str, words(sources[1 - moment % 2], out))
        running = subprocess.Popen(
            [sys.executable, "-c", SLOWLY, *arguments], cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert running.stdout is not None
        running.stdout.readline()
        while not list(out.rglob(".mluops-*.part")) and running.poll() is None:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, duration))
        running.kill()
        running.communicate()
        killed += running.returncode == -signal.SIGKILL
        found = check(out)
        assert len(found) == number
        assert all(values in ({1.0}, {2.0}) for values in found.values()), (moment, found)
    assert cli(*words(sources[1], out)).code == 0
    assert {value for values in check(out).values() for value in values} == {2.0}
    assert not list(out.rglob("*.part"))
    assert killed > moments // 3


@pytest.mark.parametrize("command", COMMANDS)
def test_f9_a_full_disk_is_told_with_file_and_space(cli: Cli, tmp_path: Path, disk: Path, command: str) -> None:
    words, check, _, _ = COMMANDS[command]
    out = disk / "out"
    assert cli(*words(dumps(tmp_path / "first", 1), out)).code == 0
    before = check(out)
    filling = disk / "filling"
    with suppress(OSError), filling.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    ran = cli(*words(dumps(tmp_path / "second", 2), out))
    assert ran.code == 3
    message = ran.err.splitlines()[-1]
    assert message.startswith(f"{out}/"), message
    assert "can't write: No space left on device (0.0 MiB free in " in message
    assert check(out) == before
    assert not list(out.rglob("*.part"))
    filling.unlink()
    assert cli(*words(tmp_path / "second", out)).code == 0
    assert {value for values in check(out).values() for value in values} == {2.0}


@pytest.mark.parametrize("command", COMMANDS)
def test_f9_a_folder_that_is_read_only_is_told_and_left_alone(
    cli: Cli, tmp_path: Path, disk: Path, command: str
) -> None:
    words, check, _, _ = COMMANDS[command]
    out = disk / "out"
    assert cli(*words(dumps(tmp_path / "first", 1), out)).code == 0
    before = check(out)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    second = dumps(tmp_path / "second", 2)
    for folder in (out, disk / "new"):
        ran = cli(*words(second, folder))
        assert ran.code == 3
        message = ran.err.splitlines()[-1]
        assert message.startswith(f"{folder}/"), message
        assert message.endswith(": can't write: Read-only file system"), message
    assert check(out) == before


def test_a4_import_again_leaves_no_value_file_that_no_spec_names(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for value in (1, 2):
        assert cli("import", dumps(tmp_path / f"source{value}", value), "--out", out).code == 0
    (out / "data" / "mine.npy").write_bytes(b"foreign")
    assert cli("import", tmp_path / "source1", "--out", out).code == 0
    assert len(list((out / "data").iterdir())) == CASES + 1
    assert values_in(out / "psamask_forward.yaml") == {1.0}
