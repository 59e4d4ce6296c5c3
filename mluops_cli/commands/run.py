"""`mluops run`: case files, an implementation, a verdict per case."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import rich_click as click

from mluops_cli.commands.options import Names, plugin_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from mluops_cli.execution.plan import PlannedCase
    from mluops_cli.reports.record import Record

_TIMEOUT: Final = 300.0
_IMPLEMENTATION: Final = "tiled"
_WIDTH: Final = 160


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@click.command(epilog="Example: mluops run cases --impl python:my_kernels.py:roi_crop -k 'roi_crop and not network'")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--impl", default=_IMPLEMENTATION, show_default=True, metavar="NAME[:OPTIONS]", help="What to run.")
@click.option("--out", default="mluops-out", show_default=True, type=click.Path(path_type=Path), help="For results.")
@click.option("-j", "--jobs", default=_cores, show_default="cores", type=click.IntRange(1), help="Worker processes.")
@click.option("--timeout", default=_TIMEOUT, show_default=True, type=click.FloatRange(0, min_open=True), metavar="S")
@click.option("-k", "keywords", metavar="EXPR", help="Only cases whose id matches: parts, and, or, not, ( ).")
@click.option("--suite", "suites", type=Names(), default=frozenset(), metavar="S,..", help="Only these suites.")
@click.option("--shard", "part", metavar="I/N", help="Only the I-th (from 1) of N parts of about equal bytes.")
@click.option("--repeat", default=1, show_default=True, type=click.IntRange(1), help="Runs per case, each judged.")
@click.option("--max-fail", "max_failures", type=click.IntRange(1), metavar="N", help="Stop after N failing cases.")
@click.option("--resume", is_flag=True, help="Go on where an earlier run into OUT stopped.")
@click.option("--strict", is_flag=True, help="A pass that proves nothing (mistrusted) fails.")
@plugin_option
def command(
    paths: tuple[Path, ...],
    impl: str,
    out: Path,
    jobs: int,
    timeout: float,
    keywords: str | None,
    suites: frozenset[str],
    part: str | None,
    repeat: int,
    max_failures: int | None,
    resume: bool,
    strict: bool,
    plugins: tuple[Path, ...],
) -> int:
    """Run an implementation on the case files at PATH... and judge what it computes.

    Exit code: 0 all passed, 1 something failed or nothing was validated, 2 the command or a case file is wrong,
    3 our own failure, 5 nothing selected, 130 interrupted.
    """
    from mluops_cli.execution.plan import plan_cases
    from mluops_cli.execution.process import WorkerSettings
    from mluops_cli.execution.supervisor import RunSettings, run_cases
    from mluops_cli.reports.console import ConsoleReport
    from mluops_cli.reports.record import NOTHING_SELECTED
    from mluops_cli.reports.results import JsonResults, refuse_foreign

    cases = plan_cases(paths, suites=suites, keywords=keywords, part=part, out=out)
    if not cases:
        click.echo("no case is selected", err=True)
        return NOTHING_SELECTED
    refuse_foreign(out)
    finished = _finished(out, {case.id for case in cases}, impl) if resume else ()
    settings = RunSettings(
        WorkerSettings(impl, tuple(str(path) for path in plugins), repeat),
        out,
        jobs=jobs,
        timeout=timeout,
        max_failures=max_failures,
        strict=strict,
        repro=_repro(impl, timeout, repeat, plugins),
        finished=finished,
    )
    with closing(JsonResults(out, resume=resume, strict=strict)) as results:
        return run_cases(cases, settings, (results, ConsoleReport(_console()))).exit_code


def _console() -> Console:
    """Where there is no terminal to fit into, tables get the width they need."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else _WIDTH)


def _finished(out: Path, selected: set[str], impl: str) -> list[Record]:
    """The records of an earlier run, a cut-off last line repaired; InputError where it was another run."""
    from mluops_cli.reports.results import read_results, repair_results
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


def _repro(impl: str, timeout: float, repeat: int, plugins: tuple[Path, ...]) -> Callable[[PlannedCase], str]:
    """The command that runs one case alone, as it was run here."""
    options: list[Any] = ["--impl", impl]
    options += ["--timeout", f"{timeout:g}"] if timeout != _TIMEOUT else []
    options += ["--repeat", repeat] if repeat != 1 else []
    options += [word for path in plugins for word in ("--plugin", path)]
    tail = shlex.join(map(str, options))
    return lambda case: f"mluops run {shlex.quote(case.file)} {tail}"
