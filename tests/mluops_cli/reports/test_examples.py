"""The examples in docs/ci: the files are valid, their commands and options exist; test_workflows.py runs them."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import click
import pytest
import yaml

from mluops_cli.main import cli
from mluops_cli.results.gate import Policy, load_policy
from mluops_cli.results.waivers import load_waivers
from tests.conftest import PROJECT

CI = PROJECT / "docs" / "ci"
SERVERS = ("github.yml", "gitlab.yml", "Jenkinsfile")
NIGHTLY = ("github-nightly.yml", "Jenkinsfile.nightly")


def test_the_policy_and_the_waivers_are_read() -> None:
    assert load_policy(CI / "gate.yaml").beyond_bound == 0
    assert load_waivers(CI / "waivers.yaml").waivers == []


@pytest.mark.parametrize("name", ["gate.yaml", "waivers.yaml"])
def test_what_is_commented_out_is_right_too(tmp_path: Path, name: str) -> None:
    lines = []
    for line in (CI / name).read_text(encoding="utf-8").splitlines():
        example = re.fullmatch(r"#( ?(?: {2}.*|\w+: *\{.*|\w+: ?\w*))", line)
        lines.append(
            example[1].removeprefix(" ") if example and name == "gate.yaml" else (example[1] if example else line)
        )
    text = "\n".join(lines).replace("waivers: []", "waivers:")
    (tmp_path / name).write_text(text, encoding="utf-8")
    if name == "gate.yaml":
        policy = load_policy(tmp_path / name)
        assert policy.model_fields_set == Policy.model_fields.keys()  # no rule is left out
        assert len(policy.efficiency) == 3
        assert policy.against_base is not None
    else:
        (waiver,) = load_waivers(tmp_path / name).waivers
        assert waiver.owner == "your.name"


@pytest.mark.parametrize("name", [*SERVERS, *NIGHTLY])
def test_every_command_is_one(name: str) -> None:
    text = (CI / name).read_text(encoding="utf-8")
    if name.endswith(".yml"):
        yaml.safe_load(text)
    commands = re.findall(r"mluops ((?:gen|run|merge|report|gate|fuzz) [^'\n|)]*)", text)
    assert len(commands) == {"gitlab.yml": 8}.get(name, 1 if name in NIGHTLY else 7)
    for command in commands:
        words = shlex.split(command)
        context = click.Context(cli, info_name="mluops", **cli.context_settings)
        _, found, arguments = cli.resolve_command(context, words)
        assert found is not None
        options = {option for parameter in found.params for option in parameter.opts}
        assert {word for word in arguments if word.startswith("-")} <= options, command
        for word in arguments:
            if word.startswith("ci/"):
                assert (CI.parent / word).is_file()


@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.parametrize("code", [0, 1, 2, 3, 130, 137])
def test_b17_report_and_gate_follow_whatever_the_run_exits_with(name: str, code: int) -> None:
    """An unreadable case (exit code 2) ended the job before anything was reported."""
    text = re.sub(r"\$\{\{.*?\}\}", "1", (CI / name).read_text(encoding="utf-8"))  # expressions of GitHub
    (run,) = re.findall(r"mluops run [^'\n]*", text)
    script = f"mluops() {{ return {code}; }}\n{run}\necho reported"
    done = subprocess.run(["bash", "-ec", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "reported"
    assert (f"mluops run: exit code {code}" in done.stdout) == (code != 0)
