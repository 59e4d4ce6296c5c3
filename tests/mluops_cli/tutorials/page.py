"""Following a page of docs/: its commands and files, in its order."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.conftest import PROJECT
from tests.mluops_cli.conftest import Cli

# A command, what it says behind a # and what it prints; a block, and the last file that is named before it.
STEPS: Final = re.compile(
    r"^    (?P<prompt>\$ )?(?P<command>(?:mluops|pytest|cp|cc|cd|make) [^#\n]+?)(?:\s+# (?P<remark>[^\n]+))?\n"
    r"(?P<printed>(?(prompt)(?:    (?!\$ )[^\n]+\n)*))"
    r"|(?:^|[^`])`(?P<name>[\w./]+\.\w+)`(?!`)"
    r"|^```(?P<kind>\w+)\n(?:# (?P<own_name>[\w./]+\.\w+)\n)?(?P<block>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
FROM: Final = {"finding-faults.md": "## From a finding to a better suite"}  # page -> where its steps begin


@dataclass(frozen=True)
class Command:
    """Words; behind a # what comes of them; what the page shows of their output."""

    words: list[str]
    remark: str
    printed: list[str]

    @property
    def code(self) -> int:
        """The exit code."""
        return int(self.remark.removeprefix("exit code ")) if self.remark.startswith("exit code ") else 0


@dataclass(frozen=True)
class Block:
    """A file (it begins with its name) or what is added to one, a change (kind diff), something to read (kind text)."""

    name: str
    kind: str
    text: str
    is_file: bool = False


def steps(page: str) -> Iterator[Command | Block]:
    """What a reader of the page does."""
    name, text = "", (PROJECT / "docs" / page).read_text(encoding="utf-8")
    for step in STEPS.finditer(text, text.index(FROM.get(page, ""))):
        if step["command"]:
            printed = [line[4:] for line in step["printed"].splitlines()]
            yield Command(shlex.split(step["command"]), step["remark"] or "", printed)
        elif step["name"]:
            name = step["name"]
        else:
            name = step["own_name"] or name
            yield Block(name, step["kind"], step["block"], step["own_name"] is not None)


def blocks(page: str, kind: str) -> list[str]:
    """The texts of the blocks of a kind."""
    return [step.text for step in steps(page) if isinstance(step, Block) and step.kind == kind]


def changed(text: str, diff: str) -> str:
    """The text with a block of kind diff applied; what the block takes away or shows as context must be there once."""
    lines = diff.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line[0] in " -")
    assert text.count(before) == 1, f"not there once:\n{before}"
    return text.replace(before, "".join(line[1:] for line in lines if line[0] in " +"))


def write(block: Block, folder: Path) -> None:
    """What the block says, done to its file."""
    if block.kind == "text":
        return
    path = folder / block.name
    text = path.read_text(encoding="utf-8") if path.exists() and not block.is_file else ""
    path.write_text(changed(text, block.text) if block.kind == "diff" else text + block.text, encoding="utf-8")


def follow(
    page: str, folder: Path, cli: Cli, programs: Mapping[str, Callable[[Command], object]] | None = None
) -> list[str]:
    """Do what the page says in this folder, the current one; what each command of mluops, and each make, printed.

    programs run the commands that are neither mluops's nor the system's.
    """
    shutil.copytree(PROJECT / "examples", folder / "examples")
    env = {**os.environ, "PYTHON": sys.executable}  # of make
    printed = []
    for step in steps(page):
        if isinstance(step, Block):
            write(step, folder)
        elif step.words[0] == "cd":
            folder /= step.words[1]
            os.chdir(folder)
        elif programs and step.words[0] in programs:
            programs[step.words[0]](step)
        else:
            if step.words[0] == "mluops":
                code, out, err = cli(*step.words[1:])
            else:
                ran = subprocess.run(step.words, cwd=folder, env=env, capture_output=True, text=True, check=False)
                code, out, err = ran.returncode, ran.stdout, ran.stderr
            assert code == step.code, f"{step.words}\n{out}{err}"
            if step.words[0] in ("mluops", "make"):
                printed.append(out + err)
    return printed
