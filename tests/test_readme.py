"""The README's commands are run as they stand there, in the order of the tour."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.conftest import PROJECT

THEIRS = """op_name: "psamask_forward"
input { id: "input" shape { dims: [1, 1, 2, 3] } layout: LAYOUT_NHWC dtype: DTYPE_FLOAT random_data { seed: 23 } }
output { id: "output" shape { dims: [1, 1, 2, 2] } layout: LAYOUT_NHWC dtype: DTYPE_FLOAT }
psamask_forward_param { h_mask: 1 w_mask: 3 psa_type: 0 }
test_param { error_func: DIFF3 error_threshold: 0 baseline_device: CPU }
"""


def tour() -> list[str]:
    """The commands of the five minutes."""
    text = (PROJECT / "README.md").read_text(encoding="utf-8")
    section = text.split("## Five minutes")[1].split("\n## ")[0]
    return re.findall(r"^    (mluops .+)$", section, re.MULTILINE)


def test_the_tour_does_what_it_says(tmp_path: Path) -> None:
    commands = tour()
    assert len(commands) >= 9
    shutil.copytree(PROJECT / "examples", tmp_path / "examples")
    (tmp_path / "path/to/prototxt").mkdir(parents=True)
    (tmp_path / "path/to/prototxt/theirs.prototxt").write_text(THEIRS, encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(PROJECT)}
    for command in commands:
        words = [sys.executable, "-m", "mluops_cli", *command.split()[1:]]
        ran = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        faulty = "faulty" in command
        assert ran.returncode == (1 if faulty else 0), f"{command}\n{ran.stdout}{ran.stderr}"
        if faulty:
            assert "repro: mluops run" in ran.stdout


def test_every_command_has_a_row() -> None:
    from mluops_cli.main import COMMANDS

    text = (PROJECT / "README.md").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f"| `mluops {name}" not in text] == []


def test_every_page_and_picture_it_names_is_there() -> None:
    text = (PROJECT / "README.md").read_text(encoding="utf-8")
    assert [target for target in re.findall(r"\]\(([^)]+)\)", text) if not (PROJECT / target).exists()] == []
