"""The walk-through of docs/finding-faults.md does what the page says, command by command, file by file."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Final

import pytest

from mluops_cli.search.mutation.records import read_mutants
from tests.conftest import PROJECT
from tests.mluops_cli.conftest import Cli

PAGE: Final = PROJECT / "docs" / "finding-faults.md"
# What a reader does, in the order of the page: a command with its exit code, or a block of a file.
STEPS: Final = re.compile(
    r"^    (?P<command>(?:mluops|cp) [^#\n]+?)(?:\s+# exit code (?P<code>\d+))?$"
    r"|^```(?P<kind>\w*)\n(?P<block>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


def steps() -> list[re.Match[str]]:
    text = PAGE.read_text(encoding="utf-8")
    return list(STEPS.finditer(text.partition("## From a finding to a better suite")[2]))


@pytest.mark.slow
def test_the_walk_through(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(PROJECT / "examples", tmp_path / "examples")
    commands = 0
    for step in steps():
        program, *words = (step["command"] or "none").split()
        if program == "cp":
            shutil.copy(*words)
        elif program == "mluops":
            ran = cli(*words)
            assert ran.code == int(step["code"] or 0), f"{step['command']}\n{ran.out}{ran.err}"
            commands += 1
        elif step["kind"] == "yaml":
            with Path("mine.yaml").open("a", encoding="utf-8") as spec:
                spec.write(step["block"])
        elif step["kind"] == "diff":
            before, after = (line[1:] for line in step["block"].splitlines())
            text = Path("kernel.py").read_text(encoding="utf-8")
            assert before in text
            Path("kernel.py").write_text(text.replace(before, after), encoding="utf-8")
        else:
            survivors = [
                each for each in read_mutants(Path("mutants"))["psamask_forward"].mutants.values() if each.survives
            ]
            assert step["block"].splitlines() in [each.diff for each in survivors if each.shown_by]
    assert commands == 9
    found = Path("found.yaml").read_text(encoding="utf-8")
    entry = next(step["block"] for step in steps() if "even_width" in (step["block"] or ""))
    assert "\n".join(entry.splitlines()[1:]) in found, "the finding isn't the one that the page shows"
