"""The examples in docs/ci: read by us, and their commands known to us."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
import yaml

from mluops_cli.main import cli
from mluops_cli.results.gate import load_policy
from mluops_cli.results.waivers import load_waivers
from tests.conftest import PROJECT

CI = PROJECT / "docs" / "ci"
SERVERS = ("github.yml", "gitlab.yml", "Jenkinsfile")


def test_the_policy_and_the_waivers_are_read() -> None:
    assert load_policy(CI / "gate.yaml").min_cases["psamask_forward"] == 40
    assert load_waivers(CI / "waivers.yaml").waivers == []


@pytest.mark.parametrize("name", ["gate.yaml", "waivers.yaml"])
def test_what_is_commented_out_is_right_too(tmp_path: Path, name: str) -> None:
    lines = []
    for line in (CI / name).read_text(encoding="utf-8").splitlines():
        example = re.fullmatch(r"#( ?(?: {2}.*|\w+: *\{.*|\w+:))", line)
        lines.append(
            example[1].removeprefix(" ") if example and name == "gate.yaml" else (example[1] if example else line)
        )
    text = "\n".join(lines).replace("waivers: []", "waivers:")
    (tmp_path / name).write_text(text, encoding="utf-8")
    if name == "gate.yaml":
        policy = load_policy(tmp_path / name)
        assert len(policy.efficiency) == 3
        assert policy.against_base is not None
    else:
        (waiver,) = load_waivers(tmp_path / name).waivers
        assert waiver.owner == "your.name"


@pytest.mark.parametrize("name", SERVERS)
def test_every_command_is_one(name: str) -> None:
    text = (CI / name).read_text(encoding="utf-8")
    if name.endswith(".yml"):
        yaml.safe_load(text)
    commands = re.findall(r"mluops ((?:gen|run|report|gate) [^'\n|]*)", text)
    assert len(commands) == 5
    for command in commands:
        words = shlex.split(command)
        context = click.Context(cli, info_name="mluops", **cli.context_settings)
        _, found, arguments = cli.resolve_command(context, words)
        assert found is not None
        options = {option for parameter in found.params for option in parameter.opts}
        assert {word for word in arguments if word.startswith("-")} <= options, command
        for word in arguments:
            if word.startswith("docs/"):
                assert (PROJECT / word).is_file()
