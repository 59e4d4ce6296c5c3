"""Following a page of docs/: its commands and files, in its order."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.conftest import PROJECT
from tests.mluops_cli.conftest import Cli

# A command with its exit code; a block and the last file that is named before it.
STEPS: Final = re.compile(
    r"^    (?P<command>(?:mluops|cp|cc) [^#\n]+?)(?:\s+# exit code (?P<code>\d+))?$"
    r"|(?:^|[^`])`(?P<name>[\w.]+\.\w+)`(?!`)"
    r"|^```(?P<kind>\w+)\n(?P<block>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Command:
    """Words, and what they exit with."""

    words: list[str]
    code: int


@dataclass(frozen=True)
class Block:
    """A file, or a change of one (kind diff)."""

    name: str
    kind: str
    text: str


def steps(page: str) -> Iterator[Command | Block]:
    """What a reader of the page does."""
    name = ""
    for step in STEPS.finditer((PROJECT / "docs" / page).read_text(encoding="utf-8")):
        if step["command"]:
            yield Command(shlex.split(step["command"]), int(step["code"] or 0))
        elif step["name"]:
            name = step["name"]
        elif step["kind"] != "text":
            yield Block(name, step["kind"], step["block"])


def changed(text: str, diff: str) -> str:
    """The text with a block of kind diff applied; what the block takes away or shows as context must be there once."""
    lines = diff.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line[0] in " -")
    assert text.count(before) == 1, f"not there once:\n{before}"
    return text.replace(before, "".join(line[1:] for line in lines if line[0] in " +"))


def write(block: Block, folder: Path) -> None:
    """What the block says, done to its file."""
    path = folder / block.name
    text = changed(path.read_text(encoding="utf-8"), block.text) if block.kind == "diff" else block.text
    path.write_text(text, encoding="utf-8")


def follow(page: str, folder: Path, cli: Cli) -> list[str]:
    """Do what the page says in this folder, the current one; what each command of mluops printed."""
    shutil.copytree(PROJECT / "examples", folder / "examples")
    printed = []
    for step in steps(page):
        if isinstance(step, Block):
            write(step, folder)
        elif step.words[0] == "mluops":
            ran = cli(*step.words[1:])
            assert ran.code == step.code, f"{step.words}\n{ran.out}{ran.err}"
            printed.append(ran.out + ran.err)
        else:
            subprocess.run(step.words, cwd=folder, check=True)
    return printed
