"""The command line's frame: quick to start, one message per error, exit codes."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest

from mluops_cli.core.statuses import BROKEN_PIPE
from mluops_cli.main import COMMANDS, MODULES
from schemas.errors import InputError, SourceLocation, UnavailableError
from schemas.version import __version__
from tests.conftest import PROJECT
from tests.mluops_cli.conftest import Cli

HEAVY = (
    "covertable", "numpy", "pydantic", "google.protobuf", "yaml", "rich", "torch", "matplotlib", "xxhash", "ml_dtypes",
)  # fmt: skip


def mluops(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mluops_cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=PROJECT, timeout=120, **options)


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom mluops_cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit as stop:\n    assert stop.code == 0\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PROJECT, timeout=120)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_help_is_quick() -> None:
    def seconds() -> float:
        """Of the processor: what else runs on the machine doesn't count."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert mluops("--help").returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

    assert min(seconds() for _ in range(7)) < 0.3


def test_help_lists_every_command_in_full(cli: Cli) -> None:
    ran = cli("--help")
    assert ran.code == 0
    listing = " ".join(ran.out.split())
    for name, text in COMMANDS.items():
        assert f"{name} {text}" in listing


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(cli: Cli, name: str) -> None:
    assert isinstance(import_module(f"mluops_cli.commands.{MODULES.get(name, name)}").command, click.Command)
    for flag in ("--help", "-h"):
        ran = cli(name, flag)
        assert ran.code == 0
        assert f"Example: mluops {name}" in ran.out


def test_version(cli: Cli) -> None:
    assert cli("--version") == (0, f"mluops {__version__}\n", "")


def test_without_a_command_the_help_is_an_error(cli: Cli) -> None:
    ran = cli()
    assert (ran.code, ran.out) == (2, "")
    assert "Usage: mluops" in ran.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gne"], "mluops: unknown command 'gne': did you mean 'gen'?; see `mluops --help`\n"),
        (["list", "--wrong"], "mluops list: No such option '--wrong'; see `mluops list --help`\n"),
        (["gen", "-j", "0"], "x>=1"),
    ],
)
def test_what_is_typed_wrong_is_one_line_and_exit_code_2(cli: Cli, arguments: list[str], message: str) -> None:
    ran = cli(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err.replace("No such option: --wrong", "No such option '--wrong'")
    assert ran.err.count("\n") == 1


LONG = "found a word, expected something else entirely, " * 10


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (InputError(LONG, SourceLocation("some.yaml", 3, 7)), 2, f"some.yaml:3:7: {LONG}\n"),
        (UnavailableError("no card here"), 3, "no card here\n"),
        (ZeroDivisionError("oops"), 3, "internal error: ZeroDivisionError: oops (--debug shows where)\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
    ],
)
def test_errors_become_one_unwrapped_message_and_a_code(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, message: str
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(import_module("mluops_cli.commands.doctor"), "command", click.Command("doctor", callback=fail))
    assert cli("doctor") == (code, "", message)
    for arguments in (["--debug", "doctor"], ["doctor", "--debug"]):
        ran = cli(*arguments)
        assert ran.code == code
        assert "Traceback" in ran.err


def test_an_exit_code_that_a_command_returns_is_the_exit_code(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    replaced = click.Command("doctor", callback=lambda: 5)
    monkeypatch.setattr(import_module("mluops_cli.commands.doctor"), "command", replaced)
    assert cli("doctor").code == 5


def test_a_reader_that_goes_away_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "mluops_cli", "--help"], stdout=writing, stderr=subprocess.PIPE, cwd=PROJECT, timeout=120
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (BROKEN_PIPE, b"")


def test_the_output_is_utf_8_in_every_locale(tmp_path: Path) -> None:
    name = "ünï 漢.prototxt"
    (tmp_path / name).write_text(
        'op_name: "psamask_forward" input { id: "x" shape: { dims: [1, 1, 1, 1] } layout: LAYOUT_NHWC '
        'dtype: DTYPE_FLOAT value_f: 1 } output { id: "y" shape: { dims: [1, 1, 1, 1] } layout: LAYOUT_NHWC '
        "dtype: DTYPE_FLOAT } psamask_forward_param { psa_type: 0 h_mask: 1 w_mask: 1 }"
    )
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-m", "mluops_cli", "show"]
    done = subprocess.run([*command, name], capture_output=True, cwd=tmp_path, env={**os.environ, **plain}, timeout=120)
    assert (done.returncode, done.stderr) == (0, b"")
    assert name.encode() in done.stdout


def test_a_full_disk_behind_standard_output_is_one_message() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "mluops_cli", "--version"],
            stdout=full,
            stderr=subprocess.PIPE,
            cwd=PROJECT,
            timeout=120,
        )
    assert done.returncode == 3
    assert b"No space left on device" in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_closed_streams_are_no_error() -> None:
    command = f"{sys.executable} -m mluops_cli --version <&- >&- 2>&-"
    assert subprocess.run(command, shell=True, cwd=PROJECT, timeout=120).returncode == 0


def test_control_characters_in_an_error_are_shown_as_escapes(cli: Cli) -> None:
    ran = cli("show", "no\x1b[2J.pb")
    assert ran.code == 2
    assert "\x1b" not in ran.err
    assert r"no\x1b[2J.pb" in ran.err


def test_the_help_of_run_says_what_it_passes_over(cli: Cli) -> None:
    assert "begins with a dot are left out" in " ".join(cli("run", "--help").out.split())


def test_the_shell_completes_commands_and_options() -> None:
    def completions(words: str, at: int) -> list[str]:
        environment = {**os.environ, "_MLUOPS_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(at)}
        return mluops(env=environment).stdout.split()

    assert completions("mluops do", 1) == ["plain,docs", "plain,doctor"]
    assert "plain,--suite" in completions("mluops gen --su", 2)


def test_a_plug_in_that_cannot_be_loaded_is_one_message_with_its_name(cli: Cli, tmp_path: Path) -> None:
    plugin = tmp_path / "broken_plugin.py"
    for text in ("1 / 0", "import sys; sys.exit(0)", "def ("):
        plugin.write_text(text)
        ran = cli("list", "--plugin", plugin)
        assert ran.code == 2
        assert "broken_plugin.py" in ran.err
        assert "Traceback" not in ran.err
    assert cli("list", "--plugin", tmp_path / "none.py").code == 2
