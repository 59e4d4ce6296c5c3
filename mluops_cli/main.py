"""The command line: commands are imported when called, and errors become messages and exit codes in this one place."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

import click  # not rich_click: rendering the list of commands with rich takes longer than everything else together

from mluops_cli.core import standard_streams as streams
from mluops_cli.core.escaping import visible
from mluops_cli.core.statuses import BROKEN_PIPE, INTERRUPTED, OUR_FAILURE, WRONG_INPUT
from schemas.errors import MluopsError
from schemas.process_state import ENDING_SIGNALS
from schemas.suggest import did_you_mean
from schemas.version import __version__

# One line per command: commands/<name>.py holds it as `command`. The text stands here so that --help imports none.
COMMANDS: Final[dict[str, str]] = {
    "gen": "Generate case files with baselines from specs, or complete existing case files.",
    "run": "Run an implementation on case files and judge it.",
    "fuzz": "Search for calls that an implementation fails, drawn from the operators' contracts.",
    "list": "List operators and suites with their number of cases and bytes.",
    "show": "Show what a case file holds.",
    "convert": "Convert case files: .pb and .prototxt, values inline and as external data.",
    "check": "Look through case files for what is wrong or odd in them.",
    "import": "Turn the teams' JSON configs and folders of case files into specs.",
    "merge": "Make one run of the results of its shards.",
    "report": "Write reports of a finished run: JUnit, HTML, Markdown, CSV, CI annotations.",
    "gate": "Say whether a finished run holds a policy.",
    "compare": "Say what changed from one run to another.",
    "history": "Keep results of runs in a file, and say what changed at which run.",
    "replay": "Run the failing cases of a finished run again.",
    "diff": "Show where the kept outputs of a failing case differ from its baseline.",
    "unpack": "Write a case file as a folder of raw files, for a debugger.",
    "shrink": "Reduce a failing case of a finished run to the smallest one that fails alike.",
    "selftest": "Inject faults into right outputs and see that the judge detects them.",
    "mutate": "Make mutants of an implementation's source and see which of them the cases kill.",
    "subset": "List fewer cases for a quick run, and say what that gives up.",
    "implementations": "List the implementations that can be run and what they need.",
    "new-operator": "Write a package for an operator of your own, from nothing or from case files of it.",
    "docs": "Write a page per operator: tensors, parameters, rules, criteria, suites.",
    "doctor": "Check this machine: versions, memory, disk, optional parts.",
}
MODULES: Final = {"import": "import_", "new-operator": "new_operator"}  # commands whose module can't have their name

_COMPLETE: Final = "_MLUOPS_COMPLETE"


class LazyGroup(click.Group):
    """A group that lists its commands from COMMANDS and imports one only to run it or to show its help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of COMMANDS."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """A stand-in with the command's short help, for lists and completion."""
        return click.Command(name, short_help=COMMANDS[name]) if name in COMMANDS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command itself, imported, and the arguments behind its name."""
        name = args[0]
        if name not in COMMANDS:
            if ctx.resilient_parsing:
                return None, None, args[1:]
            ctx.fail(f"unknown command {name!r}{did_you_mean(name, COMMANDS)}")
        command: click.Command = import_module(f"mluops_cli.commands.{MODULES.get(name, name)}").command
        return name, command, args[1:]


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: mluops gen --suite demo --out cases && mluops run cases",
)
@click.version_option(__version__, prog_name="mluops", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of an error; may stand anywhere on the command line.")
@click.pass_context
def cli(ctx: click.Context, debug: bool) -> None:
    """Turn tables of operator scales into case files with trusted baselines, and judge implementations by them."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(WRONG_INPUT)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code; arguments default to the process's own."""
    if _COMPLETE in os.environ:
        cli.main(prog_name="mluops", complete_var=_COMPLETE)
    streams.open_closed()
    streams.speak_utf8()
    if arguments is None:
        _handle_signals(_interrupt)
    code = _run(list(sys.argv[1:] if arguments is None else arguments))
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = _reader_gone()
    except OSError as error:
        code = _unwritten(error)
    if arguments is None:
        _handle_signals(signal.SIG_IGN)  # from here on nothing is left to be undone: the exit code stands
    sys.exit(code)


def _handle_signals(handler: Any) -> None:
    """Handle the signals that end a command, but for those that the caller ignores (nohup)."""
    for number in ENDING_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _run(arguments: list[str]) -> int:
    debug = "--debug" in arguments
    arguments.sort(key=lambda word: word != "--debug")  # the group's own option, wherever it was typed
    try:
        with cli.make_context("mluops", arguments) as ctx:
            result: Any = cli.invoke(ctx)
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (KeyboardInterrupt, click.exceptions.Abort):
        return _failed("interrupted", INTERRUPTED, debug)
    except MluopsError as error:
        return _failed(str(error), error.exit_code, debug)
    except click.exceptions.ClickException as error:
        return _failed(_usage_text(error), WRONG_INPUT, debug)
    except BrokenPipeError:
        return _reader_gone()
    except Exception as error:
        hint = "" if debug else " (--debug shows where)"
        return _failed(f"internal error: {type(error).__name__}: {error}{hint}", OUR_FAILURE, debug)


def _usage_text(error: click.exceptions.ClickException) -> str:
    """The message of a command that was typed wrong, and where its help is."""
    context = getattr(error, "ctx", None)
    if context is None:
        return error.format_message()
    message = error.format_message().rstrip(".")
    return f"{context.command_path}: {message}; see `{context.command_path} --help`"


def _failed(message: str, code: int, debug: bool) -> int:
    """Say it on stderr, in one piece and never wrapped."""
    if debug:
        traceback.print_exc()
    try:
        sys.stderr.write(visible(message.rstrip("\n")) + "\n")
        sys.stderr.flush()
    except OSError:
        streams.abandon(sys.stderr)
    return code


def _reader_gone() -> int:
    """The reader of our output closed it (`| head`): end quietly, as a program killed by SIGPIPE does."""
    streams.abandon(sys.stdout)
    return BROKEN_PIPE


def _unwritten(error: OSError) -> int:
    """What we printed last could not be written (a full disk): our own failure."""
    streams.abandon(sys.stdout)
    return _failed(f"standard output: {error.strerror}", OUR_FAILURE, debug=False)
