"""docs/pytest.md: its files and commands do what the page says, in its order."""

from __future__ import annotations

import inspect
import re
import shlex
import shutil
from glob import escape
from pathlib import Path

import mluops_cli.pytest_plugin.marker
from mluops_cli.pytest_plugin import MluopsCase
from tests.conftest import PROJECT
from tests.mluops_cli.conftest import Cli
from tests.mluops_cli.pytest_plugin.conftest import RunPytest

TEXT = (PROJECT / "docs" / "pytest.md").read_text(encoding="utf-8")
FILES = re.findall(r"^```\w+\n# (\S+)\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)
BLOCKS = re.findall(r"^(?:    .*\n)+", re.sub(r"^```.*?^```", "", TEXT, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)


def test_the_page_does_what_it_says(folder: Path, run_pytest: RunPytest, cli: Cli) -> None:
    shutil.copy(PROJECT / "examples" / "python_kernel" / "faulty_psamask.py", folder)
    for name, content in FILES:
        (folder / name).write_text(content, encoding="utf-8")
    run = 0
    for command in re.split(r"^    \$ ", "".join(BLOCKS), flags=re.MULTILINE)[1:]:
        line, *shown = command.splitlines()
        words = shlex.split(line, comments=True)
        if words[0] == "mluops":
            assert cli(*words[1:]).code == 0
            continue
        result = run_pytest(*words[1:])
        outcomes = {word: int(number) for number, word in re.findall(r"(\d+) (\w+)", line.partition("  # ")[2])}
        assert outcomes
        result.assert_outcomes(**outcomes)
        result.stdout.fnmatch_lines(["*".join(map(escape, each[4:].split("..."))) for each in shown])
        run += 1
    assert run == TEXT.count("$ pytest") == 6
    run_pytest("test_by_hand.py").assert_outcomes(failed=2, passed=10)


def test_the_files_are_found() -> None:
    assert len(FILES) == TEXT.count("\n```") // 2 == 4


def test_every_argument_and_attribute_is_explained() -> None:
    named = inspect.signature(mluops_cli.pytest_plugin.marker._named).parameters.keys() - {"folder", "operators"}
    members = {name for name in vars(MluopsCase) if not name.startswith("_")}
    attributes = set(re.findall(r"self\.([a-z]\w*):? ", inspect.getsource(MluopsCase.__init__)))
    assert {"id", "inputs", "outputs", "params"} <= attributes
    for word in named | members | attributes:
        assert re.search(rf"`{word}\b", TEXT), word
