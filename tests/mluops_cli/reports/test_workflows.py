"""The workflows in docs/ci, run: their own commands, in a repository of a kernel, each job in a checkout of its own.

What is not run is the installation (`pip install`, `python3 -m venv`): it would fetch mluops from an index, and the one
under test is installed here. Actions of the servers (checkout, cache, artifacts) are copies of folders.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import PROJECT
from tests.mluops_cli.commands.test_gen import FORWARD
from tests.mluops_cli.test_snapshots import KERNEL

CI = PROJECT / "docs" / "ci"
INSTALLS = re.compile(r"(pip|\.venv/bin/pip) install |python3 -m venv ")
SPEC = "specs/psamask/mine.yaml"
FIRST = "1h --findings 1"

pytestmark = pytest.mark.slow  # twenty to forty commands, each a process; test_examples.py has the quick checks


@dataclass
class Server:
    """A CI server: a repository, and what jobs leave for later ones."""

    folder: Path
    kernel: str
    env: dict[str, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    jobs: int = 0

    def __post_init__(self) -> None:
        repository = self.folder / "repository"
        (repository / SPEC).parent.mkdir(parents=True)
        (repository / "kernels.py").write_text(f"{KERNEL}\n\nrun = {self.kernel}\n")
        (repository / SPEC).write_text(FORWARD)
        (repository / "ci").mkdir()
        shutil.copy(CI / "waivers.yaml", repository / "ci")
        shutil.copy(CI / "gate.yaml", repository / "ci")
        shown = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "GITLAB_", "CI"))}
        programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.env = shown | {"PATH": programs, "HOME": str(self.folder), "CI": "true"} | self.env

    def checkout(self) -> Path:
        """The repository in a folder of its own."""
        self.jobs += 1
        workspace = self.folder / f"job-{self.jobs}"
        shutil.copytree(self.folder / "repository", workspace)
        (workspace / ".venv").mkdir()
        (workspace / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
        return workspace

    def run(self, commands: Iterable[str], workspace: Path, env: Mapping[str, str]) -> int:
        """Run the commands of a step in one shell that ends with the first that fails."""
        script = "\n".join(command for command in commands if not INSTALLS.search(command))
        shell = ["bash", "-eo", "pipefail", "-c", script]
        done = subprocess.run(
            shell, cwd=workspace, env={**self.env, **env}, capture_output=True, text=True, check=False
        )
        self.said.append(f"{script}\n{done.stdout}{done.stderr}")
        return done.returncode

    @property
    def log(self) -> str:
        """All that was printed."""
        return "\n".join(self.said)


def copy_all(source: Path, target: Path, patterns: Iterable[str]) -> list[str]:
    """Copy what fits the patterns from one folder to the same places in another one; the paths."""
    found = [path for pattern in patterns for path in source.glob(pattern)]
    for path in found:
        to = target / path.relative_to(source)
        to.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, to, dirs_exist_ok=True)
        else:
            shutil.copy(path, to)
    return [path.relative_to(source).as_posix() for path in found]


def github(server: Server, file: str, **changed: str) -> int:
    """Run a workflow of GitHub; the exit code of the step that failed, 0 where none did."""
    workflow = yaml.safe_load((CI / file).read_text())
    env = workflow["env"] | changed
    artifacts, caches = server.folder / "artifacts", server.folder / "caches"
    for job in workflow["jobs"].values():
        matrix = job.get("strategy", {}).get("matrix", {"none": [""]})
        ((axis, values),) = matrix.items()
        for value in values:
            workspace = server.checkout()
            outputs: dict[str, str] = {}

            def filled(text: str, value: object = value, axis: str = axis, outputs: Any = outputs) -> str:
                known = {f"matrix.{axis}": str(value), **outputs}
                return re.sub(r"\$\{\{ (.*?) \}\}", lambda match: known[match[1]], text)

            said = workspace / "github_output"
            own = {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(workspace), "GITHUB_OUTPUT": str(said)}
            own["GITHUB_STEP_SUMMARY"] = str(server.folder / "summary.md")
            failed, restored = 0, {}
            for step in job["steps"]:
                given = {name: filled(str(text)) for name, text in step.get("with", {}).items()}
                uses = step.get("uses", "").partition("@")[0]
                if failed and not (uses and step.get("if") in ("always()", "failure()")):
                    continue
                if not failed and step.get("if") == "failure()":
                    continue
                if uses == "actions/cache":
                    restored[given["path"]] = given["key"]
                    copy_all(caches / given["key"], workspace, ["*"])
                elif uses == "actions/upload-artifact":
                    found = copy_all(workspace, artifacts / given["name"], given["path"].split())
                    assert found, f"nothing at {given['path']}"
                    if len(found) == 1 and (workspace / found[0]).is_dir():  # the folder's content is the artifact
                        inside = artifacts / given["name"]
                        shutil.copytree(inside / found[0], inside, dirs_exist_ok=True)
                elif uses == "actions/download-artifact":
                    for artifact in artifacts.glob(given["pattern"]):
                        shutil.copytree(artifact, workspace / given["path"] / artifact.name)
                elif uses:
                    assert uses in ("actions/checkout", "actions/setup-python")
                else:
                    failed = server.run([filled(step["run"])], workspace, env | own)
                if "id" in step:
                    lines = said.read_text().splitlines()
                    pairs = (line.partition("=") for line in lines)
                    outputs |= {f"steps.{step['id']}.outputs.{name}": text for name, _, text in pairs}
            for path, key in restored.items():
                copy_all(workspace, caches / key, [path])
            if failed:
                return failed
    return 0


def gitlab(server: Server, nightly: bool = False, **changed: str) -> int:
    """Run the pipeline of GitLab; the exit code of the job that failed, 0 where none did."""
    pipeline = yaml.safe_load((CI / "gitlab.yml").read_text())
    env = {name: str(text) for name, text in pipeline["variables"].items()} | changed
    artifacts, caches = server.folder / "artifacts", server.folder / "caches"
    artifacts.mkdir()
    jobs = [job for job in pipeline.values() if isinstance(job, dict) and "script" in job]
    rule = "$NIGHTLY" if nightly else "$NIGHTLY == null"
    chosen = [job for job in jobs if [each["if"] for each in job["rules"]] == [rule]]
    for job in sorted(chosen, key=lambda job: pipeline["stages"].index(job["stage"])):
        count = job.get("parallel", 1)
        for index in range(1, count + 1):
            workspace = server.checkout()
            copy_all(artifacts, workspace, ["*"])
            own = env | {"GITLAB_CI": "true", "CI_PROJECT_DIR": str(workspace)}
            own |= {"CI_NODE_INDEX": str(index), "CI_NODE_TOTAL": str(count)} if "parallel" in job else {}
            cache = job.get("cache")
            if cache:
                key = caches / re.sub(r"\$(\w+)", lambda match: own[match[1]], cache["key"])  # noqa: B023
                copy_all(key, workspace, ["*"])
            code = server.run([*pipeline["default"]["before_script"], *job["script"]], workspace, own)
            if cache:
                copy_all(workspace, key, cache["paths"])
            kept = job.get("artifacts", {})
            if kept.get("when", "on_success") in ("always", "on_failure" if code else "on_success"):
                copy_all(workspace, artifacts, kept.get("paths", ()))
            if dotenv := kept.get("reports", {}).get("dotenv"):
                env |= dict(line.split("=", 1) for line in (workspace / dotenv).read_text().splitlines())
            if code:
                return code
    return 0


def jenkins(server: Server, file: str = "Jenkinsfile", **changed: str) -> int:
    """Run the steps of a Jenkinsfile, those of the matrix once for each shard; the exit code of what failed, or 0."""
    text = (CI / file).read_text()
    (block,) = re.findall(r"environment \{\n(.*?)\n *\}", text, re.DOTALL)
    env = dict(re.findall(r"(\w+) = '([^']*)'", block)) | changed
    stash = server.folder / "stash"
    shards, judge = text.split("stage('judge')") if "matrix" in text else ("", text)
    for number in re.findall(r"'(\d)'", shards):
        workspace = server.checkout()
        if code := server.run(_shell_lines(shards), workspace, env | {"SHARD": number}):
            return code
        (included,) = re.findall(r'includes: "(.*?)/\*\*"', shards)
        assert copy_all(workspace, stash, [included.replace("${SHARD}", number)])
    workspace = server.checkout()
    if shards:
        assert "unstash" in judge
        copy_all(stash, workspace, ["*"])
    return server.run(_shell_lines(judge), workspace, env)


def _shell_lines(text: str) -> Iterator[str]:
    """The scripts of the steps `sh '...'` and `sh '''...'''`."""
    found = re.findall(r"^\s*sh (?:'''(.*?)'''|'([^\n]*)')$", text, re.MULTILINE | re.DOTALL)
    return (block or line for block, line in found)


RUNS = {
    "github": lambda server: github(server, "github.yml"),
    "gitlab": gitlab,
    "jenkins": jenkins,
}
ANNOTATION = {"github": f"::error file={SPEC},line=4,title=", "gitlab": f"{SPEC}:4: ", "jenkins": f"{SPEC}:4: "}


@pytest.mark.parametrize("name", RUNS)
def test_a_right_kernel_goes_through(name: str, tmp_path: Path) -> None:
    server = Server(tmp_path, "right")
    assert RUNS[name](server) == 0, server.log
    assert "The gate holds: 3 of 3 cases passed." in server.log
    assert "3 cases of 4 shards in out/results: 3 pass" in server.log
    made = re.findall(r"3 cases.* in out/cases|3 cases.*kernel-cases", server.log)
    assert len(made) == 4
    assert sum("3 of them unchanged" in each for each in made) == 3  # the first shard made them for the others


@pytest.mark.parametrize("name", RUNS)
def test_a_wrong_kernel_is_annotated_in_the_repository_and_stopped_by_the_gate(name: str, tmp_path: Path) -> None:
    server = Server(tmp_path, "wrong")
    assert RUNS[name](server) == 1, server.log
    assert "3 cases failed: " in server.said[-1]
    assert ANNOTATION[name] in server.log
    (junit,) = tmp_path.glob("job-*/out/junit.xml")
    assert junit.read_text().count("<failure") == 3
    if name == "gitlab":
        issues = json.loads((tmp_path / "artifacts/out/results/gl-code-quality-report.json").read_text())
        assert {issue["location"]["path"] for issue in issues} == {SPEC}
    if name == "github":
        assert (tmp_path / "artifacts" / "kernels" / "out" / "report.html").exists()
        assert "3 fail" in (tmp_path / "summary.md").read_text()


@pytest.mark.parametrize("name", ["github", "gitlab", "jenkins"])
def test_the_nightly_search_keeps_what_it_finds(name: str, tmp_path: Path) -> None:
    """Until the first finding instead of for an hour: the shell takes the variable for several words."""
    server = Server(tmp_path, "wrong")
    if name == "github":
        assert github(server, "github-nightly.yml", TIME=FIRST) == 1, server.log
        found = tmp_path / "artifacts" / "found" / "out" / "found.yaml"
    elif name == "gitlab":
        assert gitlab(server, nightly=True, TIME=FIRST) == 1, server.log
        found = tmp_path / "artifacts" / "out" / "found.yaml"
    else:
        assert jenkins(server, "Jenkinsfile.nightly", TIME=FIRST) == 1, server.log
        found = tmp_path / "job-1" / "out" / "found.yaml"
    assert yaml.safe_load(found.read_text())["op"] == "psamask_forward"
    assert "saved in out/found.yaml" in server.log
