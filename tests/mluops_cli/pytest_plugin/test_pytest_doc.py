"""docs/pytest.md: its files and commands do what the page says, in its order."""

from __future__ import annotations

import inspect
import re
import shutil
from glob import escape
from pathlib import Path

import mluops_cli.pytest_plugin.marker
from mluops_cli.pytest_plugin import MluopsCase
from tests.conftest import PROJECT
from tests.mluops_cli.conftest import Cli
from tests.mluops_cli.pytest_plugin.conftest import RunPytest
from tests.mluops_cli.tutorials.page import Command, follow

TEXT = (PROJECT / "docs" / "pytest.md").read_text(encoding="utf-8")


def test_the_page_does_what_it_says(folder: Path, run_pytest: RunPytest, cli: Cli) -> None:
    shutil.copy(PROJECT / "examples" / "python_kernel" / "faulty_psamask.py", folder)
    run = 0

    def tried(command: Command) -> None:
        nonlocal run
        result = run_pytest(*command.words[1:])
        outcomes = {word: int(number) for number, word in re.findall(r"(\d+) (\w+)", command.remark)}
        assert outcomes
        result.assert_outcomes(**outcomes)
        result.stdout.fnmatch_lines(["*".join(map(escape, line.split("..."))) for line in command.printed])
        run += 1

    follow("pytest.md", folder, cli, {"pytest": tried})
    assert run == TEXT.count("$ pytest") == 6
    run_pytest("test_by_hand.py").assert_outcomes(failed=2, passed=10)


def test_every_argument_and_attribute_is_explained() -> None:
    named = inspect.signature(mluops_cli.pytest_plugin.marker._named).parameters.keys() - {"folder", "operators"}
    members = {name for name in vars(MluopsCase) if not name.startswith("_")}
    attributes = set(re.findall(r"self\.([a-z]\w*):? ", inspect.getsource(MluopsCase.__init__)))
    assert {"id", "inputs", "outputs", "params"} <= attributes
    for word in named | members | attributes:
        assert re.search(rf"`{word}\b", TEXT), word
