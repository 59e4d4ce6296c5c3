"""`gen` that is killed, stopped, run twice at once, or has no disk to write to (rows F4, F7, F9).

Afterwards every file is old and whole, or new and whole, and the next gen goes on without help.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from generators.casegen.manifest import agrees, read_manifest
from mluops_cli.commands import gen
from tests.conftest import PROJECT
from tests.mluops_cli.conftest import Cli

CASES = 24
SPEC = """op: psamask_{direction}
suites:
  many:
    - name: c
      params: {{psa_type: collect, h_mask: 5, w_mask: 5}}
      sizes: {{H: 6, W: 5}}
      matrix: {{params.psa_type: [collect, distribute], sizes.N: [{sizes}]}}
"""
OWN = {"manifest.json", ".mluops.lock"}


@pytest.fixture
def specs(tmp_path: Path) -> Path:
    """Two specs: CASES cases of one operator, and as many of another."""
    folder = tmp_path / "specs"
    folder.mkdir()
    sizes = ", ".join(map(str, range(1, CASES // 2 + 1)))
    for direction in ("forward", "backward"):
        (folder / f"{direction}.yaml").write_text(SPEC.format(direction=direction, sizes=sizes))
    return folder


def start(*arguments: object) -> subprocess.Popen[str]:
    """`mluops gen` in a process group of its own."""
    command = [sys.executable, "-m", "mluops_cli", "gen", *map(str, arguments)]
    return subprocess.Popen(
        command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def wait_for(path: Path) -> None:
    until = time.monotonic() + 60
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.002)
    assert path.exists()


def case_files(out: Path) -> list[Path]:
    return [path for path in out.rglob("*") if path.suffix in (".pb", ".prototxt")]


def holds_one_of(path: Path, out: Path, *manifests: dict[str, dict[str, Any]]) -> bool:
    """Whether a case file is whole, and the one of a manifest."""
    case = path.relative_to(out).with_suffix("").as_posix()
    return any(agrees(path, entries[case]) for entries in manifests)


def killed_at_random_moments(cli: Cli, specs: Path, folder: Path, moments: int) -> None:
    """Kill a gen with another seed over the same folder, each time at another moment; see the module."""
    options = ("--spec", specs / "forward.yaml", "--format", "both", "--inline-limit", "8KiB", "-j", "2")
    manifests = []
    for seed in (1, 2):
        assert cli("gen", *options, "--seed", seed, "--out", folder / f"whole{seed}").code == 0
        manifests.append(read_manifest(folder / f"whole{seed}"))
    begin = time.monotonic()
    assert cli("gen", *options, "--seed", 1, "--out", folder / "out").code == 0
    duration = time.monotonic() - begin
    out, rng = folder / "out", random.Random(moments)
    for moment in range(moments):
        seed = 2 - moment % 2
        running = start(*options, "--seed", seed, "--out", out)
        wait_for(out / ".mluops.journal")
        time.sleep(rng.uniform(0, duration))
        if moment % 3:
            os.killpg(running.pid, signal.SIGKILL)
        else:
            running.kill()  # its workers end by themselves
        running.communicate()
        for path in case_files(out / "psamask_forward"):
            assert holds_one_of(path, out, *manifests), (moment, path)
        ran = cli("gen", "--spec", specs / "backward.yaml", "--out", out, "-j", 1, "-k", "n1")
        assert ran.code == 0, (moment, ran.err)
        entries = read_manifest(out)
        listed = {file for entry in entries.values() for file in entry["files"]}
        assert {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()} - OWN == listed
        for case, entry in entries.items():
            for file in (file for file in entry["files"] if not file.endswith(".bin")):
                assert agrees(out / file, entry), (moment, case, file)
    assert cli("gen", *options, "--seed", 1, "--out", out).code == 0
    assert {key: entry for key, entry in read_manifest(out).items() if key in manifests[0]} == manifests[0]


@pytest.mark.slow
def test_f7_killed_at_five_moments(cli: Cli, specs: Path, tmp_path: Path) -> None:
    killed_at_random_moments(cli, specs, tmp_path, 5)


@pytest.mark.slow
@pytest.mark.long
def test_f7_killed_at_fifty_moments(cli: Cli, specs: Path, tmp_path: Path) -> None:
    killed_at_random_moments(cli, specs, tmp_path, 50)


@pytest.mark.parametrize("jobs", [1, 2])
def test_f7_sigterm_ends_it_as_ctrl_c_does(specs: Path, tmp_path: Path, jobs: int) -> None:
    out = tmp_path / "out"
    running = start("--spec", specs, "--out", out, "-j", jobs)
    wait_for(out / ".mluops.journal")
    running.terminate()
    _, err = running.communicate(timeout=60)
    assert running.returncode == 130
    # A worker process that was just starting may say so too.
    assert "interrupted" in err.splitlines()
    listed = {
        file for entry in json.loads((out / "manifest.json").read_text())["cases"].values() for file in entry["files"]
    }
    assert {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()} - OWN == listed
    assert len(listed) < 2 * CASES


def test_f4_two_gens_into_one_folder_at_once(specs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    both = [start("--spec", specs / f"{name}.yaml", "--out", out, "-j", "2") for name in ("forward", "backward")]
    said = [running.communicate(timeout=120) for running in both]
    assert [running.returncode for running in both] == [0, 0], said
    assert [text for text, _ in said if text.startswith(f"{CASES} cases")] == [text for text, _ in said]
    entries = read_manifest(out)
    assert len(entries) == 2 * CASES
    assert all(agrees(out / file, entry) for entry in entries.values() for file in entry["files"])


@pytest.mark.parametrize("jobs", [1, 2])
def test_f9_a_full_disk_is_told_with_file_and_space(
    cli: Cli, specs: Path, disk: Path, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    """What is whole stays and is listed, and the next gen goes on where there is space."""
    monkeypatch.setattr(gen, "_check_space", lambda out, sizes: None)  # another program takes the space meanwhile
    out = disk / "out"
    ran = cli("gen", "--spec", specs, "--out", out, "-j", jobs)
    assert ran.code == 3
    message = ran.err.splitlines()[-1]
    assert message.startswith(f"{out}/psamask_"), message
    assert "can't write: No space left on device (" in message
    assert f" MiB free in {out}" in message
    files = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()} - OWN
    assert not [name for name in files if name.endswith(".part")]
    assert len(files - {".mluops.journal"}) > 1
    known = read_manifest(out)
    assert {file for entry in known.values() for file in entry["files"]} == files - {".mluops.journal"}
    assert all(agrees(out / file, entry) for entry in known.values() for file in entry["files"])
    for name in list(files)[:4]:
        (out / name).unlink()
    again = cli("gen", "--spec", specs / "forward.yaml", "--out", out, "-j", 1, "-k", "n2")
    assert again.code == 0, again.err
    assert not (out / ".mluops.journal").exists()


def test_f9_a_folder_that_is_read_only_is_told_and_left_alone(cli: Cli, specs: Path, disk: Path) -> None:
    out = disk / "out"
    select = ("--spec", specs / "forward.yaml", "--out", out, "-j", 1, "-k", "n1")
    assert cli("gen", *select).code == 0
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    ran = cli("gen", *select, "--seed", 2)
    assert (ran.code, ran.err) == (3, f"{out}/.mluops.lock: can't write: Read-only file system\n")
    ran = cli("gen", *select[:2], "--out", disk / "new", *select[4:])
    assert (ran.code, ran.err) == (2, f"{disk}/new: can't make this folder: Read-only file system\n")
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
