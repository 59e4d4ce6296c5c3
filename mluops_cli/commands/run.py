"""`mluops run`: case files, an implementation, a verdict per case."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import rich_click as click

from mluops_cli.commands import run_options
from mluops_cli.commands.options import ByteSize, Names, Seconds, generation_option, make_folder, plugin_option
from mluops_cli.commands.run_options import Given
from mluops_cli.core.machine import cores

if TYPE_CHECKING:
    from collections.abc import Callable

    from mluops_cli.core.discovery import PlannedCase
    from mluops_cli.core.events import Listener
    from mluops_cli.core.record import Record
    from mluops_cli.execution.supervisor import RunSettings

_TIMEOUT: Final = 300.0
_IMPLEMENTATION: Final = "tiled"
_OF_A_CASE: Final = (  # options that decide what comes of a case
    "timeout", "memory", "repeat", "compare", "loose_nan", "strict_tail", "perf", "min_time", "cache", "device",
    "peak_bandwidth", "peak_ops", "perf_gate", "plugins",
)  # fmt: skip


@click.command(epilog="Example: mluops run cases --impl python:my_kernels.py:roi_crop -k 'roi_crop and not network'")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--impl", default=_IMPLEMENTATION, show_default=True, metavar="NAME[:OPTIONS]", help="What to run.")
@click.option("--out", default="mluops-out", show_default=True, type=click.Path(path_type=Path), help="For results.")
@click.option("-j", "--jobs", show_default="cores; 1 with --perf", type=click.IntRange(1), help="Worker processes.")
@click.option("--timeout", default=_TIMEOUT, show_default=True, type=Seconds(), metavar="S")
@click.option("--memory", type=ByteSize(), metavar="SIZE", help="What a case may take.  [default: what there is]")
@click.option("-k", "keywords", metavar="EXPR", help="Only cases whose id matches: parts, and, or, not, ( ).")
@click.option("--suite", "suites", type=Names(), default=frozenset(), metavar="S,..", help="Only these suites.")
@click.option("--shard", "part", metavar="I/N", help="Only the I-th (from 1) of N parts of about equal bytes.")
@click.option("--repeat", type=click.IntRange(1), metavar="N", help="Runs per case, each judged.  [default: 1]")
@click.option("--max-fail", "max_failures", type=click.IntRange(1), metavar="N", help="Stop after N failing cases.")
@click.option("--resume", is_flag=True, help="Go on where an earlier run into OUT stopped.")
@click.option("--strict", is_flag=True, help="A pass that proves nothing (mistrusted) fails.")
@run_options.judging_options
@run_options.perf_options
@run_options.fleet_options
@run_options.report_options
@generation_option
@plugin_option
def command(paths: tuple[Path, ...], out: Path, **given: Any) -> int:
    """Run an implementation on the case files at PATH... and judge what it computes.

    Folders are searched with all below them, links too; files and folders whose name begins with a dot are left out.
    A case that is there as .pb and as .prototxt runs once, as .pb.

    Exit code: 0 all passed, 1 something failed or nothing was validated, 2 the command or a case file is wrong,
    3 our own failure, 5 nothing selected, 130 interrupted.
    """
    from mluops_cli.core.discovery import plan_cases
    from mluops_cli.core.record import NOTHING_SELECTED
    from mluops_cli.execution.supervisor import run_cases
    from mluops_cli.results.jsonl import JsonResults, refuse_foreign

    chosen = {name: given[name] for name in ("suites", "keywords", "part")}
    settings = _settings(out, given)
    cases = plan_cases(paths, **chosen, out=out, enum_numbering=given["enum_numbering"])
    if not cases:
        click.echo("no case is selected", err=True)
        return NOTHING_SELECTED
    make_folder(out)
    refuse_foreign(out)
    if given["resume"]:
        settings.finished = _finished(out, {case.id for case in cases}, given["impl"])
    reports = run_options.report_files(out, given)
    with closing(JsonResults(out, resume=given["resume"], strict=given["strict"])) as results:
        listeners: list[Listener] = [results, _console(), *_keeping(out)]
        listeners += [reports] if reports is not None else []
        if given["scheduler"]:
            from mluops_cli.execution.cluster.client import run_on_fleet

            return run_on_fleet(given["scheduler"], given["resource"], cases, settings, listeners).exit_code
        return run_cases(cases, settings, listeners).exit_code


def _settings(out: Path, given: Given) -> RunSettings:
    from mluops_cli.core.run_settings import WorkerSettings
    from mluops_cli.execution.supervisor import RunSettings
    from schemas.errors import InputError

    if given["resource"] and not given["scheduler"]:
        raise InputError("--resource needs --scheduler")
    perf = run_options.perf_settings(given)
    plugins = tuple(str(path) for path in given["plugins"])
    worker = WorkerSettings(
        given["impl"],
        plugins,
        given["repeat"] or 1,
        run_options.judging(given["compare"], given["loose_nan"], given["strict_tail"]),
        perf,
        keep_outputs=given["keep_outputs"],
        out=os.path.abspath(out),
    )
    waive: Callable[[Record], Record] | None = None
    if given["waivers"]:
        from mluops_cli.results.waivers import load_waivers

        waive = load_waivers(given["waivers"])
    return RunSettings(
        worker,
        out,
        jobs=given["jobs"] or (1 if perf is not None else cores()),
        timeout=given["timeout"],
        memory=given["memory"],
        max_failures=given["max_failures"],
        strict=given["strict"],
        repro=_repro(given),
        waive=waive,
        options={"plugins": plugins, **{name: given[name] for name in _OF_A_CASE if name != "plugins"}},
    )


def _console() -> Listener:
    from rich.console import Console

    from mluops_cli.reports.console import ConsoleReport

    return ConsoleReport(Console())


def _keeping(out: Path) -> Sequence[Listener]:
    from mluops_cli.results.kept_cases import KeepFailures

    return (KeepFailures(out),)


def _finished(out: Path, selected: set[str], impl: str) -> list[Record]:
    """The records of an earlier run, a cut-off last line repaired; InputError where it was another run."""
    from mluops_cli.results.jsonl import read_results, repair_results
    from schemas.errors import InputError

    repair_results(out)
    records = list(read_results(out))
    for record in records:
        if record.impl != impl:
            raise InputError(f"--resume: {out} holds results of --impl {record.impl}, not of {impl}")
    strange = [record.case for record in records if record.case not in selected]
    if strange:
        raise InputError(f"--resume: {out} holds results of cases that are not selected now, such as {strange[0]}")
    return records


def _repro(given: Given) -> Callable[[PlannedCase], str]:
    """The command that runs one case alone, as it was run here."""
    options = {option.name: option for option in command.params}
    words: list[Any] = ["--impl", given["impl"]]
    for name in _OF_A_CASE:
        option, value = options[name], given[name]
        flag = option.opts[-1]
        if value is True:
            words.append(flag)
        elif isinstance(value, tuple):
            words += [word for each in value for word in (flag, each)]
        elif value is not None and value is not False and value != option.default:
            words += [flag, f"{value:g}" if isinstance(value, float) else value]
    tail = shlex.join(map(str, words))
    return lambda case: f"mluops run {shlex.quote(_as_path(case.file))} {tail}"


def _as_path(file: str) -> str:
    """A file name that can't be taken for an option."""
    return f"./{file}" if file.startswith("-") else file
